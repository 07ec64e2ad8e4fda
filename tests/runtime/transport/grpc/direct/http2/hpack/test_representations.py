"""RFC 7541 over a connection: header blocks that a decoder has to accept, and those that it must not."""

from __future__ import annotations

import pytest

from tests.runtime.transport.grpc.direct.support.conformance import ECHO, check_connection_error
from tests.runtime.transport.grpc.direct.support.echo_application import EchoApplication, start_server
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    COMPRESSION_ERROR,
    END_BOTH,
    HEADERS,
    connect,
    frame,
)

HUFFMAN_A = b"\x81\x1f"
"""The string `a`, Huffman-coded: 00011, and padding of ones."""
HUFFMAN_VALUE = bytes.fromhex("8c f1e3c2e5f23a6ba0ab90f4ff")
"""www.example.com, the example of RFC 7541, appendix C.4."""

VALID = {
    "2.3.3 6.1 indexed, static": ([b"\x90"], (b"accept-encoding", b"gzip, deflate")),
    "2.3.3 6.1 indexed, dynamic": ([b"\x40\x01a\x01b", b"\xbe"], (b"a", b"b")),
    "2.3.3 newest entry first": ([b"\x40\x01a\x01b\x40\x01c\x01d", b"\xbf"], (b"a", b"b")),
    "6.2.1 incremental, new name": ([b"\x40\x01a\x01b"], (b"a", b"b")),
    "6.2.1 incremental, indexed name": ([b"\x7a\x01b"], (b"user-agent", b"b")),
    "6.2.1 incremental, dynamic name": ([b"\x40\x01a\x01b", b"\x7e\x01c"], (b"a", b"c")),
    "6.2.1 incremental, Huffman": ([b"\x40" + HUFFMAN_A + HUFFMAN_VALUE], (b"a", b"www.example.com")),
    "6.2.2 without indexing, new name": ([b"\x00\x01a\x01b"], (b"a", b"b")),
    "6.2.2 without indexing, indexed name": ([b"\x0f\x2b\x01b"], (b"user-agent", b"b")),
    "6.2.2 without indexing, Huffman": ([b"\x00" + HUFFMAN_A + HUFFMAN_A], (b"a", b"a")),
    "6.2.3 never indexed, new name": ([b"\x10\x01a\x01b"], (b"a", b"b")),
    "6.2.3 never indexed, indexed name": ([b"\x1f\x2b\x01b"], (b"user-agent", b"b")),
    "6.2.3 never indexed, Huffman": ([b"\x10" + HUFFMAN_A + HUFFMAN_VALUE], (b"a", b"www.example.com")),
    "5.1 integer with a zero byte at its end": (
        [b"\x00\x01a\x7f\x81\x80\x00" + b"v" * 128],
        (b"a", b"v" * 128),
    ),
    "5.2 empty Huffman string": ([b"\x00\x01a\x80"], (b"a", b"")),
}


@pytest.mark.parametrize("representation", VALID)
async def test_a_representation_is_decoded(representation: str) -> None:
    """Behind the pseudo-header fields; each block on a stream of its own."""
    blocks, (name, value) = VALID[representation]
    application = EchoApplication()
    async with start_server(application) as port, connect(port) as peer:
        for at, block in enumerate(blocks):
            peer.send(frame(HEADERS, END_BOTH, 2 * at + 1, ECHO + block))
            assert (await peer.read_response(2 * at + 1)).headers == {b":status": b"200"}
        assert application.request_headers[2 * len(blocks) - 1][name] == value


UPDATES = {
    "6.3 to 0": b"\x20",
    "6.3 to 128": b"\x3f\x61",
    "6.3 to the largest": b"\x3f\xe1\x1f",
    "4.2 two: to 0, and to 4096": b"\x20\x3f\xe1\x1f",
    "4.2 two: to 100, and to 200": b"\x3f\x45\x3f\xa9\x01",
}


@pytest.mark.parametrize("update", UPDATES)
async def test_a_table_size_update_at_the_beginning_is_accepted(update: str) -> None:
    """4.2 and 6.3."""
    async with start_server(EchoApplication()) as port, connect(port) as peer:
        peer.send(frame(HEADERS, END_BOTH, 1, UPDATES[update] + ECHO))
        assert (await peer.read_response(1)).headers == {b":status": b"200"}


INVALID = {
    "2.3.3 index beyond the tables": b"\xbe",
    "2.3.3 large index beyond the tables": b"\xff\xff\x7f",
    "2.3.3 literal with an index beyond the tables": b"\x7e\x01a",
    "2.3.3 literal without indexing, index beyond": b"\x0f\x2f\x01a",
    "4.2 table size update at the end": b"\x20",
    "4.2 table size update within": b"\x20\x00\x01a\x01b",
    "4.3 entry that was evicted": b"\x40\x01a\x01b" + b"\x40\x01c\x7f\x80\x1f" + b"v" * 4095 + b"\xbe",
    "5.1 integer of too many bytes": b"\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    "5.1 integer that does not end": b"\x7f" + b"\x80" * 20 + b"\x01",
    "5.1 integer that is cut": b"\x0f",
    "5.2 literal without a name": b"\x40",
    "5.2 literal without a value": b"\x40\x01a",
    "5.2 name that is cut": b"\x40\x05ab",
    "5.2 value that is cut": b"\x40\x01a\x05b",
    "5.2 string longer than any block": b"\x00\x01a\x7f\xff\xff\x03",
    "5.2 Huffman padding of zeros": b"\x40\x01a\x81\x18",
    "5.2 Huffman padding of more than 7 bits": b"\x40\x01a\x82\x1f\xff",
    "5.2 Huffman EOS": b"\x40\x01a\x84\xff\xff\xff\xff",
    "5.2 Huffman EOS after a letter": b"\x40\x01a\x85\x1f\xff\xff\xff\xff",
    "6.1 index 0": b"\x80",
}


@pytest.mark.parametrize("block", INVALID)
async def test_an_invalid_block_is_a_connection_error(block: str) -> None:
    """COMPRESSION_ERROR (RFC 9113, 4.3), behind fields that are valid."""
    await check_connection_error(frame(HEADERS, END_BOTH, 1, ECHO + INVALID[block]), COMPRESSION_ERROR)


@pytest.mark.parametrize("block", ["2.3.3 index beyond the tables", "6.1 index 0", "5.1 integer that is cut"])
async def test_an_invalid_block_is_a_connection_error_from_its_first_byte(block: str) -> None:
    await check_connection_error(frame(HEADERS, END_BOTH, 1, INVALID[block]), COMPRESSION_ERROR)


@pytest.mark.parametrize("size", [4097, 2**20])
async def test_a_table_size_above_the_limit_is_a_connection_error(size: int) -> None:
    """6.3: larger than SETTINGS_HEADER_TABLE_SIZE."""
    rest, encoded = size - 31, [0x3F]
    while rest >= 128:
        encoded.append(rest % 128 + 128)
        rest //= 128
    block = bytes((*encoded, rest)) + ECHO
    await check_connection_error(frame(HEADERS, END_BOTH, 1, block), COMPRESSION_ERROR)
