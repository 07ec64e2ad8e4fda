"""Calls over a channel to a server that says whatever a test wants it to say."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest
from hpack import Encoder

from runtime.transport.grpc.direct.channel import Channel, ResponseHeaders
from runtime.transport.grpc.direct.http2.client_connection import ClientConnection
from runtime.transport.grpc.direct.messages import GrpcStatusError
from tests.runtime.transport.grpc.direct.support.echo_application import GROWING_S, PATIENCE_S, limits
from tests.runtime.transport.grpc.direct.support.raw_peer import (
    ACK,
    CANCEL,
    DATA,
    END_BOTH,
    END_HEADERS,
    GOAWAY,
    HEADERS,
    PREFACE,
    REFUSED_STREAM,
    RST_STREAM,
    Frame,
    frame,
    rst_stream,
    settings,
)
from tests.runtime.transport.grpc.direct.support.scripted_server import (
    HEADER_TABLE_SIZE,
    MAX_CONCURRENT_STREAMS,
    OK,
    UNUSED_ADDRESS,
    ScriptedServer,
    call_echo,
    in_turns,
    open_channel,
    scripted_server,
)


async def test_headers_are_numbers_from_the_second_call_on() -> None:
    """The server decodes the same headers, from a fraction of the bytes."""
    async with scripted_server(ScriptedServer.respond) as (script, channel):
        for _ in range(3):
            assert await call_echo(channel) == b"good"
        assert script.request_headers[0] == script.request_headers[1] == script.request_headers[2]
        blocks = [each.payload for each in script.received if each.kind == HEADERS]
        assert blocks[1] == blocks[2] and len(blocks[1]) < len(blocks[0]) / 2


async def test_a_server_without_a_table_gets_everything_spelled_out() -> None:
    """It would not understand numbers."""
    async with scripted_server(ScriptedServer.respond, settings((HEADER_TABLE_SIZE, 0))) as (script, channel):
        for _ in range(4):
            script.decoder.max_allowed_table_size = 0
            assert await call_echo(channel) == b"good"
        assert script.request_headers[0] == script.request_headers[3]


async def test_a_call_that_was_not_begun_is_retried() -> None:
    """Where a server refuses a stream, and where it leaves before it; on another connection then."""
    turns = iter(["refuses", "leaves", "answers"])

    def answer(script: ScriptedServer, found: Frame) -> bytes:
        match next(turns):
            case "refuses":
                return rst_stream(found.stream, REFUSED_STREAM)
            case "leaves":
                return frame(GOAWAY, payload=bytes(8))
        return script.respond(found)

    async with scripted_server(answer) as (script, channel):
        assert await call_echo(channel) == b"good"
        assert script.connections == 2


async def test_a_server_that_is_full_for_a_moment_is_asked_again() -> None:
    """A server may count a call that it has answered until it has tidied up after it."""
    refusals = iter(range(6))

    def answer(script: ScriptedServer, found: Frame) -> bytes:
        return (
            script.respond(found)
            if next(refusals, None) is None
            else rst_stream(found.stream, REFUSED_STREAM)
        )

    async with scripted_server(answer) as (script, channel):
        assert await call_echo(channel) == b"good"
        assert (script.connections, len(script.request_headers)) == (1, 7)


async def test_a_server_that_takes_nothing_is_not_asked_for_ever() -> None:
    """It is full for a moment at most."""
    async with scripted_server(lambda script, found: rst_stream(found.stream, REFUSED_STREAM)) as (
        script,
        channel,
    ):
        with pytest.raises(GrpcStatusError) as error:
            await call_echo(channel)
        assert error.value.status == "UNAVAILABLE"
        assert len(script.request_headers) == 10


NONSENSE: dict[str, Callable[[ScriptedServer, Frame], bytes]] = {
    "no frames": lambda script, found: b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "frames too long": lambda script, found: b"\xff\xff\xff" + bytes(6),
    "headers that cannot be read": lambda script, found: frame(
        HEADERS, END_BOTH, found.stream, b"\xff\xff\xff"
    ),
    "headers of nobody": lambda script, found: frame(HEADERS, END_BOTH, 99, b"\x88"),
    "data of nobody": lambda script, found: frame(DATA, 0, 99, b"x"),
    "a promise": lambda script, found: frame(5, END_HEADERS, found.stream, bytes(4)),
    "a window beyond all bounds": lambda script, found: frame(8, 0, 0, b"\x7f\xff\xff\xff"),
    "a leave without a number": lambda script, found: frame(GOAWAY, payload=bytes(3)),
}


@pytest.mark.parametrize("name", NONSENSE)
async def test_nonsense_ends_the_call_and_the_connection(name: str) -> None:
    """The next call makes another, and nothing is left behind."""
    async with scripted_server(in_turns(NONSENSE[name], ScriptedServer.respond)) as (script, channel):
        with pytest.raises(GrpcStatusError) as error:
            await call_echo(channel)
        assert error.value.status == "UNAVAILABLE"
        assert await call_echo(channel) == b"good"
        assert script.connections == 2


async def test_a_server_that_says_nothing_is_given_up() -> None:
    """It is asked whether it is there, and then its calls are lost, not forgotten."""
    async with scripted_server(lambda script, found: b"") as (script, channel):
        channel._limits = limits(ping_every_s=0.05, ping_timeout_s=0.05)
        with pytest.raises(GrpcStatusError) as error:
            await call_echo(channel)
        assert error.value.status == "UNAVAILABLE"
        assert (await script.wait_for(6)).kind == 6


async def test_who_hangs_up_in_the_middle_of_an_answer_has_not_answered() -> None:
    """A call that may have been carried out is not made again."""
    hung_up: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(settings())
        hung_up.append(len(await reader.readexactly(len(PREFACE) + 60)))
        writer.write(frame(HEADERS, END_HEADERS, 1, Encoder().encode(OK)))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with open_channel(f"127.0.0.1:{server.sockets[0].getsockname()[1]}") as channel:
        with pytest.raises(GrpcStatusError) as error:
            await call_echo(channel)
        assert error.value.status == "UNAVAILABLE" and "lost" in error.value.message
        assert len(hung_up) == 1
    server.close()


class SlowChannel(Channel):
    """One that takes its time to connect."""

    begun: asyncio.Event
    goes_on: asyncio.Event

    async def _open_connection(self) -> ClientConnection[ResponseHeaders]:
        self.begun.set()
        await self.goes_on.wait()
        return await super()._open_connection()


async def test_a_connection_is_waited_for_no_longer_than_a_call_may_take() -> None:
    """Others who wait for it are not disturbed."""
    async with scripted_server(ScriptedServer.respond) as (script, quick):
        channel = SlowChannel(quick._address, limits())
        channel.begun, channel.goes_on = asyncio.Event(), asyncio.Event()
        patient = asyncio.create_task(call_echo(channel))
        async with asyncio.timeout(PATIENCE_S):
            await channel.begun.wait()
        with pytest.raises(GrpcStatusError) as error:
            await call_echo(channel, patience=0.05)
        assert error.value.status == "DEADLINE_EXCEEDED"
        channel.goes_on.set()
        assert await patient == b"good"
        assert script.connections == 1
        await channel.close()


async def test_a_connection_without_waiting_calls_may_fail() -> None:
    """No call fails by it, and the next call gets the reason."""
    call_raw: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: call_raw.append(context))
    channel = SlowChannel(UNUSED_ADDRESS, limits())
    channel.begun, channel.goes_on = asyncio.Event(), asyncio.Event()
    with pytest.raises(GrpcStatusError) as error:
        await call_echo(channel, patience=0.05)
    assert error.value.status == "DEADLINE_EXCEEDED"
    channel.goes_on.set()
    with pytest.raises(GrpcStatusError) as error:
        await call_echo(channel)
    assert error.value.status == "UNAVAILABLE"
    await channel.close()
    gc.collect()
    assert call_raw == []


async def test_who_waits_for_a_connection_hears_that_the_line_is_closed() -> None:
    """And is not cancelled for it."""
    channel = SlowChannel(UNUSED_ADDRESS, limits())
    channel.begun, channel.goes_on = asyncio.Event(), asyncio.Event()
    call = asyncio.create_task(call_echo(channel))
    async with asyncio.timeout(PATIENCE_S):
        await channel.begun.wait()
    await channel.close()
    with pytest.raises(GrpcStatusError) as error:
        await call
    assert error.value.status == "CANCELLED"


async def test_a_closed_line_leaves_nothing_behind() -> None:
    """Neither tasks nor connections, and makes no new ones."""
    before = asyncio.all_tasks()
    async with scripted_server(lambda script, found: b"") as (script, channel):
        call = asyncio.create_task(call_echo(channel))
        await script.wait_for(DATA)
        await channel.close()
        with pytest.raises(GrpcStatusError):
            await call
        with pytest.raises(GrpcStatusError) as error:
            await call_echo(channel)
        assert error.value.status == "CANCELLED"
    gc.collect()
    async with asyncio.timeout(PATIENCE_S):
        while asyncio.all_tasks() - before:
            await asyncio.sleep(0)


async def test_frames_are_acknowledged() -> None:
    """Settings and pings of the server."""

    def answer(script: ScriptedServer, found: Frame) -> bytes:
        return frame(6, payload=b"12345678") + settings((MAX_CONCURRENT_STREAMS, 1)) + script.respond(found)

    async with scripted_server(answer) as (script, channel):
        assert await call_echo(channel) == b"good"
        ping = await script.wait_for(6)
        assert (ping.flags, ping.payload) == (ACK, b"12345678")


async def test_a_call_whose_caller_is_gone_is_reset() -> None:
    """The server hears of it."""
    async with scripted_server(lambda script, found: b"") as (script, channel):
        for patience in GROWING_S:
            with pytest.raises(GrpcStatusError):
                await call_echo(channel, patience=patience)
            if script.request_headers:
                break
        found = await script.wait_for(RST_STREAM)
        assert found.code == CANCEL
