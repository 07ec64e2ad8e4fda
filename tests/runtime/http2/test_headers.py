"""Header blocks against a library: what it writes is read here, and what is written here is read by it."""

from __future__ import annotations

import pytest
from hpack import Decoder, Encoder, HPACKError
from hypothesis import given
from hypothesis import strategies as st

from runtime.http2.frames import Broken, Code
from runtime.http2.headers import LARGEST_LIST, Header, HeaderReader, written

NAMES = st.sampled_from([b":path", b"te", b"content-type", b"x-a", b"x-b", b"x-" + b"n" * 200])
HEADERS = st.lists(st.tuples(NAMES, st.binary(max_size=300)), max_size=8)
PACKED = bytes.fromhex("8c f1e3c2e5f23a6ba0ab90f4ff")
"""A text of the standard's own example, packed: www.example.com."""


def reader() -> HeaderReader[list[Header]]:
    return HeaderReader(list)


def broken(block: bytes, code: Code = Code.COMPRESSION_ERROR) -> None:
    with pytest.raises(Broken) as caught:
        reader().read(block)
    assert caught.value.code is code


@given(st.lists(st.tuples(HEADERS, st.booleans(), st.none() | st.sampled_from([0, 40, 64, 300, 4096]))))
def test_what_the_library_writes_is_read(blocks: list[tuple[list[Header], bool, int | None]]) -> None:
    """Blocks in sequence, packed or not, with tables of any size, say the same here as there."""
    encoder, read = Encoder(), reader()
    for headers, packed, size in blocks:
        if size is not None:
            encoder.header_table_size = size
        block = encoder.encode(headers, huffman=packed)
        assert read.read(block) == headers
        # The same bytes once more: by now the table may have what they name, but they name the same.
        again = encoder.encode(headers, huffman=packed)
        assert read.read(again) == headers


@given(st.lists(st.tuples(st.sampled_from(range(6)), HEADERS), max_size=12))
def test_a_block_that_is_known_says_what_it_says_by_the_table_of_now(
    said: list[tuple[int, list[Header]]],
) -> None:
    """Blocks that only name entries are read anew, and rightly, whenever others have moved the entries."""
    ours, theirs = reader(), Decoder()
    for number, headers in said:
        adding = b"".join(b"\x40" + text(name) + text(value) for name, value in headers)
        assert ours.read(adding) == list(theirs.decode(adding, raw=True))
        known = bytes((0x80 | 62 + number,))
        try:
            expected = list(theirs.decode(known, raw=True))
        except HPACKError:
            with pytest.raises(Broken):
                ours.read(known)
            return
        assert ours.read(known) == expected
        assert ours.read(known) == expected


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
def test_what_is_written_is_read_by_the_library(headers: list[Header]) -> None:
    """A block of ours is plain enough for any reader."""
    decoder = Decoder(max_header_list_size=2**20)
    assert list(decoder.decode(written(headers), raw=True)) == headers


def test_the_example_of_the_standard_is_read() -> None:
    """A packed text, indexed and not, next to entries of the fixed table."""
    assert reader().read(bytes.fromhex("828684") + b"\x41" + PACKED) == [
        (b":method", b"GET"),
        (b":scheme", b"http"),
        (b":path", b"/"),
        (b":authority", b"www.example.com"),
    ]


@pytest.mark.parametrize(
    "block",
    [
        b"\x80",
        bytes((0x80 | 62,)),
        b"\xff\xff\x7f",
        b"\x40",
        b"\x40\x05ab",
        b"\x40\x01a",
        b"\x40\x01a\x05b",
        b"\x00\x01a\x7f\xff\xff\x03",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x7f" + b"\x80" * 20 + b"\x01",
        b"\x3f\xe2\x1f",
        b"\x82\x20",
        b"\x0f",
        b"\x40\x01a\x81\x00",
        b"\x40\x01a\x84\xff\xff\xff\xff",
        b"\x40\x01a\x82\x1f\xff",
    ],
    ids=[
        "index 0",
        "index beyond the table",
        "large index beyond the table",
        "nothing after a literal",
        "a name that is cut",
        "no value",
        "a value that is cut",
        "a text that is longer than any block",
        "a number that is too large",
        "a number that does not end",
        "a table that is too large",
        "a new size after a header",
        "a number that is cut",
        "packed with padding of zeros",
        "packed with the end of all texts",
        "packed with too much padding",
    ],
)
def test_a_block_that_cannot_be_read_ends_the_connection(block: bytes) -> None:
    """Both sides would have different tables from then on."""
    broken(block)


def test_a_name_with_capital_letters_is_none() -> None:
    """Names are lower case in HTTP/2, and whoever compares them relies on it."""
    broken(b"\x40\x04Path\x01x", Code.PROTOCOL_ERROR)
    assert reader().read(b"\x40\x04path\x01X") == [(b"path", b"X")]


def test_a_list_has_a_largest_size() -> None:
    """A few bytes may name large entries many times; as much as was said is read, and not more."""
    value = b"v" * (4096 - 32 - 1)
    read = reader()
    assert len(read.read(b"\x40\x01n" + text(value))) == 1
    most = LARGEST_LIST // 4096
    assert len(read.read(b"\xbe" * most)) == most
    with pytest.raises(Broken) as caught:
        read.read(b"\xbe" * (most + 1))
    assert caught.value.code is Code.ENHANCE_YOUR_CALM


def test_the_table_never_has_more_than_its_size() -> None:
    """Entries that do not fit go, the oldest first, and one that is too large empties the table."""
    read = reader()
    for index in range(1000):
        read.read(b"\x40\x03key" + text(b"%0100d" % index))
        assert read._size <= 4096
        assert read._size == sum(len(name) + len(value) + 32 for name, value in read._entries)
    assert read.read(b"\xbe") == [(b"key", b"%0100d" % 999)]
    assert len(read.read(b"\x40\x03key" + text(b"x" * 5000))) == 1
    assert (read._size, len(read._entries)) == (0, 0)


def test_a_smaller_table_forgets_at_once() -> None:
    """A new size counts from the moment that it is said, and a known block does not survive it."""
    read = reader()
    read.read(b"\x40\x01a\x01b")
    assert read.read(b"\xbe") == [(b"a", b"b")]
    assert read.read(b"\x20") == []
    with pytest.raises(Broken):
        read.read(b"\xbe")


def test_only_so_many_blocks_are_remembered() -> None:
    """Blocks that change nothing and never come again do not add up, and long ones are not kept at all."""
    read = reader()
    for index in range(1000):
        assert read.read(b"\x00\x01a" + text(b"%d" % index)) == [(b"a", b"%d" % index)]
    assert len(read._known) <= 64
    read.read(b"\x00\x01a" + text(b"x" * 1000))
    assert all(len(block) <= 512 for block in read._known)
