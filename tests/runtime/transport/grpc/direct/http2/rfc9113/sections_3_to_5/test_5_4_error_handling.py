"""RFC 9113, sections 5.4, 5.5 and 7: error handling, extensions and error codes."""

from __future__ import annotations

import struct

import pytest

from tests.runtime.transport.grpc.direct.support.conformance import ECHO, OPEN, check_ignored
from tests.runtime.transport.grpc.direct.support.echo_application import EchoApplication, start_server
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    END_HEADERS,
    FRAME_SIZE_ERROR,
    GOAWAY,
    HEADERS,
    PING,
    connect,
    frame,
    rst_stream,
    settings,
    window_update,
)


async def test_a_goaway_is_the_last_frame_before_the_close() -> None:
    """5.4.1: it has the last stream, and debug data in words; nothing after the error is handled."""
    application = EchoApplication()
    async with start_server(application) as port, connect(port) as peer:
        await peer.ping()
        peer.send(OPEN, frame(HEADERS, END_HEADERS, 5, ECHO), frame(PING, 0, 0, bytes(7)))
        peer.send(frame(HEADERS, END_HEADERS, 7, ECHO))
        frames = await peer.read_to_end()
        assert [each.kind for each in frames] == [GOAWAY]
        assert (frames[0].code, frames[0].last_stream_id) == (FRAME_SIZE_ERROR, 5)
        assert frames[0].payload[8:] == b"the length of a PING frame is not 8"
        await application.wait_until(lambda: sorted(application.aborted_streams) == [1, 5])


async def test_streams_go_on_beside_a_stream_error() -> None:
    """5.4.2: an RST_STREAM is not answered with another one, and frames in flight are discarded."""
    application = EchoApplication()
    async with start_server(application) as port, connect(port) as peer:
        peer.send(peer.request(1, b"/wait"), frame(HEADERS, END_HEADERS, 3, ECHO), window_update(3, 0))
        peer.send(window_update(3, 0), rst_stream(3), rst_stream(3))
        await peer.wait_for(3, 3)
        await peer.ping()
        assert application.connections[0]._streams.keys() == {1}


@pytest.mark.parametrize("code", [14, 0xFF, 2**32 - 1])
@pytest.mark.parametrize("kind", ["RST_STREAM", "GOAWAY"])
async def test_unknown_error_codes_are_like_any_other(kind: str, code: int) -> None:
    """Section 7: no special behaviour."""
    if kind == "RST_STREAM":
        await check_ignored(OPEN + rst_stream(1, code))
    else:
        await check_ignored(frame(GOAWAY, 0, 0, struct.pack(">LL", 0, code)))


@pytest.mark.parametrize("identifier", [0, 7, 0x77, 0xFFFF])
async def test_unknown_settings_are_ignored(identifier: int) -> None:
    """5.5 and 6.5.2."""
    await check_ignored(settings((identifier, 2**32 - 1)))
