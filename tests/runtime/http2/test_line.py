"""Calls over a line: to a server of gRPC's own, and to one that says whatever a test wants it to say."""

from __future__ import annotations

import asyncio
import gc
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest
from hpack import Decoder, Encoder

from runtime.conditions import CONDITION_HEADER
from runtime.grpc_line import Ended, Line, Said
from runtime.grpc_messages import CONTENT_TYPE, Refused, framed, timeout_of
from runtime.http2.calling import Calling
from runtime.http2.headers import Header, written
from tests.runtime.http2.peer import (
    ACK,
    BOTH,
    CALM,
    CANCEL,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    INTERNAL,
    PREFACE,
    REFUSED,
    RST_STREAM,
    SETTINGS,
    Frame,
    frame,
    reset,
    settings,
)
from tests.runtime.http2.tiny import MESSAGE_BYTES, PATIENCE_S, limits

HEADER_TABLE_SIZE, MAX_CONCURRENT_STREAMS = 1, 3
OK = [(":status", "200"), ("content-type", "application/grpc")]
NOBODY = "127.0.0.1:9"


def headers(path: str = "/echo.Echo/Say", *more: Header) -> tuple[Header, ...]:
    return (
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", path.encode()),
        (b":authority", b"here"),
        (b"te", b"trailers"),
        CONTENT_TYPE,
        *more,
    )


async def say(
    line: Line, message: bytes = b"hello", path: str = "/echo.Echo/Say", patience: float = 20
) -> bytes:
    """A call as a channel makes it."""
    varying = written([timeout_of(patience), (b"x-request-id", message[:8].hex().encode())])
    return await line.call(headers(path), varying, framed(message), patience)


@asynccontextmanager
async def lines(address: str, **changed: Any) -> AsyncIterator[Line]:
    line = Line(address, limits(**changed))
    try:
        yield line
    finally:
        await line.close()


# A server of gRPC's own.


class Echo:
    """Answers in every way that a server can."""

    def __init__(self) -> None:
        self.begun, self.cancelled = asyncio.Event(), asyncio.Event()
        self.metadata: dict[str, Any] = {}

    async def say(self, request: bytes, context: Any) -> bytes:
        self.metadata = dict(context.invocation_metadata())
        return request

    async def refuse(self, request: bytes, context: Any) -> bytes:
        context.set_trailing_metadata(((CONDITION_HEADER, "GONE"),))
        await context.abort(grpc.StatusCode.NOT_FOUND, "nö: 100% gone")
        raise AssertionError

    async def wait(self, request: bytes, context: Any) -> bytes:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        return b""

    async def grow(self, request: bytes, context: Any) -> bytes:
        return bytes(int(request))


@asynccontextmanager
async def served(port: int = 0, **options: int) -> AsyncIterator[tuple[Echo, str, grpc.aio.Server]]:
    echo = Echo()
    server = grpc.aio.server(options=[(f"grpc.{name}", value) for name, value in options.items()])
    methods: dict[str, Any] = {
        name.capitalize(): grpc.unary_unary_rpc_method_handler(getattr(echo, name))
        for name in ("say", "refuse", "wait", "grow")
    }
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("echo.Echo", methods)])
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    try:
        yield echo, f"127.0.0.1:{bound}", server
    finally:
        await server.stop(None)


async def test_a_message_is_answered() -> None:
    """With what was sent along, over one connection for all calls."""
    async with served() as (echo, address, _), lines(address) as line:
        assert await say(line) == b"hello"
        assert await asyncio.gather(*(say(line, b"%d" % n) for n in range(200))) == [
            b"%d" % n for n in range(200)
        ]
        assert echo.metadata["x-request-id"] in {(b"%d" % n).hex() for n in range(200)}


@pytest.mark.parametrize("size", [0, 1, 16_384, 200_000, MESSAGE_BYTES])
async def test_long_messages_go_both_ways(size: int) -> None:
    """Whatever the windows of the server are."""
    async with served(max_receive_message_length=MESSAGE_BYTES) as (_, address, _), lines(address) as line:
        assert await say(line, bytes(size)) == bytes(size)
        assert await say(line, b"%d" % size, "/echo.Echo/Grow") == bytes(size)


async def test_a_longer_answer_than_was_agreed_is_refused() -> None:
    """And the connection is good for the next call."""
    async with served() as (_, address, _), lines(address) as line:
        with pytest.raises(Refused) as refused:
            await say(line, b"%d" % (MESSAGE_BYTES + 1), "/echo.Echo/Grow")
        assert refused.value.status == "RESOURCE_EXHAUSTED"
        assert await say(line) == b"hello"


async def test_how_a_call_ended_is_told_with_its_condition() -> None:
    """In the words of the server, whatever is in them."""
    async with served() as (_, address, _), lines(address) as line:
        with pytest.raises(Ended) as ended:
            await say(line, path="/echo.Echo/Refuse")
        assert (ended.value.status, ended.value.message) == ("NOT_FOUND", "nö: 100% gone")
        assert ended.value.condition == "GONE"
        with pytest.raises(Ended) as unknown:
            await say(line, path="/echo.Echo/Nothing")
        assert unknown.value.status == "UNIMPLEMENTED"


async def test_who_waits_no_longer_ends_the_call_on_the_other_side_too() -> None:
    """By a deadline, and by a cancel."""
    async with served() as (echo, address, _), lines(address) as line:
        with pytest.raises(Refused) as refused:
            await say(line, path="/echo.Echo/Wait", patience=0.2)
        assert refused.value.status == "DEADLINE_EXCEEDED"
        async with asyncio.timeout(PATIENCE_S):
            await echo.cancelled.wait()
        echo.begun.clear()
        echo.cancelled.clear()
        call = asyncio.create_task(say(line, path="/echo.Echo/Wait"))
        async with asyncio.timeout(PATIENCE_S):
            await echo.begun.wait()
            call.cancel()
            await echo.cancelled.wait()
        assert await say(line) == b"hello"


async def test_calls_wait_for_each_other_where_a_server_takes_few() -> None:
    """As many as it says at a time, and none is refused."""
    async with served(max_concurrent_streams=2) as (_, address, _), lines(address) as line:
        await say(line)
        assert len(await asyncio.gather(*(say(line) for _ in range(50)))) == 50


async def test_a_server_that_leaves_is_not_asked_again_and_its_successor_is() -> None:
    """What is under way is answered, and what comes later goes to whoever listens then."""
    async with served() as (echo, address, server), lines(address) as line:
        call = asyncio.create_task(say(line, path="/echo.Echo/Wait"))
        async with asyncio.timeout(PATIENCE_S):
            await echo.begun.wait()
            await server.stop(0.1)
        with pytest.raises(Refused) as lost:
            await call
        assert lost.value.status in ("UNAVAILABLE", "CANCELLED")
        async with served(int(address.rpartition(":")[2])), asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    assert await say(line) == b"hello"
                    break
                except Refused as refused:
                    assert refused.status == "UNAVAILABLE"
                    await asyncio.sleep(0.05)


async def test_nobody_there_is_told_at_once() -> None:
    """With the address and the reason; and again without another try, for a while."""
    async with lines(NOBODY) as line:
        for _ in range(3):
            with pytest.raises(Refused) as refused:
                await say(line)
            assert refused.value.status == "UNAVAILABLE"
            assert NOBODY in refused.value.message and "refused" in refused.value.message


# A server that says what it is told to say.


class Scripted:
    """The other end of one connection after the other."""

    def __init__(self, answer: Callable[[Scripted, Frame], bytes], greeting: bytes) -> None:
        self._answer = answer
        self._greeting = greeting
        self.decoder, self.encoder = Decoder(), Encoder()
        self.heard: list[Frame] = []
        self.heads: list[dict[str, str]] = []
        self.connections = 0
        self._news = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.decoder, self.encoder = Decoder(), Encoder()
        try:
            assert await reader.readexactly(len(PREFACE)) == PREFACE
            writer.write(self._greeting)
            while True:
                head = await reader.readexactly(9)
                payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
                kind, flags, stream = struct.unpack(">BBL", head[3:])
                found = Frame(kind, flags, stream, payload)
                self.heard.append(found)
                if found.kind == HEADERS:
                    self.heads.append({str(name): str(value) for name, value in self.decoder.decode(payload)})
                self._news.set()
                if found.flags & END_STREAM and found.kind == DATA:
                    writer.write(self._answer(self, found))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def until(self, kind: int) -> Frame:
        """The first frame of a kind."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for each in self.heard:
                    if each.kind == kind and not (kind == SETTINGS and each.flags & ACK):
                        return each
                self._news.clear()
                await self._news.wait()

    def said(self, stream: int, *blocks: Sequence[tuple[str, str]], body: bytes = b"") -> bytes:
        """Headers, a body and trailers, or trailers alone."""
        encoded = [self.encoder.encode(each) for each in blocks]
        first = [frame(HEADERS, END_HEADERS, stream, each) for each in encoded[:-1]]
        return b"".join((*first, body, frame(HEADERS, BOTH, stream, encoded[-1])))

    def echo(self, found: Frame) -> bytes:
        """A good answer."""
        return self.said(
            found.stream, OK, [("grpc-status", "0")], body=frame(DATA, 0, found.stream, framed(b"good"))
        )


@asynccontextmanager
async def scripted(
    answer: Callable[[Scripted, Frame], bytes], greeting: bytes | None = None
) -> AsyncIterator[tuple[Scripted, Line]]:
    script = Scripted(answer, settings() if greeting is None else greeting)
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    async with lines(f"127.0.0.1:{server.sockets[0].getsockname()[1]}") as line:
        yield script, line
    server.close()


async def test_headers_are_numbers_from_the_second_call_on() -> None:
    """What the server reads is the same, in a fraction of the bytes."""
    async with scripted(Scripted.echo) as (script, line):
        for _ in range(3):
            assert await say(line) == b"good"
        assert script.heads[0] == script.heads[1] == script.heads[2]
        blocks = [each.payload for each in script.heard if each.kind == HEADERS]
        assert blocks[1] == blocks[2] and len(blocks[1]) < len(blocks[0]) / 2


async def test_a_server_without_a_table_gets_everything_spelled_out() -> None:
    """It would not understand numbers."""
    async with scripted(Scripted.echo, settings((HEADER_TABLE_SIZE, 0))) as (script, line):
        for _ in range(4):
            script.decoder.max_allowed_table_size = 0
            assert await say(line) == b"good"
        assert script.heads[0] == script.heads[3]


@pytest.mark.parametrize(
    ("code", "status"),
    [(INTERNAL, "INTERNAL"), (CANCEL, "CANCELLED"), (CALM, "RESOURCE_EXHAUSTED"), (99, "INTERNAL")],
)
async def test_a_call_that_is_cut_off_is_told_by_its_code(code: int, status: str) -> None:
    """The connection goes on."""
    async with scripted(lambda script, found: reset(found.stream, code)) as (script, line):
        for _ in range(2):
            with pytest.raises(Refused) as refused:
                await say(line)
            assert refused.value.status == status
        assert script.connections == 1


async def test_a_call_that_nobody_has_begun_is_made_again() -> None:
    """Where a server refuses a stream, and where it leaves before it; on another connection then."""
    turns = iter(["refuses", "leaves", "answers"])

    def answer(script: Scripted, found: Frame) -> bytes:
        match next(turns):
            case "refuses":
                return reset(found.stream, REFUSED)
            case "leaves":
                return frame(GOAWAY, payload=bytes(8))
        return script.echo(found)

    async with scripted(answer) as (script, line):
        assert await say(line) == b"good"
        assert script.connections == 2


async def test_a_server_that_takes_nothing_is_not_asked_for_ever() -> None:
    """Three times is enough."""
    async with scripted(lambda script, found: reset(found.stream, REFUSED)) as (script, line):
        with pytest.raises(Refused) as refused:
            await say(line)
        assert refused.value.status == "UNAVAILABLE"
        assert len(script.heads) == 3


@pytest.mark.parametrize(
    ("http", "status"),
    [("401", "UNAUTHENTICATED"), ("404", "UNIMPLEMENTED"), ("503", "UNAVAILABLE"), ("418", "UNKNOWN")],
)
async def test_what_is_no_grpc_is_told_by_its_status(http: str, status: str) -> None:
    """A proxy may stand between."""
    async with scripted(lambda script, found: script.said(found.stream, [(":status", http)])) as (_, line):
        with pytest.raises(Refused) as refused:
            await say(line)
        assert refused.value.status == status and http in refused.value.message


NONSENSE: dict[str, Callable[[Scripted, Frame], bytes]] = {
    "no frames": lambda script, found: b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "frames too long": lambda script, found: b"\xff\xff\xff" + bytes(6),
    "headers that cannot be read": lambda script, found: frame(HEADERS, BOTH, found.stream, b"\xff\xff\xff"),
    "headers of nobody": lambda script, found: frame(HEADERS, BOTH, 99, b"\x88"),
    "data of nobody": lambda script, found: frame(DATA, 0, 99, b"x"),
    "a promise": lambda script, found: frame(5, END_HEADERS, found.stream, bytes(4)),
    "a window beyond all bounds": lambda script, found: frame(8, 0, 0, b"\x7f\xff\xff\xff"),
    "a leave without a number": lambda script, found: frame(GOAWAY, payload=bytes(3)),
}


@pytest.mark.parametrize("name", NONSENSE)
async def test_nonsense_ends_the_call_and_the_connection(name: str) -> None:
    """The next call makes another, and nothing is left behind."""
    turns = iter([NONSENSE[name], Scripted.echo])

    def answer(script: Scripted, found: Frame) -> bytes:
        return next(turns)(script, found)

    async with scripted(answer) as (script, line):
        with pytest.raises(Refused) as refused:
            await say(line)
        assert refused.value.status == "UNAVAILABLE"
        assert await say(line) == b"good"
        assert script.connections == 2


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"", "INVALID_ARGUMENT"), (b"\0\0\0\0\5cut", "INVALID_ARGUMENT"), (b"\1\0\0\0\1x", "INTERNAL")],
)
async def test_half_an_answer_is_none(body: bytes, status: str) -> None:
    """Whatever its status says."""

    def answer(script: Scripted, found: Frame) -> bytes:
        return script.said(found.stream, OK, [("grpc-status", "0")], body=frame(DATA, 0, found.stream, body))

    async with scripted(answer) as (_, line):
        with pytest.raises(Refused) as refused:
            await say(line)
        assert refused.value.status == status


async def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked whether it is there, and then its calls are lost, not forgotten."""
    async with scripted(lambda script, found: b"") as (script, line):
        line._limits = limits(ping_every_s=0.05, ping_timeout_s=0.05)
        with pytest.raises(Refused) as refused:
            await say(line)
        assert refused.value.status == "UNAVAILABLE"
        assert (await script.until(6)).kind == 6


async def test_who_hangs_up_in_the_middle_of_an_answer_has_not_answered() -> None:
    """A call that may have been carried out is not made again."""
    hung_up: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hung_up.append(len(await reader.readexactly(len(PREFACE) + 60)))
        writer.write(settings() + frame(HEADERS, END_HEADERS, 1, Encoder().encode(OK)))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with lines(f"127.0.0.1:{server.sockets[0].getsockname()[1]}") as line:
        with pytest.raises(Refused) as refused:
            await say(line)
        assert refused.value.status == "UNAVAILABLE" and "lost" in refused.value.message
        assert len(hung_up) == 1
    server.close()


class SlowLine(Line):
    """One that takes its time to connect."""

    begun: asyncio.Event
    goes_on: asyncio.Event

    async def _reach(self) -> Calling[Said]:
        self.begun.set()
        await self.goes_on.wait()
        return await super()._reach()


async def test_a_connection_is_waited_for_no_longer_than_a_call_may_take() -> None:
    """Others who wait for it are not disturbed."""
    async with scripted(Scripted.echo) as (script, quick):
        line = SlowLine(quick._address, limits())
        line.begun, line.goes_on = asyncio.Event(), asyncio.Event()
        patient = asyncio.create_task(say(line))
        async with asyncio.timeout(PATIENCE_S):
            await line.begun.wait()
        with pytest.raises(Refused) as refused:
            await say(line, patience=0.05)
        assert refused.value.status == "DEADLINE_EXCEEDED"
        line.goes_on.set()
        assert await patient == b"good"
        assert script.connections == 1
        await line.close()


async def test_a_connection_that_nobody_waits_for_any_more_may_fail() -> None:
    """Nobody is told of it, and the next call hears why."""
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context))
    line = SlowLine(NOBODY, limits())
    line.begun, line.goes_on = asyncio.Event(), asyncio.Event()
    with pytest.raises(Refused) as refused:
        await say(line, patience=0.05)
    assert refused.value.status == "DEADLINE_EXCEEDED"
    line.goes_on.set()
    with pytest.raises(Refused) as refused:
        await say(line)
    assert refused.value.status == "UNAVAILABLE"
    await line.close()
    gc.collect()
    assert told == []


async def test_who_waits_for_a_connection_hears_that_the_line_is_closed() -> None:
    """And is not cancelled for it."""
    line = SlowLine(NOBODY, limits())
    line.begun, line.goes_on = asyncio.Event(), asyncio.Event()
    call = asyncio.create_task(say(line))
    async with asyncio.timeout(PATIENCE_S):
        await line.begun.wait()
    await line.close()
    with pytest.raises(Refused) as refused:
        await call
    assert refused.value.status == "CANCELLED"


async def test_a_closed_line_leaves_nothing_behind() -> None:
    """Neither tasks nor connections, and makes no new ones."""
    before = asyncio.all_tasks()
    async with scripted(lambda script, found: b"") as (script, line):
        call = asyncio.create_task(say(line))
        await script.until(DATA)
        await line.close()
        with pytest.raises(Refused):
            await call
        with pytest.raises(Refused) as refused:
            await say(line)
        assert refused.value.status == "CANCELLED"
    gc.collect()
    async with asyncio.timeout(PATIENCE_S):
        while asyncio.all_tasks() - before:
            await asyncio.sleep(0)


async def test_frames_are_acknowledged() -> None:
    """Settings and pings of the server."""

    def answer(script: Scripted, found: Frame) -> bytes:
        return frame(6, payload=b"12345678") + settings((MAX_CONCURRENT_STREAMS, 1)) + script.echo(found)

    async with scripted(answer) as (script, line):
        assert await say(line) == b"good"
        ping = await script.until(6)
        assert (ping.flags, ping.payload) == (ACK, b"12345678")


async def test_a_call_to_whom_nobody_listens_is_reset() -> None:
    """The server hears of it."""
    async with scripted(lambda script, found: b"") as (script, line):
        with pytest.raises(Refused):
            await say(line, patience=0.05)
        found = await script.until(RST_STREAM)
        assert found.code == CANCEL
