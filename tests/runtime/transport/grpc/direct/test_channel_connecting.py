"""When a channel makes a connection, when it waits before the next one, and when it leaves one."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from hpack import Encoder

from runtime.transport.grpc.direct import channel as channel_module
from runtime.transport.grpc.direct.channel import Channel
from runtime.transport.grpc.direct.messages import GrpcStatusError
from tests.runtime.transport.grpc.direct.support.echo_application import PATIENCE_S
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    DATA,
    GOAWAY,
    PREFACE,
    WINDOW_UPDATE,
    Frame,
    frame,
    settings,
)
from tests.runtime.transport.grpc.direct.support.scripted_server import (
    MAX_CONCURRENT_STREAMS,
    ScriptedServer,
    call_echo,
    open_channel,
    scripted_server,
)

LONG_S = 3600.0
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def open_dropped_channel(serve: Serve) -> AsyncIterator[tuple[list[int], Channel]]:
    """A channel to a server that ends each connection after a script, with the number of each."""
    made: list[int] = []

    async def drop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.append(len(made))
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(drop, "127.0.0.1", 0)
    async with open_channel(f"127.0.0.1:{server.sockets[0].getsockname()[1]}") as channel:
        yield made, channel
    server.close()


async def says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    pass


async def speaks_http_1(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readexactly(len(PREFACE))
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")


async def leaves(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readexactly(len(PREFACE))
    writer.write(settings() + frame(GOAWAY, payload=bytes(8)))
    await reader.read()


async def hears_one_call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(settings())
    await reader.readexactly(len(PREFACE) + 60)


async def unavailable(channel: Channel) -> str:
    """Why a call cannot be made."""
    with pytest.raises(GrpcStatusError) as error:
        await call_echo(channel)
    assert error.value.status == "UNAVAILABLE"
    return error.value.message


@pytest.mark.parametrize("serve", [says_nothing, speaks_http_1, leaves, hears_one_call])
async def test_a_server_that_ends_each_connection_is_not_asked_at_once_again(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be thousands of connections a second; calls meanwhile hear the reason."""
    monkeypatch.setattr(channel_module, "_PROVEN_S", LONG_S)
    async with open_dropped_channel(serve) as (made, channel):
        channel._backoff_s = LONG_S
        for _ in range(100):
            why = await unavailable(channel)
        # One that stops after its settings may have a successor that takes the next call.
        assert len(made) <= 2
        assert "cannot connect" in why and channel._address in why and "ends" in why


async def test_a_server_that_goes_on_so_is_asked_ever_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a connection has proven good."""
    monkeypatch.setattr(channel_module, "_PROVEN_S", LONG_S)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(made) % 6 == 0:
            script = ScriptedServer(ScriptedServer.respond, settings())
            serve_task = asyncio.create_task(script.serve(reader, writer))
            await good.wait()
            serve_task.cancel()

    good = asyncio.Event()
    async with open_dropped_channel(serve) as (made, channel):
        pauses = []
        for _ in range(5):
            channel._connect_not_before = 0.0
            await unavailable(channel)
            pauses.append(channel._backoff_s)
        assert len(made) == 5
        assert pauses == sorted(pauses) and pauses[0] > channel_module._FIRST_BACKOFF_S
        assert pauses[-1] == channel_module._MAX_BACKOFF_S
        channel._connect_not_before = 0.0
        assert await call_echo(channel) == b"good"
        good.set()
        async with asyncio.timeout(PATIENCE_S):
            await next(iter(channel._connections.values()))
        assert channel._backoff_s == channel_module._FIRST_BACKOFF_S


async def test_a_connection_that_has_lasted_was_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that restarts is found at once, also where a call was in flight."""
    monkeypatch.setattr(channel_module, "_PROVEN_S", 0.0)
    async with open_dropped_channel(hears_one_call) as (made, channel):
        for _ in range(5):
            assert "lost" in await unavailable(channel)
        assert len(made) == 5


async def test_a_call_is_sent_when_the_server_has_introduced_itself() -> None:
    """No call is lost while there is no connection yet."""
    async with scripted_server(ScriptedServer.respond, b"") as (script, channel):
        call = asyncio.create_task(call_echo(channel))
        await script.wait_for(WINDOW_UPDATE)
        for _ in range(100):
            await asyncio.sleep(0)
        assert script.request_headers == []
        script.writer.write(settings())
        assert await call == b"good"


def go_away(last: int) -> bytes:
    return frame(GOAWAY, payload=struct.pack(">LL", last, 0))


class Leaving:
    """A server whose first connection answers its calls when the test lets it."""

    def __init__(self) -> None:
        self.old: asyncio.StreamWriter | None = None
        self.kept: list[Frame] = []
        self.encoder = Encoder()
        self._news = asyncio.Event()

    def answer(self, script: ScriptedServer, found: Frame) -> bytes:
        if script.connections > 1:
            return script.respond(found, b"new")
        self.old, self.encoder = script.writer, script.encoder
        self.kept.append(found)
        self._news.set()
        return b""

    async def has(self, calls: int) -> None:
        """Returns when so many calls are kept."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.kept) < calls:
                self._news.clear()
                await self._news.wait()

    def send(self, *parts: bytes) -> None:
        """Sends something over the first connection."""
        assert self.old is not None
        self.old.write(b"".join(parts))

    def respond(self, stream: int) -> bytes:
        """An answer over the first connection, by the table that it has."""
        script = ScriptedServer(ScriptedServer.respond, b"")
        script.encoder = self.encoder
        return script.respond(Frame(DATA, 0, stream, b""), b"old")


async def test_a_server_that_leaves_in_two_steps_loses_no_call() -> None:
    """Calls in flight go on, new ones go elsewhere, and those that it has not begun are retried."""
    leaving = Leaving()
    async with scripted_server(leaving.answer) as (script, channel):
        calls = [asyncio.create_task(call_echo(channel)) for _ in range(3)]
        await leaving.has(3)
        (connection,) = channel._connections
        leaving.send(go_away(2**31 - 1))
        async with asyncio.timeout(PATIENCE_S):
            while connection.is_open:
                await asyncio.sleep(0)
        assert await call_echo(channel) == b"new"
        assert [call.done() for call in calls] == [False] * 3
        leaving.send(leaving.respond(1), go_away(3))
        async with asyncio.timeout(PATIENCE_S):
            assert (await calls[0], await calls[2]) == (b"old", b"new")
        assert not calls[1].done() and connection in channel._connections
        gone = channel._connections[connection]
        leaving.send(leaving.respond(3))
        async with asyncio.timeout(PATIENCE_S):
            assert await calls[1] == b"old"
            await gone
        assert script.connections == 2 and len(channel._connections) == 1


async def test_who_waits_for_room_does_not_wait_for_a_server_that_leaves() -> None:
    """There is room on the next connection."""
    leaving = Leaving()
    async with scripted_server(leaving.answer, settings((MAX_CONCURRENT_STREAMS, 1))) as (script, channel):
        first = asyncio.create_task(call_echo(channel))
        await leaving.has(1)
        second = asyncio.create_task(call_echo(channel))
        (connection,) = channel._connections
        async with asyncio.timeout(PATIENCE_S):
            while connection._capacity_freed is None:
                await asyncio.sleep(0)
            leaving.send(go_away(2**31 - 1))
            assert await second == b"new"
        assert not first.done()
        leaving.send(leaving.respond(1))
        async with asyncio.timeout(PATIENCE_S):
            assert await first == b"old"
        assert script.connections == 2
