"""RFC 9113, section 4.3: field section compression and decompression."""

from __future__ import annotations

import pytest

from tests.runtime.transport.grpc.direct.support.conformance import (
    ECHO,
    HALF_CLOSED,
    OPEN,
    WAIT,
    check_connection_error,
    request_block,
    split_block,
)
from tests.runtime.transport.grpc.direct.support.echo_application import (
    EchoApplication,
    respond,
    start_server,
)
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    COMPRESSION_ERROR,
    CONTINUATION,
    DATA,
    END_BOTH,
    END_HEADERS,
    ENHANCE_YOUR_CALM,
    HEADERS,
    PING,
    PRIORITY,
    PROTOCOL_ERROR,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    connect,
    frame,
)

LONG = b"\x00\x01n\x7f\x81\x7f" + b"v" * (128 * 127)
UNDECODABLE = {
    "of a request": frame(HEADERS, END_BOTH, 1, b"\x80"),
    "of trailers": OPEN + frame(HEADERS, END_BOTH, 1, b"\xff\xff"),
    "on a closed stream": frame(HEADERS, END_BOTH, 3, WAIT) + frame(HEADERS, END_BOTH, 1, b"\x80"),
    "in CONTINUATION": frame(HEADERS, 1, 1, ECHO) + frame(CONTINUATION, END_HEADERS, 1, b"\x80"),
    "that is cut": frame(HEADERS, END_BOTH, 1, WAIT + LONG[:16_370]),
}


@pytest.mark.parametrize("block", UNDECODABLE)
async def test_a_header_block_that_cannot_be_decoded_is_a_connection_error(block: str) -> None:
    """4.3: COMPRESSION_ERROR, whatever its stream is: both sides would have different tables."""
    await check_connection_error(UNDECODABLE[block], COMPRESSION_ERROR)


@pytest.mark.parametrize(
    ("kind", "stream", "payload"),
    [
        (DATA, 1, b"x"),
        (HEADERS, 3, WAIT),
        (HEADERS, 1, WAIT),
        (PRIORITY, 1, bytes(5)),
        (RST_STREAM, 1, bytes(4)),
        (SETTINGS, 0, b""),
        (PING, 0, bytes(8)),
        (WINDOW_UPDATE, 0, b"\0\0\0\1"),
        (CONTINUATION, 3, b""),
        (0x55, 0, b""),
    ],
)
async def test_another_frame_within_a_header_block_is_a_connection_error(
    kind: int, stream: int, payload: bytes
) -> None:
    """4.3, 5.5, 6.2 and 6.10: PROTOCOL_ERROR, for frames of any type and of any stream."""
    begun = frame(HEADERS, 0, 1, WAIT)
    await check_connection_error(begun + frame(kind, END_BOTH, stream, payload), PROTOCOL_ERROR)


async def test_a_header_block_in_too_many_pieces_is_a_connection_error() -> None:
    """10.5.1: the table cannot stay in step without decoding all of it, so that the connection ends."""
    sent = frame(HEADERS, 0, 1, bytes(16_384)) + frame(CONTINUATION, 0, 1, bytes(16_384)) * 3
    await check_connection_error(sent + frame(CONTINUATION, 0, 1, b"x"), ENHANCE_YOUR_CALM)


async def test_the_table_changes_by_blocks_of_closed_streams() -> None:
    """4.3 and 5.1: a header block that is discarded is decoded."""
    async with start_server(EchoApplication()) as port, connect(port) as peer:
        peer.send(HALF_CLOSED, frame(HEADERS, END_BOTH, 3, ECHO))
        await peer.read_response(3)
        peer.send(frame(HEADERS, END_BOTH, 3, ECHO + b"\x40\x01a\x01b"))
        peer.send(frame(HEADERS, END_BOTH, 5, ECHO + b"\xbe"))
        assert (await peer.read_response(5)).headers == {b":status": b"200"}


@pytest.mark.parametrize("size", [17_000, 60_000])
async def test_a_header_list_that_is_too_large_ends_its_stream_only(size: int) -> None:
    """10.5.1: with status 431; the entries of its block are in the table of later blocks."""
    application = EchoApplication()
    async with start_server(application) as port, connect(port) as peer:
        peer.send(peer.request(1, b"/wait"))
        fields = ((b"x-before", b"1"), (b"x-large", b"x" * size), (b"x-after", b"2" * 99))
        peer.send(split_block(3, peer.encode(b"/echo", *fields)))
        assert (await peer.read_response(3)).headers == {b":status": b"431"}
        again = peer.encode(b"/echo", (b"x-after", b"2" * 99))
        assert len(again) < 99
        peer.send(frame(HEADERS, END_BOTH, 5, again))
        assert (await peer.read_response(5)).headers == {b":status": b"200"}
        assert application.request_headers[5][b"x-after"] == b"2" * 99
        assert application.aborted_streams == []
        respond(*application.waiting[1], b"still here")
        assert (await peer.read_response(1)).body == b"still here"


async def test_a_header_block_may_be_empty_fragments() -> None:
    """4.3: fragments of any size are one block, also those without a byte."""
    async with start_server(EchoApplication()) as port, connect(port) as peer:
        block = request_block(b"/echo", (b"x-a", b"y" * 50))
        peer.send(frame(HEADERS, 1, 1), frame(CONTINUATION, 0, 1), frame(CONTINUATION, 0, 1, block))
        peer.send(frame(CONTINUATION, END_HEADERS, 1))
        assert (await peer.read_response(1)).headers == {b":status": b"200"}
