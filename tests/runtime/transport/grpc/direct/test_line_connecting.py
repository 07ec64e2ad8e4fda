"""When a line makes a connection, when it waits before the next one, and when it leaves one."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from hpack import Encoder

from runtime.transport.grpc.direct import channel as grpc_line
from runtime.transport.grpc.direct.channel import Line
from runtime.transport.grpc.direct.messages import Refused
from tests.runtime.transport.grpc.direct.lining import MAX_CONCURRENT_STREAMS, Scripted, lines, say, scripted
from tests.runtime.transport.grpc.direct.peer import (
    DATA,
    GOAWAY,
    PREFACE,
    WINDOW_UPDATE,
    Frame,
    frame,
    settings,
)
from tests.runtime.transport.grpc.direct.tiny import PATIENCE_S

LONG_S = 3600.0
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def dropping(serve: Serve) -> AsyncIterator[tuple[list[int], Line]]:
    """A line to a server that ends each connection after what it does, with the number of each."""
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
    async with lines(f"127.0.0.1:{server.sockets[0].getsockname()[1]}") as line:
        yield made, line
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


async def unavailable(line: Line) -> str:
    """Why a call cannot be made."""
    with pytest.raises(Refused) as refused:
        await say(line)
    assert refused.value.status == "UNAVAILABLE"
    return refused.value.message


@pytest.mark.parametrize("serve", [says_nothing, speaks_http_1, leaves, hears_one_call])
async def test_a_server_that_ends_each_connection_is_not_asked_at_once_again(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be thousands of connections a second; calls meanwhile hear the reason."""
    monkeypatch.setattr(grpc_line, "_PROVEN_S", LONG_S)
    async with dropping(serve) as (made, line):
        line._pause_s = LONG_S
        for _ in range(100):
            why = await unavailable(line)
        # One that stops after its settings may have a successor that takes the next call.
        assert len(made) <= 2
        assert "cannot connect" in why and line._address in why and "ends" in why


async def test_a_server_that_goes_on_so_is_asked_ever_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a connection has proven good."""
    monkeypatch.setattr(grpc_line, "_PROVEN_S", LONG_S)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(made) % 6 == 0:
            script = Scripted(Scripted.echo, settings())
            answering = asyncio.create_task(script.serve(reader, writer))
            await good.wait()
            answering.cancel()

    good = asyncio.Event()
    async with dropping(serve) as (made, line):
        pauses = []
        for _ in range(5):
            line._not_before = 0.0
            await unavailable(line)
            pauses.append(line._pause_s)
        assert len(made) == 5
        assert pauses == sorted(pauses) and pauses[0] > grpc_line._FIRST_PAUSE_S
        assert pauses[-1] == grpc_line._LONGEST_PAUSE_S
        line._not_before = 0.0
        assert await say(line) == b"good"
        good.set()
        async with asyncio.timeout(PATIENCE_S):
            await next(iter(line._alive.values()))
        assert line._pause_s == grpc_line._FIRST_PAUSE_S


async def test_a_connection_that_has_lasted_was_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that restarts is found at once, also where a call was under way."""
    monkeypatch.setattr(grpc_line, "_PROVEN_S", 0.0)
    async with dropping(hears_one_call) as (made, line):
        for _ in range(5):
            assert "lost" in await unavailable(line)
        assert len(made) == 5


async def test_a_call_is_sent_when_the_server_has_introduced_itself() -> None:
    """Nothing of it is lost in what is no connection yet."""
    async with scripted(Scripted.echo, b"") as (script, line):
        call = asyncio.create_task(say(line))
        await script.until(WINDOW_UPDATE)
        for _ in range(100):
            await asyncio.sleep(0)
        assert script.heads == []
        script.writer.write(settings())
        assert await call == b"good"


def go_away(last: int) -> bytes:
    return frame(GOAWAY, payload=struct.pack(">LL", last, 0))


class Leaving:
    """A server whose first connection keeps its calls until it is told what to say to them."""

    def __init__(self) -> None:
        self.old: asyncio.StreamWriter | None = None
        self.kept: list[Frame] = []
        self.encoder = Encoder()
        self._news = asyncio.Event()

    def answer(self, script: Scripted, found: Frame) -> bytes:
        if script.connections > 1:
            return script.echo(found, b"new")
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

    def say(self, *parts: bytes) -> None:
        """Sends something over the first connection."""
        assert self.old is not None
        self.old.write(b"".join(parts))

    def answered(self, stream: int) -> bytes:
        """An answer over the first connection, by the table that it has."""
        script = Scripted(Scripted.echo, b"")
        script.encoder = self.encoder
        return script.echo(Frame(DATA, 0, stream, b""), b"old")


async def test_a_server_that_leaves_in_two_steps_loses_no_call() -> None:
    """Calls under way go on, new ones go elsewhere, and those that it has not begun are made again."""
    leaving = Leaving()
    async with scripted(leaving.answer) as (script, line):
        calls = [asyncio.create_task(say(line)) for _ in range(3)]
        await leaving.has(3)
        (connection,) = line._alive
        leaving.say(go_away(2**31 - 1))
        async with asyncio.timeout(PATIENCE_S):
            while connection.is_open:
                await asyncio.sleep(0)
        assert await say(line) == b"new"
        assert [call.done() for call in calls] == [False] * 3
        leaving.say(leaving.answered(1), go_away(3))
        async with asyncio.timeout(PATIENCE_S):
            assert (await calls[0], await calls[2]) == (b"old", b"new")
        assert not calls[1].done() and connection in line._alive
        gone = line._alive[connection]
        leaving.say(leaving.answered(3))
        async with asyncio.timeout(PATIENCE_S):
            assert await calls[1] == b"old"
            await gone
        assert script.connections == 2 and len(line._alive) == 1


async def test_who_waits_for_room_does_not_wait_for_a_server_that_leaves() -> None:
    """There is room on the next connection."""
    leaving = Leaving()
    async with scripted(leaving.answer, settings((MAX_CONCURRENT_STREAMS, 1))) as (script, line):
        first = asyncio.create_task(say(line))
        await leaving.has(1)
        second = asyncio.create_task(say(line))
        (connection,) = line._alive
        async with asyncio.timeout(PATIENCE_S):
            while connection._freed is None:
                await asyncio.sleep(0)
            leaving.say(go_away(2**31 - 1))
            assert await second == b"new"
        assert not first.done()
        leaving.say(leaving.answered(1))
        async with asyncio.timeout(PATIENCE_S):
            assert await first == b"old"
        assert script.connections == 2
