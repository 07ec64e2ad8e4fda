"""What gRPC says over HTTP/2, and what no client of gRPC would send."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from runtime.transport.grpc.direct import server_calls as grpc_calls
from runtime.transport.grpc.direct.http2 import streams
from runtime.transport.grpc.direct.messages import make_timeout
from tests.runtime.transport.grpc.direct.support import raw_peer as raw
from tests.runtime.transport.grpc.direct.support.echo_application import GROWING_S, MESSAGE_BYTES, PATIENCE_S
from tests.runtime.transport.grpc.direct.support.grpc_fixtures import (
    call_raw,
    echo,
    frame_message,
    serve_methods,
)

BIG = bytes(MESSAGE_BYTES + 1)
GZIP, DEFLATE = (b"grpc-encoding", b"gzip"), (b"grpc-encoding", b"deflate")
OK, INVALID, EXHAUSTED, UNIMPLEMENTED, INTERNAL = 0, 3, 8, 12, 13


async def again(messages: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Says everything twice."""
    async for each in messages:
        yield each
        yield each


async def test_an_answer_is_headers_a_message_and_trailers() -> None:
    """As the protocol writes it."""
    async with serve_methods({"/a/echo": echo}) as (port, _), raw.connect(port) as client:
        answer = await call_raw(client, 1, b"/a/echo", frame_message(b"hello"))
        assert answer.fields == {
            b":status": b"200",
            b"content-type": b"application/grpc",
            b"grpc-accept-encoding": b"identity,deflate,gzip",
            b"grpc-status": b"0",
        }
        assert (answer.body, answer.is_trailers_only) == (frame_message(b"hello"), False)


@pytest.mark.parametrize(
    ("body", "status", "more"),
    [
        (None, INVALID, ()),
        (b"", INVALID, ()),
        (frame_message(b"abc")[:-1], INVALID, ()),
        (frame_message(b"abc")[:3], INVALID, ()),
        (frame_message(b"abc") + frame_message(b"def"), INVALID, ()),
        (frame_message(b"abc") + b"\0", INVALID, ()),
        (b"\0\xff\xff\xff\xff", EXHAUSTED, ()),
        (frame_message(gzip.compress(b"abc"), 1), OK, (GZIP,)),
        (frame_message(zlib.compress(b"abc"), 1), OK, (DEFLATE,)),
        (frame_message(b"abc", 0), OK, (GZIP,)),
        (frame_message(gzip.compress(BIG), 1), EXHAUSTED, (GZIP,)),
        (frame_message(gzip.compress(BIG[1:]), 1), OK, (GZIP,)),
        (frame_message(b"abc", 1), INVALID, (GZIP,)),
        (frame_message(b"", 1), INVALID, (GZIP,)),
        (frame_message(gzip.compress(b"abc")[:-1], 1), INVALID, (GZIP,)),
        (frame_message(gzip.compress(b"abc") + b"x", 1), INVALID, (GZIP,)),
        (frame_message(zlib.compress(b"abc"), 1), INVALID, (GZIP,)),
        (frame_message(b"abc", 1), UNIMPLEMENTED, ((b"grpc-encoding", b"snappy"),)),
        (frame_message(b"abc", 1), INTERNAL, ()),
        (frame_message(b"abc", 2), INTERNAL, (GZIP,)),
    ],
    ids=[
        "no body",
        "no message",
        "a message that is cut",
        "a length that is cut",
        "two messages",
        "a message and a little more",
        "a message that would be too long",
        "gzip",
        "deflate",
        "not packed after all",
        "a bomb",
        "a bomb that just fits",
        "not gzip",
        "no gzip",
        "gzip that is cut",
        "gzip and more",
        "deflate as gzip",
        "packed as nobody can",
        "packed without a word",
        "packed in a way that there is not",
    ],
)
async def test_a_call_has_one_message_that_can_be_read(
    body: bytes | None, status: int, more: tuple[tuple[bytes, bytes], ...]
) -> None:
    """Anything else ends that call with its code, and the next one is answered."""
    async with serve_methods({"/a/echo": echo}) as (port, _), raw.connect(port) as client:
        client.send(raw.settings((4, 2**21)) + raw.window_update(0, 2**21))
        assert (await call_raw(client, 1, b"/a/echo", body, *more)).status == status
        assert (await call_raw(client, 3, b"/a/echo", frame_message(b"x"))).body == frame_message(b"x")


@pytest.mark.parametrize("first", [b"\0\x7f\xff\xff\xff", frame_message(b"abc") + b"\0"])
async def test_a_message_that_cannot_be_right_is_refused_before_its_end(first: bytes) -> None:
    """Too long, or longer than it says: the client need not send the rest of it."""
    async with serve_methods({"/a/echo": echo}) as (port, _), raw.connect(port) as client:
        said = ((b"content-type", b"application/grpc"),)
        client.send(raw.frame(raw.HEADERS, raw.END_HEADERS, 1, client.encode(b"/a/echo", *said)))
        client.send(raw.frame(raw.DATA, 0, 1, first))
        assert (await client.read_response(1)).headers[b"grpc-status"] in (b"3", b"8")
        assert (await client.wait_for(raw.RST_STREAM, 1)).code == raw.NO_ERROR
        client.send(raw.frame(raw.DATA, 0, 1, bytes(16_384)) * 3)
        assert (await call_raw(client, 3, b"/a/echo", frame_message(b"x"))).status == OK


async def test_what_begins_and_does_not_end_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection buffers so much of its client's messages, and cancelled calls free it."""
    monkeypatch.setattr(streams, "_MAX_BUFFERED_BYTES", 100_000)
    async with (
        serve_methods({"/a/echo": echo}, message_bytes=20_000) as (port, _),
        raw.connect(port) as client,
    ):
        said = ((b"content-type", b"application/grpc"),)
        part = frame_message(bytes(20_000))[:16_000]
        for number in range(1, 15, 2):
            client.send(raw.frame(raw.HEADERS, raw.END_HEADERS, number, client.encode(b"/a/echo", *said)))
            client.send(raw.frame(raw.DATA, 0, number, part))
        refused = await client.read_response(13)
        assert refused.headers[b"grpc-status"] == b"8"
        client.send(
            raw.rst_stream(1), raw.frame(raw.DATA, raw.END_STREAM, 3, frame_message(bytes(20_000))[16_000:])
        )
        assert (await client.read_response(3)).trailers[b"grpc-status"] == b"0"
        assert (await call_raw(client, 15, b"/a/echo", frame_message(b"x"))).status == OK


async def test_the_buffers_of_all_connections_are_bounded() -> None:
    """Each of them has its share, and not all at once; cancelled calls free it for the others."""
    async with (
        serve_methods({"/a/echo": echo}, message_bytes=20_000) as (port, calls),
        raw.connect(port) as one,
        raw.connect(port) as another,
    ):
        calls.buffer_budget.limit = 40_000
        said = ((b"content-type", b"application/grpc"),)
        for client, number in ((one, 1), (one, 3), (another, 1)):
            client.send(raw.frame(raw.HEADERS, raw.END_HEADERS, number, client.encode(b"/a/echo", *said)))
            client.send(raw.frame(raw.DATA, 0, number, frame_message(bytes(20_000))[:16_000]))
            if client is one:
                await client.ping()
        refused = await another.read_response(1)
        assert refused.headers[b"grpc-status"] == b"8"
        assert refused.headers[b"grpc-message"] == b"too many bytes of incomplete messages on this server"
        assert calls.buffer_budget.used == 32_000
        assert (await call_raw(another, 3, b"/a/echo", frame_message(b"x"))).status == OK
        one.send(raw.rst_stream(1))
        await one.ping()
        another.send(raw.frame(raw.HEADERS, raw.END_HEADERS, 5, another.encode(b"/a/echo", *said)))
        another.send(raw.frame(raw.DATA, 0, 5, frame_message(bytes(20_000))[:16_000]))
        another.send(raw.frame(raw.DATA, raw.END_STREAM, 5, frame_message(bytes(20_000))[16_000:]))
        assert (await another.read_response(5)).trailers[b"grpc-status"] == b"0"


async def test_a_connection_has_so_many_conversations(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more is refused, until another has ended."""
    monkeypatch.setattr(grpc_calls, "_MAX_STREAMING_CALLS", 2)
    async with serve_methods({}, {"/a/again": again}) as (port, _), raw.connect(port) as client:
        said = ((b"content-type", b"application/grpc"),)
        for number in (1, 3):
            client.send(raw.frame(raw.HEADERS, raw.END_HEADERS, number, client.encode(b"/a/again", *said)))
        assert (await call_raw(client, 5, b"/a/again", frame_message(b"x"))).status == EXHAUSTED
        client.send(raw.frame(raw.DATA, raw.END_STREAM, 1))
        assert (await client.read_response(1)).headers[b"grpc-status"] == b"0"
        assert (await call_raw(client, 7, b"/a/again", frame_message(b"x"))).status == OK


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({b":method": b"GET"}, b"405"),
        ({b":method": b"PUT"}, b"405"),
        ({b"content-type": b"application/json"}, b"415"),
        ({b"content-type": b"application/grpc-web"}, b"415"),
        ({b"content-type": b"application/grpcx"}, b"415"),
        ({b"content-type": b""}, b"415"),
        ({b"content-type": b"application/grpc+proto"}, b"200"),
        ({b"content-type": b"application/grpc;charset=x"}, b"200"),
    ],
)
async def test_a_request_that_is_not_grpc_is_refused_in_http(
    changed: dict[bytes, bytes], status: bytes
) -> None:
    """So that a client of another protocol can read it."""
    usual = {
        b":method": b"POST",
        b":scheme": b"http",
        b":path": b"/a/echo",
        b"content-type": b"application/grpc",
    }
    async with serve_methods({"/a/echo": echo}) as (port, _), raw.connect(port) as client:
        block = client.encoder.encode(list({**usual, **changed}.items()))
        client.send(raw.frame(raw.HEADERS, raw.END_BOTH, 1, block))
        assert (await client.read_response(1)).headers[b":status"] == status


async def test_a_method_that_there_is_not_is_unimplemented() -> None:
    """Whatever it is called, and whether there is a message or not."""
    async with serve_methods({"/a/echo": echo}) as (port, _), raw.connect(port) as client:
        for number, path in enumerate((b"/a/other", b"/", b"*", b"/a/\xff\x7f", b"/" + b"x" * 9000)):
            ended = await call_raw(client, 2 * number + 1, path, None if number % 2 else frame_message(b""))
            assert (ended.status, ended.is_trailers_only) == (UNIMPLEMENTED, True)
            assert len(ended.message) < 10_000


async def test_a_stream_goes_in_both_directions() -> None:
    """Messages in any pieces are answered in their order, until the client has said everything."""
    async with serve_methods({}, {"/a/again": again}) as (port, _), raw.connect(port) as client:
        said = frame_message(b"one") + frame_message(b"") + frame_message(gzip.compress(b"three"), 1)
        more = ((b"content-type", b"application/grpc"), GZIP)
        client.send(raw.frame(raw.HEADERS, raw.END_HEADERS, 1, client.encode(b"/a/again", *more)))
        for byte in said:
            client.send(raw.frame(raw.DATA, 0, 1, bytes((byte,))))
        client.send(raw.frame(raw.DATA, raw.END_STREAM, 1))
        answer = await client.read_response(1)
        twice = (each for each in (b"one", b"", b"three") for _ in range(2))
        assert answer.body == b"".join(map(frame_message, twice))
        assert answer.trailers[b"grpc-status"] == b"0"


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (frame_message(bytes(5000)), EXHAUSTED),
        (frame_message(gzip.compress(bytes(5000)), 1), EXHAUSTED),
        (frame_message(b"") * 1000, EXHAUSTED),
        (frame_message(b"abc", 1), INVALID),
    ],
    ids=["too long", "a bomb", "too many", "not packed as said"],
)
async def test_a_conversation_that_is_refused_leaves_nothing_behind(said: bytes, status: int) -> None:
    """The handler stops when the client may send no more."""
    ended = asyncio.Event()

    async def talk(messages: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        try:
            async for each in messages:
                yield each
                await asyncio.Event().wait()
        finally:
            ended.set()

    async with serve_methods({}, {"/a/talk": talk}) as (port, calls), raw.connect(port) as client:
        more = ((b"content-type", b"application/grpc"), GZIP)
        client.send(raw.frame(raw.HEADERS, raw.END_HEADERS, 1, client.encode(b"/a/talk", *more)))
        client.send(raw.frame(raw.DATA, 0, 1, frame_message(b"hello")))
        await client.wait_for(raw.DATA, 1)
        client.send(raw.frame(raw.DATA, 0, 1, said))
        assert (await client.read_response(1)).headers[b"grpc-status"] == b"%d" % status
        async with asyncio.timeout(PATIENCE_S):
            await ended.wait()
            while calls.streaming_tasks:
                await asyncio.sleep(0)


async def test_a_conversation_whose_last_message_is_cut_is_refused() -> None:
    """It is not taken for one that has ended."""
    async with serve_methods({}, {"/a/again": again}) as (port, _), raw.connect(port) as client:
        assert (await call_raw(client, 1, b"/a/again", frame_message(b"one") + b"\0")).status == INVALID


async def test_a_stream_that_is_not_read_ends() -> None:
    """Some answers may wait for a window, and not any number of them."""
    more = asyncio.Event()

    async def talk(messages: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        async for _ in messages:
            for _ in range(3):
                yield bytes(500_000)
            await more.wait()
            yield bytes(500_000)

    async with serve_methods({}, {"/a/talk": talk}) as (port, _), raw.connect(port) as client:
        said = ((b"content-type", b"application/grpc"),)
        client.send(raw.frame(raw.HEADERS, raw.END_HEADERS, 1, client.encode(b"/a/talk", *said)))
        client.send(raw.frame(raw.DATA, 0, 1, frame_message(b"")))
        await client.wait_for(raw.DATA, 1)
        await client.ping()
        more.set()
        assert (await client.wait_for(raw.RST_STREAM, 1)).code == raw.ENHANCE_YOUR_CALM


async def test_a_deadline_in_the_middle_of_a_long_response_is_reported_as_such() -> None:
    """The client gets the first reason at the end of the call."""

    async def talk(messages: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        yield bytes(100_000)
        await asyncio.Event().wait()

    for patience in GROWING_S:
        async with serve_methods({}, {"/a/talk": talk}) as (port, calls), raw.connect(port) as client:
            said = ((b"content-type", b"application/grpc"), make_timeout(patience))
            client.send(raw.frame(raw.HEADERS, raw.END_HEADERS, 1, client.encode(b"/a/talk", *said)))
            while (first := await client.read_frame()) is not None:
                if first.stream == 1 and (first.kind == raw.DATA or first.flags & raw.END_STREAM):
                    break
            assert first is not None
            if first.kind != raw.DATA:
                continue  # The deadline had passed before it began to talk.
            async with asyncio.timeout(PATIENCE_S):
                while calls.streaming_tasks:
                    await client.ping()
            client.send(raw.window_update(0, 100_000), raw.window_update(1, 100_000))
            assert (await client.read_response(1)).headers[b"grpc-status"] == b"4"
            return
    raise AssertionError("no deadline was long enough")
