"""Header blocks against a library, in both directions."""

from __future__ import annotations

import pytest
from hpack import Decoder, Encoder, HPACKError
from hypothesis import given
from hypothesis import strategies as st

from runtime.transport.grpc.direct.http2.frames import ErrorCode, Http2Error, StreamError
from runtime.transport.grpc.direct.http2.header_blocks import (
    MAX_HEADER_LIST_BYTES,
    HeaderDecoder,
    HeaderEncoder,
    HeaderListTooLarge,
    encode_headers,
)
from runtime.transport.grpc.direct.http2.header_fields import Header, check_request_fields

NAMES = st.sampled_from([b":path", b"te", b"content-type", b"x-a", b"x-b", b"x-" + b"n" * 200])
VALUES = st.binary(max_size=300).map(lambda value: value.translate(None, b"\0\r\n").strip())
HEADERS = st.lists(st.tuples(NAMES, VALUES), max_size=8)
PACKED = bytes.fromhex("8c f1e3c2e5f23a6ba0ab90f4ff")
"""A text of the standard's own example, packed: www.example.com."""


def reader() -> HeaderDecoder[list[Header]]:
    return HeaderDecoder(list)


def broken(block: bytes, code: ErrorCode = ErrorCode.COMPRESSION_ERROR) -> None:
    with pytest.raises(Http2Error) as caught:
        reader().decode(block)
    assert caught.value.code is code


@given(st.lists(st.tuples(HEADERS, st.booleans(), st.none() | st.sampled_from([0, 40, 64, 300, 4096]))))
def test_headers_of_the_library_are_decoded(blocks: list[tuple[list[Header], bool, int | None]]) -> None:
    """Blocks in sequence, packed or not, with tables of any size, say the same here as there."""
    encoder, read = Encoder(), reader()
    for headers, packed, size in blocks:
        if size is not None:
            encoder.header_table_size = size
        block = encoder.encode(headers, huffman=packed)
        assert read.decode(block) == headers
        # The same bytes once more: by now the table may have their entries, but they mean the same.
        again = encoder.encode(headers, huffman=packed)
        assert read.decode(again) == headers


@given(st.lists(st.tuples(st.sampled_from(range(6)), HEADERS), max_size=12))
def test_a_cached_header_block_is_decoded_by_the_present_table(
    said: list[tuple[int, list[Header]]],
) -> None:
    """Blocks that only name entries are read anew, and rightly, whenever others have moved the entries."""
    ours, theirs = reader(), Decoder()
    for number, headers in said:
        adding = b"".join(b"\x40" + text(name) + text(value) for name, value in headers)
        assert ours.decode(adding) == list(theirs.decode(adding, raw=True))
        known = bytes((0x80 | 62 + number,))
        try:
            expected = list(theirs.decode(known, raw=True))
        except HPACKError:
            with pytest.raises(Http2Error):
                ours.decode(known)
            return
        assert ours.decode(known) == expected
        assert ours.decode(known) == expected


def text(value: bytes) -> bytes:
    return (bytes((len(value),)) if len(value) < 127 else number(len(value), 7)) + value


def number(value: int, bits: int) -> bytes:
    most = (1 << bits) - 1
    if value < most:
        return bytes((value,))
    said, value = [most], value - most
    while value >= 128:
        said.append(value % 128 + 128)
        value //= 128
    return bytes((*said, value))


@given(st.lists(st.tuples(st.binary(max_size=500), st.binary(max_size=500)), max_size=20))
def test_encoded_headers_are_decoded_by_the_library(headers: list[Header]) -> None:
    """A block of ours is plain enough for any reader."""
    decoder = Decoder(max_header_list_size=2**20)
    assert list(decoder.decode(encode_headers(headers), raw=True)) == headers


@pytest.mark.parametrize("name", [b"authorization", b"cookie", b"proxy-authorization"])
@pytest.mark.parametrize("has_table", [True, False])
def test_credentials_are_never_indexed(name: bytes, has_table: bool) -> None:
    """Whether or not the reader keeps a table, and also by those who pass them on."""
    headers = ((b":path", b"/here"), (name, b"secret" * 30), (b"x-other", b"known"))
    writer, decoder = HeaderEncoder(), Decoder()
    if not has_table:
        writer.disable_dynamic_table()
    for _ in range(3):
        found = list(decoder.decode(writer.encode(headers), raw=True))
        assert found == list(headers)
        assert [each.indexable for each in found] == [True, False, True]
    assert all(entry[0] != name for entry in decoder.header_table.dynamic_entries)


def test_the_example_of_the_standard_is_read() -> None:
    """A packed text, indexed and not, next to entries of the fixed table."""
    assert reader().decode(bytes.fromhex("828684") + b"\x41" + PACKED) == [
        (b":method", b"GET"),
        (b":scheme", b"http"),
        (b":path", b"/"),
        (b":authority", b"www.example.com"),
    ]


def test_a_name_with_capital_letters_is_none() -> None:
    """Names are lower case in HTTP/2, and comparisons rely on it."""
    broken(b"\x40\x04Path\x01x", ErrorCode.PROTOCOL_ERROR)
    assert reader().decode(b"\x40\x04path\x01X") == [(b"path", b"X")]


@pytest.mark.parametrize(
    "header",
    [
        *((name, b"x") for name in (b"", b":", b"X-Id", b"X", b"\xff", b"\n")),
        *((b"x", value) for value in (b"a\0b", b"a\rb", b"a\nb", b" a", b"a ", b"\ta", b"a\t", b" ")),
    ],
)
def test_a_malformed_header_is_an_error_of_its_stream(header: Header) -> None:
    """However often it is said: also as the number of the entry that it has become; the table is in step."""
    read: HeaderDecoder[list[Header]] = HeaderDecoder(list, check_request_fields)
    for block in (b"\x40" + text(header[0]) + text(header[1]), b"\xbe", b"\x82\xbe"):
        with pytest.raises(StreamError) as caught:
            read.decode(block)
        assert caught.value.code is ErrorCode.PROTOCOL_ERROR
    assert read.decode(b"\x40\x01a\x01b") == [(b"a", b"b")]
    assert read.decode(b"\xbe\x82") == [(b"a", b"b"), (b":method", b"GET")]
    with pytest.raises(StreamError):
        read.decode(b"\xbf")


def test_an_answer_may_have_white_space_at_the_ends_of_its_values() -> None:
    """Servers of gRPC send messages as they are; a token that is empty is the guard's concern."""
    assert reader().decode(b"\x40\x0cgrpc-message\x02a ") == [(b"grpc-message", b"a ")]
    of_requests: HeaderDecoder[list[Header]] = HeaderDecoder(list, check_request_fields)
    empty = b"\x40\x0dauthorization" + text(b"Bearer ")
    assert of_requests.decode(empty) == [(b"authorization", b"Bearer ")]


@pytest.mark.parametrize("value", [b"", b"a b", b"a\tb", b"\x80\xff", b"Bearer x"])
def test_a_value_may_have_any_other_bytes(value: bytes) -> None:
    assert reader().decode(b"\x40\x01a" + text(value)) == [(b"a", value)]


def test_a_list_has_a_largest_size() -> None:
    """A few bytes may name large entries many times; as much as was said is read, and not more."""
    value = b"v" * (4096 - 32 - 1)
    read = reader()
    assert len(read.decode(b"\x40\x01n" + text(value))) == 1
    most = MAX_HEADER_LIST_BYTES // 4096
    assert len(read.decode(b"\xbe" * most)) == most
    with pytest.raises(HeaderListTooLarge) as caught:
        read.decode(b"\xbe" * (most + 1) + b"\x40\x01m\x01w")
    assert (caught.value.code, len(caught.value.headers)) == (ErrorCode.ENHANCE_YOUR_CALM, most)
    # The rest of it has changed the table all the same.
    assert read.decode(b"\xbe") == [(b"m", b"w")]


def test_the_table_never_has_more_than_its_size() -> None:
    """Entries that do not fit go, the oldest first, and one that is too large empties the table."""
    read = reader()
    for index in range(1000):
        read.decode(b"\x40\x03key" + text(b"%0100d" % index))
        assert read._table_bytes <= 4096
        assert read._table_bytes == sum(len(name) + len(value) + 32 for name, value in read._entries)
    assert read.decode(b"\xbe") == [(b"key", b"%0100d" % 999)]
    assert len(read.decode(b"\x40\x03key" + text(b"x" * 5000))) == 1
    assert (read._table_bytes, len(read._entries)) == (0, 0)


def test_a_smaller_table_forgets_at_once() -> None:
    """A new size counts from the moment that it is said, and a known block does not survive it."""
    read = reader()
    read.decode(b"\x40\x01a\x01b")
    assert read.decode(b"\xbe") == [(b"a", b"b")]
    assert read.decode(b"\x20") == []
    with pytest.raises(Http2Error):
        read.decode(b"\xbe")


def test_only_so_many_blocks_are_remembered() -> None:
    """Blocks that change nothing and never come again do not add up, and long ones are not kept at all."""
    read = reader()
    for index in range(1000):
        assert read.decode(b"\x00\x01a" + text(b"%d" % index)) == [(b"a", b"%d" % index)]
    assert len(read._cached_blocks) <= 64
    read.decode(b"\x00\x01a" + text(b"x" * 1000))
    assert all(len(block) <= 512 for block in read._cached_blocks)
