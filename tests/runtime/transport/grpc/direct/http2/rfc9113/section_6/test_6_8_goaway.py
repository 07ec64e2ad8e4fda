"""RFC 9113, section 6.8: GOAWAY."""

from __future__ import annotations

import struct

import pytest

from tests.runtime.transport.grpc.direct.support.conformance import OPEN, check_connection_error
from tests.runtime.transport.grpc.direct.support.echo_application import (
    EchoApplication,
    respond,
    start_server,
)
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    FRAME_SIZE_ERROR,
    GOAWAY,
    PROTOCOL_ERROR,
    connect,
    frame,
)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param(frame(GOAWAY, 0, 1, bytes(8)), PROTOCOL_ERROR, id="idle stream"),
        pytest.param(OPEN + frame(GOAWAY, 0, 1, bytes(8)), PROTOCOL_ERROR, id="open stream"),
        pytest.param(frame(GOAWAY, 0, 0, bytes(7)), FRAME_SIZE_ERROR, id="7 bytes"),
        pytest.param(frame(GOAWAY), FRAME_SIZE_ERROR, id="0 bytes"),
    ],
)
async def test_a_malformed_goaway_is_a_connection_error(sent: bytes, code: int) -> None:
    await check_connection_error(sent, code)


@pytest.mark.parametrize("last", [0, 1, 2**31 - 1, 2**32 - 1])
@pytest.mark.parametrize("debug_data", [b"", b"goodbye"])
async def test_streams_go_on_after_a_goaway_of_the_client(last: int, debug_data: bytes) -> None:
    """6.8: it limits the streams of the server, which opens none."""
    application = EchoApplication()
    async with start_server(application) as port, connect(port) as peer:
        peer.send(peer.request(1, b"/wait"))
        peer.send(frame(GOAWAY, 0, 0, struct.pack(">LL", last, 0) + debug_data))
        await peer.ping()
        respond(*application.waiting[1], b"done")
        assert (await peer.read_response(1)).body == b"done"
