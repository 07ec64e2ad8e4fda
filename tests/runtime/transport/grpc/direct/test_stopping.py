"""Stopping a server: calls in flight end, new ones are refused, and the time is bounded."""

from __future__ import annotations

import asyncio

import grpc
import grpc.aio
import pytest

from generated.studio import messages as m
from runtime.call import Call
from runtime.transport.grpc.direct.http2 import server_connection as connection
from tests.runtime.transport.grpc.direct.support import raw_peer as raw
from tests.runtime.transport.grpc.direct.support.echo_application import PATIENCE_S
from tests.runtime.transport.grpc.direct.support.grpc_fixtures import (
    METHOD,
    call_raw,
    frame_message,
    get_print,
    grpc_channel,
    serve_system,
    system_with,
)

REQUEST = m.GetPrintRequest(film_id="x")


class WaitingHandler:
    """A handler that waits."""

    def __init__(self, output: bytes = b"") -> None:
        self.begun, self.go_on, self.cancelled = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._answer = m.GetPrintResponse(found=True, picture=output)

    async def __call__(self, _request: m.GetPrintRequest, _call: Call) -> m.GetPrintResponse:
        self.begun.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return self._answer


async def test_a_call_in_flight_is_answered_and_a_new_one_refused() -> None:
    """A client gets a GOAWAY, and the answers to its earlier calls."""
    waiting = WaitingHandler()
    async with serve_system(waiting) as (port, server), grpc_channel(port) as client:
        call = get_print(client)(REQUEST)
        await waiting.begun.wait()
        stopping = asyncio.create_task(server.stop(PATIENCE_S))
        with pytest.raises(ConnectionError):
            while True:
                await asyncio.sleep(0)
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
        async with asyncio.timeout(PATIENCE_S):
            # Calls before the client has acknowledged the first GOAWAY are served.
            while not all(each._is_going_away for each in server._calls.connections):
                await asyncio.sleep(0)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await get_print(client)(REQUEST)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert not stopping.done()
        waiting.go_on.set()
        assert (await call).found
        await stopping


async def test_an_answer_that_is_still_being_read_is_waited_for() -> None:
    """The response of a finished method may not have been sent yet."""
    waiting = WaitingHandler(bytes(100_000))
    async with serve_system(waiting) as (port, server), raw.connect(port) as client:
        said = ((b"content-type", b"application/grpc"),)
        client.send(raw.frame(raw.HEADERS, raw.END_HEADERS, 1, client.encode(METHOD.path.encode(), *said)))
        client.send(raw.frame(raw.DATA, raw.END_STREAM, 1, frame_message(REQUEST.SerializeToString())))
        await waiting.begun.wait()
        stopping = asyncio.create_task(server.stop(PATIENCE_S))
        assert (await client.acknowledge_drain()).code == raw.NO_ERROR
        waiting.go_on.set()
        got = 0
        while got < 65_535:
            got += len((await client.wait_for(raw.DATA, 1)).payload)
        assert server._calls.tasks == set()
        assert not stopping.done()
        client.send(raw.window_update(0, 100_000), raw.window_update(1, 100_000))
        answer = await client.read_response(1)
        assert got + len(answer.body) > 100_000
        assert answer.headers[b"grpc-status"] == b"0"
        await stopping


async def test_calls_in_flight_after_the_grace_are_aborted() -> None:
    """Its client may retry elsewhere, and its handler is cancelled."""
    waiting = WaitingHandler()
    async with serve_system(waiting) as (port, server), grpc_channel(port) as client:
        call = get_print(client)(REQUEST)
        await waiting.begun.wait()
        await server.stop(0.01)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert waiting.cancelled.is_set()


async def test_silent_clients_do_not_delay_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one that has nothing to say nor one that does not even read."""
    monkeypatch.setattr(connection, "_DRAIN_S", 0.01)
    waiting = WaitingHandler()
    async with (
        serve_system(waiting) as (port, server),
        raw.connect(port) as idle,
        raw.connect(port, b"") as mute,
    ):
        await idle.ping()
        await mute.read_frame()
        await server.stop(PATIENCE_S * 100)
        assert [each.kind for each in await idle.read_to_end()] == [raw.GOAWAY, raw.PING, raw.GOAWAY]
        assert [each.kind for each in await mute.read_to_end()] == [raw.WINDOW_UPDATE, raw.GOAWAY]


async def test_a_client_of_grpc_loses_no_call_while_a_server_stops() -> None:
    """Calls are made all the while, and go to another server as soon as the first one asks for it."""

    async def find_print(_request: m.GetPrintRequest, _call: Call) -> m.GetPrintResponse:
        return m.GetPrintResponse(found=True)

    async with serve_system(find_print) as (first, server), serve_system(find_print) as (second, _):
        target = f"ipv4:127.0.0.1:{first},127.0.0.1:{second}"
        async with grpc.aio.insecure_channel(target) as client:
            method, is_over, made = get_print(client), asyncio.Event(), 0

            async def call_on() -> None:
                nonlocal made
                while not is_over.is_set():
                    assert (await method(REQUEST, timeout=PATIENCE_S)).found
                    made += 1

            callers = [asyncio.create_task(call_on()) for _ in range(20)]
            async with asyncio.timeout(PATIENCE_S):
                while made < 200:
                    await asyncio.sleep(0)
                await server.stop(PATIENCE_S)
                before = made
                while made < before + 200:
                    await asyncio.sleep(0)
            is_over.set()
            await asyncio.gather(*callers)


async def test_no_watch_begins_while_a_server_stops() -> None:
    """It would go on for as long as the server does."""
    waiting = WaitingHandler()
    async with serve_system(waiting) as (port, server), raw.connect(port) as client:
        await client.ping()
        stopping = asyncio.create_task(server.stop(PATIENCE_S))
        assert (await client.wait_for(raw.GOAWAY)).last_stream_id == 2**31 - 1
        watch = await call_raw(client, 1, b"/grpc.health.v1.Health/Watch", frame_message(b""))
        assert (watch.status, watch.message) == (14, "the server stops")
        client.send(raw.frame(raw.PING, raw.ACK, 0, b"draining"))
        await stopping


async def test_a_stop_that_is_cut_short_can_be_finished() -> None:
    """As a node does it, whose own time may be over first."""
    waiting = WaitingHandler()
    async with serve_system(waiting) as (port, server), grpc_channel(port) as client:
        call = get_print(client)(REQUEST)
        await waiting.begun.wait()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await server.stop(PATIENCE_S)
        assert not waiting.cancelled.is_set()
        await server.stop(0)
        assert waiting.cancelled.is_set()
        with pytest.raises(grpc.aio.AioRpcError):
            await call


async def test_a_server_has_so_many_connections() -> None:
    """By its spec; one more is not served, and the others are."""
    waiting = WaitingHandler()
    waiting.go_on.set()
    async with serve_system(waiting, system_with(connections=1)) as (port, _), grpc_channel(port) as client:
        assert (await get_print(client)(REQUEST)).found
        async with raw.connect(port) as another:
            assert await another.read_to_end() == []
        assert (await get_print(client)(REQUEST)).found


async def test_a_used_port_is_reported() -> None:
    """And its socket is closed."""
    waiting = WaitingHandler()
    async with serve_system(waiting) as (port, server):
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}"):
            await server.start("127.0.0.1", port)
