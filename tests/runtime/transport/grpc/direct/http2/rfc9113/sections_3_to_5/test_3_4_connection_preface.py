"""RFC 9113, section 3.4: the connection preface."""

from __future__ import annotations

import pytest

from tests.runtime.transport.grpc.direct.support.conformance import ECHO, HALF_CLOSED, check_connection_error
from tests.runtime.transport.grpc.direct.support.echo_application import EchoApplication, start_server
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    ACK,
    CLIENT_PREFACE,
    END_BOTH,
    HEADERS,
    PING,
    PREFACE,
    PROTOCOL_ERROR,
    SETTINGS,
    connect,
    frame,
    settings,
)


@pytest.mark.parametrize("greeting", [CLIENT_PREFACE, PREFACE + settings((3, 100), (4, 65_535))])
async def test_a_valid_preface_is_answered_with_settings(greeting: bytes) -> None:
    """3.4: the server's preface is a SETTINGS frame, which is its first one; the client's is acknowledged."""
    async with start_server(EchoApplication()) as port, connect(port, greeting) as peer:
        first = await peer.read_frame()
        assert first is not None and (first.kind, first.flags, first.stream) == (SETTINGS, 0, 0)
        await peer.wait_for(SETTINGS, flags=ACK)


async def test_a_request_may_follow_the_preface_at_once() -> None:
    """3.4: a client need not wait for the server's SETTINGS."""
    async with start_server(EchoApplication()) as port, connect(port, b"") as peer:
        peer.send(CLIENT_PREFACE + frame(HEADERS, END_BOTH, 1, ECHO))
        assert (await peer.read_response(1)).headers == {b":status": b"200"}


@pytest.mark.parametrize(
    "greeting",
    [
        b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rx",
        b"INVALID CONNECTION PREFACE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        bytes(1000),
        PREFACE + frame(PING, payload=bytes(8)),
        PREFACE + frame(SETTINGS, ACK),
        PREFACE + HALF_CLOSED,
    ],
    ids=[
        *("HTTP/1.1", "last byte", "text", "TLS", "zeros"),
        *("PING first", "SETTINGS with ACK first", "HEADERS first"),
    ],
)
async def test_an_invalid_preface_is_a_connection_error(greeting: bytes) -> None:
    """3.4: PROTOCOL_ERROR."""
    await check_connection_error(b"", PROTOCOL_ERROR, greeting)
