"""RFC 9113, section 6.7: PING."""

from __future__ import annotations

import pytest

from tests.runtime.transport.grpc.direct.support.conformance import OPEN, check_connection_error
from tests.runtime.transport.grpc.direct.support.echo_application import EchoApplication, start_server
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    ACK,
    FRAME_SIZE_ERROR,
    PING,
    PROTOCOL_ERROR,
    connect,
    frame,
)


async def test_a_ping_is_answered_with_its_own_data() -> None:
    """6.7: each, in order."""
    async with start_server(EchoApplication()) as port, connect(port) as peer:
        peer.send(frame(PING, payload=b"h2spec  "), frame(PING, 0xFE, payload=bytes(8)))
        for expected in (b"h2spec  ", bytes(8)):
            found = await peer.wait_for(PING, flags=ACK)
            assert (found.flags, found.payload) == (ACK, expected)


async def test_an_acknowledged_ping_is_not_answered() -> None:
    """6.7: also if nothing was asked."""
    async with start_server(EchoApplication()) as port, connect(port) as peer:
        peer.send(frame(PING, ACK, payload=b"invalid "), frame(PING, payload=b"asked   "))
        assert (await peer.wait_for(PING, flags=ACK)).payload == b"asked   "


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param(frame(PING, 0, 1, bytes(8)), PROTOCOL_ERROR, id="idle stream"),
        pytest.param(OPEN + frame(PING, 0, 1, bytes(8)), PROTOCOL_ERROR, id="open stream"),
        pytest.param(frame(PING), FRAME_SIZE_ERROR, id="0 bytes"),
        pytest.param(frame(PING, 0, 0, bytes(7)), FRAME_SIZE_ERROR, id="7 bytes"),
        pytest.param(frame(PING, 0, 0, bytes(9)), FRAME_SIZE_ERROR, id="9 bytes"),
        pytest.param(frame(PING, ACK, 0, bytes(6)), FRAME_SIZE_ERROR, id="6 bytes with ACK"),
    ],
)
async def test_a_malformed_ping_is_a_connection_error(sent: bytes, code: int) -> None:
    await check_connection_error(sent, code)
