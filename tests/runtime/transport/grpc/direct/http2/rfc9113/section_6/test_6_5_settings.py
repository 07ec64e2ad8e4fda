"""RFC 9113, section 6.5: SETTINGS."""

from __future__ import annotations

import pytest

from tests.runtime.transport.grpc.direct.support.conformance import (
    OPEN,
    check_connection_error,
    check_ignored,
)
from tests.runtime.transport.grpc.direct.support.echo_application import EchoApplication, start_server
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    ACK,
    DATA,
    FLOW_CONTROL_ERROR,
    FRAME_SIZE_ERROR,
    INITIAL_WINDOW_SIZE,
    MAX_FRAME_SIZE,
    PROTOCOL_ERROR,
    SETTINGS,
    connect,
    frame,
    settings,
    window_update,
)

ENABLE_PUSH, MAX_CONCURRENT_STREAMS, MAX_HEADER_LIST_SIZE = 2, 3, 6


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param(frame(SETTINGS, ACK, 0, bytes(6)), FRAME_SIZE_ERROR, id="6.5 ACK with a payload"),
        pytest.param(frame(SETTINGS, 0, 1), PROTOCOL_ERROR, id="6.5 on an idle stream"),
        pytest.param(OPEN + frame(SETTINGS, 0, 1), PROTOCOL_ERROR, id="6.5 on an open stream"),
        pytest.param(frame(SETTINGS, 0, 0, bytes(3)), FRAME_SIZE_ERROR, id="6.5 half a setting"),
        pytest.param(frame(SETTINGS, 0, 0, bytes(11)), FRAME_SIZE_ERROR, id="6.5 one and a half"),
        pytest.param(settings((ENABLE_PUSH, 2)), PROTOCOL_ERROR, id="6.5.2 ENABLE_PUSH of 2"),
        pytest.param(settings((INITIAL_WINDOW_SIZE, 2**31)), FLOW_CONTROL_ERROR, id="6.5.2 window of 2^31"),
        pytest.param(
            settings((INITIAL_WINDOW_SIZE, 2**31), (INITIAL_WINDOW_SIZE, 1)),
            FLOW_CONTROL_ERROR,
            id="6.5.2 window of 2^31, and a valid one",
        ),
        pytest.param(settings((MAX_FRAME_SIZE, 2**14 - 1)), PROTOCOL_ERROR, id="6.5.2 frames below 2^14"),
        pytest.param(settings((MAX_FRAME_SIZE, 2**24)), PROTOCOL_ERROR, id="6.5.2 frames above 2^24-1"),
    ],
)
async def test_malformed_settings_are_connection_errors(sent: bytes, code: int) -> None:
    await check_connection_error(sent, code)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(settings((ENABLE_PUSH, 0)) + settings((ENABLE_PUSH, 1)), id="ENABLE_PUSH"),
        pytest.param(settings((INITIAL_WINDOW_SIZE, 2**31 - 1)), id="largest window"),
        pytest.param(settings((MAX_FRAME_SIZE, 2**14)), id="smallest frames"),
        pytest.param(settings((MAX_FRAME_SIZE, 2**24 - 1)), id="largest frames"),
        pytest.param(settings((MAX_CONCURRENT_STREAMS, 0)), id="no streams"),
        pytest.param(settings((MAX_HEADER_LIST_SIZE, 2**32 - 1)), id="largest header list"),
        pytest.param(settings((1, 0)) + settings((1, 2**32 - 1)), id="header tables"),
        pytest.param(frame(SETTINGS, ACK), id="ACK of the server's"),
    ],
)
async def test_valid_settings_are_accepted(sent: bytes) -> None:
    """6.5.2: the bounds belong to the ranges."""
    await check_ignored(sent)


async def test_settings_are_acknowledged() -> None:
    """6.5.3: each frame once, in order and without a payload; an ACK is not."""
    async with start_server(EchoApplication()) as port, connect(port) as peer:
        peer.send(settings((ENABLE_PUSH, 0)), frame(SETTINGS, ACK), settings())
        for _ in range(3):
            assert (await peer.wait_for(SETTINGS, flags=ACK)).payload == b""
        await peer.ping()


async def test_settings_are_handled_in_the_order_of_the_frame() -> None:
    """6.5.3: the last value of a setting counts."""
    async with start_server(EchoApplication()) as port, connect(port) as peer:
        peer.send(settings((INITIAL_WINDOW_SIZE, 100), (INITIAL_WINDOW_SIZE, 1)))
        await peer.wait_for(SETTINGS, flags=ACK)
        peer.send(peer.request(1, b"/large/2"))
        assert len((await peer.wait_for(DATA, 1)).payload) == 1
        peer.send(window_update(1, 1))
        assert len((await peer.wait_for(DATA, 1)).payload) == 1
