"""Keepalive of a server connection: pings to a silent client, and clients that never send a preface."""

from __future__ import annotations

import asyncio

import pytest

from runtime.transport.grpc.direct.http2 import keepalive
from tests.runtime.transport.grpc.direct.support.echo_application import (
    PATIENCE_S,
    EchoApplication,
    limits,
    start_server,
)
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    ACK,
    PING,
    PREFACE,
    SETTINGS,
    connect,
    frame,
    settings,
)


async def test_a_client_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """So is one that never gets to the end of its greeting."""
    monkeypatch.setattr(keepalive, "_GRACE_S", 0.05)
    async with start_server(EchoApplication()) as port:
        for greeting in (b"", PREFACE[:10], PREFACE, PREFACE + settings()[:8]):
            async with connect(port, greeting) as peer:
                assert [each.kind for each in await peer.read_to_end()] == [SETTINGS, 8]


async def test_a_silent_client_is_asked_and_given_up() -> None:
    """One that answers when it is asked stays; one that does not goes, with its calls."""
    application = EchoApplication()
    async with start_server(application, limits(ping_every_s=0.02)) as port, connect(port) as peer:
        peer.send(peer.request(1, b"/wait"))
        for _ in range(2):
            asked = await peer.wait_for(PING)
            peer.send(frame(PING, ACK, 0, asked.payload))
            checks = application.connections[0]._keepalive
            async with asyncio.timeout(PATIENCE_S):
                while not checks.has_received:
                    await asyncio.sleep(0)
            # As if the time for an answer were over, which is far longer than a busy machine may need for it.
            checks._check_ping()
        assert application.aborted_streams == []
    silent = EchoApplication()
    quick = limits(ping_every_s=0.02, ping_timeout_s=0.02)
    async with start_server(silent, quick) as port, connect(port) as peer:
        peer.send(peer.request(1, b"/wait"))
        assert PING in [each.kind for each in await peer.read_to_end()]
        assert silent.aborted_streams == [1]


async def test_an_idle_client_is_asked_only_where_that_is_wanted() -> None:
    """Without calls there is nothing to lose, and a client may sleep."""
    application = EchoApplication()
    sleepy = limits(ping_every_s=0.01, idle_pings=False)
    async with start_server(application, sleepy) as port, connect(port) as peer:
        peer.send(peer.request(1))
        await peer.read_response()
        looks = 0
        checks = application.connections[0]._keepalive
        look = checks._send_ping

        def count_checks() -> bool:
            nonlocal looks
            looks += 1
            application._changed.set()
            return look()

        checks._send_ping = count_checks
        await application.wait_until(lambda: looks > 3)
        peer.send(peer.request(3, b"/wait"))
        await peer.wait_for(PING)
