"""Calls by a client of gRPC itself: messages, deadlines, cancels, failures and many at once."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import unquote

import grpc
import grpc.aio
import pytest

from generated.studio.errors import FilmUnknown
from runtime.call.conditions import CONDITION_HEADER, CallFailed
from runtime.transport.grpc.direct.http2 import flood_guard
from runtime.transport.grpc.direct.messages import RequestHeaders, make_timeout
from tests.runtime.transport.grpc.direct.support import raw_peer as raw
from tests.runtime.transport.grpc.direct.support.echo_application import (
    GROWING_S,
    MESSAGE_BYTES,
    PATIENCE_S,
    make_body,
)
from tests.runtime.transport.grpc.direct.support.grpc_fixtures import (
    call_raw,
    echo,
    frame_message,
    grpc_channel,
    method,
    serve_methods,
)

Names = tuple[bytes, ...]


class WaitingMethod:
    """A method that waits until it is released or cancelled."""

    def __init__(self, stubborn: bool = False) -> None:
        self.begun, self.go_on, self.cancelled = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._stubborn = stubborn

    async def __call__(self, _headers: RequestHeaders, sent: bytes, _names: Names) -> bytes:
        self.begun.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            if not self._stubborn:
                raise
            await self.go_on.wait()
        return sent


async def soon(event: asyncio.Event) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await event.wait()


async def expect_error(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


async def test_a_call_is_answered_at_once_or_later() -> None:
    """Whether its method waits or not, the answer is the method's."""

    async def later(_headers: RequestHeaders, sent: bytes, _names: Names) -> bytes:
        await asyncio.sleep(0)
        return sent[::-1]

    async with (
        serve_methods({"/a/now": echo, "/a/later": later}) as (port, _),
        grpc_channel(port) as client,
    ):
        assert await method(client, "/a/now")(b"abc") == b"abc"
        assert await method(client, "/a/later")(b"abc") == b"cba"
        assert await method(client, "/a/now")(b"") == b""


async def test_metadata_arrives() -> None:
    """The deadline, the token, the request's id and its trace are those of the client."""
    seen: list[RequestHeaders] = []

    async def look(headers: RequestHeaders, _message: bytes, _names: Names) -> bytes:
        seen.append(headers)
        return b""

    async with serve_methods({"/a/look": look}) as (port, _), grpc_channel(port) as client:
        said = (("authorization", "Bearer x"), ("x-request-id", "r" * 500), ("traceparent", "00-1-2-01"))
        await method(client, "/a/look")(b"", timeout=30, metadata=said)
        await method(client, "/a/look")(b"")
    full, bare = seen
    assert (full.metadata.authorization, full.path) == ("Bearer x", b"/a/look")
    assert full.metadata.request_id is not None
    assert full.metadata.request_id.strip("r") == ""
    assert full.timeout is not None
    # The client rounds it up.
    assert 0 < full.timeout < 40
    assert full.metadata.trace == "00-1-2-01"
    assert len(full.metadata.request_id) < 500
    assert (bare.metadata.authorization, bare.metadata.request_id, bare.metadata.trace, bare.timeout) == (
        None,
    ) * 4


async def test_messages_may_be_as_large_as_the_limit_and_no_larger() -> None:
    """In both directions; the status has the limit."""

    async def grow(_headers: RequestHeaders, sent: bytes, _names: Names) -> bytes:
        return make_body(int(sent))

    async with serve_methods({"/a/echo": echo, "/a/grow": grow}) as (port, _), grpc_channel(port) as client:
        most = make_body(MESSAGE_BYTES)
        assert await method(client, "/a/echo")(most) == most
        assert await method(client, "/a/grow")(b"%d" % MESSAGE_BYTES) == most
        for path, sent in (("/a/echo", most + b"x"), ("/a/grow", b"%d" % (MESSAGE_BYTES + 1))):
            error = await expect_error(method(client, path)(sent))
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert f"{MESSAGE_BYTES + 1} bytes" in (error.details() or "")
        assert await method(client, "/a/echo")(b"on") == b"on"


async def test_large_messages_many_at_once() -> None:
    """They share the windows of one connection, and none waits for ever."""
    async with serve_methods({"/a/echo": echo}) as (port, _), grpc_channel(port) as client:
        sent = [make_body(100_000 + number) for number in range(20)]
        assert await asyncio.gather(*map(method(client, "/a/echo"), sent)) == sent


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
async def test_messages_may_be_packed(compression: grpc.Compression) -> None:
    """As gRPC packs them."""
    async with serve_methods({"/a/echo": echo}) as (port, _), grpc_channel(port) as client:
        sent = b"x" * 100_000
        assert await method(client, "/a/echo")(sent, compression=compression) == sent


async def test_a_client_that_stops_waiting_ends_its_call() -> None:
    """A cancel and a deadline of the client's reach the method."""
    waiting = WaitingMethod()
    async with serve_methods({"/a/wait": waiting}) as (port, _), grpc_channel(port) as client:
        call = method(client, "/a/wait")(b"")
        await soon(waiting.begun)
        call.cancel()
        await soon(waiting.cancelled)
    waiting = WaitingMethod()
    async with serve_methods({"/a/wait": waiting}) as (port, _), grpc_channel(port) as client:
        for patience in GROWING_S:
            ended = await expect_error(method(client, "/a/wait")(b"", timeout=patience))
            assert ended.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            if waiting.begun.is_set():
                break
        await soon(waiting.cancelled)


async def test_a_deadline_ends_a_call_without_the_client() -> None:
    """Also if it never says that it has stopped waiting, before the method has begun or after."""
    waiting = WaitingMethod()
    async with serve_methods({"/a/wait": waiting}) as (port, calls), raw.connect(port) as client:
        for turn, patience in enumerate(GROWING_S):
            ended = await call_raw(
                client, 2 * turn + 1, b"/a/wait", frame_message(b""), make_timeout(patience)
            )
            assert (ended.status, ended.is_trailers_only) == (4, True)
            if waiting.begun.is_set():
                break
        await soon(waiting.cancelled)
        waiting.begun.clear()
        block = client.encode(b"/a/wait", (b"content-type", b"application/grpc"), (b"grpc-timeout", b"10m"))
        client.send(raw.frame(raw.HEADERS, raw.END_HEADERS, 99, block), raw.frame(raw.DATA, 0, 99, b"\0\0"))
        assert (await client.read_response(99)).headers[b"grpc-status"] == b"4"
        assert not waiting.begun.is_set()
        assert calls.tasks == set()


async def test_a_call_whose_time_was_over_before_is_not_begun() -> None:
    """It has no client any more."""
    waiting = WaitingMethod()
    async with serve_methods({"/a/wait": waiting}) as (port, _), raw.connect(port) as client:
        assert (
            await call_raw(client, 1, b"/a/wait", frame_message(b""), (b"grpc-timeout", b"0S"))
        ).status == 4
        assert not waiting.begun.is_set()


@pytest.mark.parametrize("timeout", [b"", b"S", b"5", b"-1S", b"1.5S", b"123456789S", b"5s"])
async def test_a_deadline_that_says_nothing_is_none(timeout: bytes) -> None:
    """It would be worse to guess."""
    async with serve_methods({"/a/echo": echo}) as (port, _), raw.connect(port) as client:
        assert (
            await call_raw(client, 1, b"/a/echo", frame_message(b"x"), (b"grpc-timeout", timeout))
        ).status == 0


@pytest.mark.parametrize("end", ["reset", "deadline"])
async def test_a_call_that_goes_on_after_its_end_counts(end: str) -> None:
    """A client that gives up calls does not have more of them at work than its streams allow."""
    waiting = WaitingMethod(stubborn=True)
    async with (
        serve_methods({"/a/wait": waiting, "/a/echo": echo}, streams=1) as (port, calls),
        raw.connect(port) as client,
    ):
        for turn, patience in enumerate(GROWING_S if end == "deadline" else (3600.0,)):
            said = ((b"content-type", b"application/grpc"), make_timeout(patience))
            number = 2 * turn + 1
            client.send(raw.frame(raw.HEADERS, raw.END_HEADERS, number, client.encode(b"/a/wait", *said)))
            client.send(raw.frame(raw.DATA, raw.END_STREAM, number, frame_message(b"")))
            if end == "reset":
                await soon(waiting.begun)
                client.send(raw.rst_stream(number))
            else:
                assert (await client.read_response(number)).headers[b"grpc-status"] == b"4"
            if waiting.begun.is_set():
                break
        await soon(waiting.cancelled)
        client.send(raw.frame(raw.HEADERS, raw.END_BOTH, 97, client.encode(b"/a/echo", *said)))
        assert (await client.wait_for(raw.RST_STREAM, 97)).code == raw.REFUSED_STREAM
        (task,) = calls.tasks
        waiting.go_on.set()
        await asyncio.wait([task])
        await client.ping()
        assert (await call_raw(client, 99, b"/a/echo", frame_message(b"x"))).status == 0


async def test_a_failure_is_sent_with_its_condition() -> None:
    """Code, words in any language, and the name that the spec has for it."""
    words = "kein Auftrag „ü“ 100%\n\t終 \ud800"
    for at_once in (True, False):

        async def fail(
            _headers: RequestHeaders, _message: bytes, _names: Names, at_once: bool = at_once
        ) -> bytes:
            if not at_once:
                await asyncio.sleep(0)
            raise FilmUnknown.from_remote(words, "")

        async with serve_methods({"/a/fail": fail}) as (port, _), grpc_channel(port) as client:
            error = await expect_error(method(client, "/a/fail")(b""))
            assert error.code() is grpc.StatusCode.NOT_FOUND
            assert error.details() == words.replace("\ud800", "?")
            assert dict(error.trailing_metadata() or ())[CONDITION_HEADER] == FilmUnknown.code


async def test_a_failure_of_another_component_has_no_condition() -> None:
    """Only its code and its words."""

    async def fail(_headers: RequestHeaders, _message: bytes, _names: Names) -> bytes:
        raise CallFailed("UNAVAILABLE", "nobody there", "Other")

    async with serve_methods({"/a/fail": fail}) as (port, _), grpc_channel(port) as client:
        error = await expect_error(method(client, "/a/fail")(b""))
        assert (error.code(), error.details()) == (grpc.StatusCode.UNAVAILABLE, "nobody there")
        assert CONDITION_HEADER not in dict(error.trailing_metadata() or ())


@pytest.mark.parametrize("words", [" ", "no film ' '? ", " 100% ü"])
async def test_words_may_begin_and_end_with_blanks(words: str) -> None:
    """No value of a header may (RFC 9113, 8.2.1), so they are escaped, and read again as they were."""

    async def fail(_headers: RequestHeaders, _message: bytes, _names: Names) -> bytes:
        raise CallFailed("ABORTED", words, "Other")

    async with serve_methods({"/a/fail": fail}) as (port, _), raw.connect(port) as client:
        said = (await call_raw(client, 1, b"/a/fail", frame_message(b""))).message
        assert (said.strip(), unquote(said)) == (said, words)
        async with grpc_channel(port) as other:
            assert (await expect_error(method(other, "/a/fail")(b""))).details() == words


async def test_long_messages_are_cut_to_the_limit_of_clients() -> None:
    """A header has to fit into a frame, however many bytes each letter takes."""

    async def fail(_headers: RequestHeaders, _message: bytes, _names: Names) -> bytes:
        raise CallFailed("ABORTED", "\U0001f600" * 50_000, "Other")

    async with serve_methods({"/a/fail": fail}) as (port, _), raw.connect(port) as client:
        ended = await call_raw(client, 1, b"/a/fail", frame_message(b""))
        assert ended.status == 10
        assert ended.message == "%F0%9F%98%80" * 250


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_fault_of_a_method_goes_to_the_loop_and_not_to_the_client(at_once: bool) -> None:
    """The client learns that there is one; its other calls are not concerned."""

    async def fault(_headers: RequestHeaders, _message: bytes, _names: Names) -> bytes:
        if not at_once:
            await asyncio.sleep(0)
        raise ZeroDivisionError("a secret")

    async with (
        serve_methods({"/a/fault": fault, "/a/echo": echo}) as (port, _),
        grpc_channel(port) as client,
    ):
        loop = asyncio.get_running_loop()
        before, heard = loop.get_exception_handler(), list[BaseException]()
        loop.set_exception_handler(lambda _loop, context: heard.append(context["exception"]))
        error = await expect_error(method(client, "/a/fault")(b""))
        loop.set_exception_handler(before)
        assert (error.code(), error.details()) == (grpc.StatusCode.INTERNAL, "the server has a fault")
        assert [type(each) for each in heard] == [ZeroDivisionError]
        assert await method(client, "/a/echo")(b"on") == b"on"


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_method_that_cancels_itself_is_a_cancelled_call(at_once: bool) -> None:
    """Whether it has waited for something before or not."""

    async def give_up(_headers: RequestHeaders, _message: bytes, _names: Names) -> bytes:
        if not at_once:
            await asyncio.sleep(0)
        raise asyncio.CancelledError

    async with serve_methods({"/a/give-up": give_up}) as (port, _), raw.connect(port) as client:
        assert (await call_raw(client, 1, b"/a/give-up", frame_message(b""))).status == 1


async def test_a_thousand_calls_on_one_connection() -> None:
    """Each gets its own answer, whatever the order in which they are ready."""
    go_on = asyncio.Event()

    async def together(_headers: RequestHeaders, sent: bytes, _names: Names) -> bytes:
        if sent == b"999":
            go_on.set()
        await go_on.wait()
        return sent

    async with (
        serve_methods({"/a/together": together}, streams=1024) as (port, calls),
        grpc_channel(port) as client,
    ):
        sent = [b"%d" % number for number in range(1000)]
        assert await asyncio.gather(*map(method(client, "/a/together"), sent)) == sent
        assert len(calls.connections) == 1


async def test_fifty_connections() -> None:
    """Each is served as if it were the only one."""
    async with serve_methods({"/a/echo": echo}) as (port, calls):

        async def one(number: int) -> None:
            async with grpc_channel(port, use_local_subchannel_pool=1) as client:
                for turn in range(5):
                    assert await method(client, "/a/echo")(b"%d %d" % (number, turn)) == b"%d %d" % (
                        number,
                        turn,
                    )
                together.append(len(calls.connections))
                await everybody.wait()

        together, everybody = list[int](), asyncio.Barrier(50)
        await asyncio.gather(*map(one, range(50)))
        assert max(together) == 50


@pytest.mark.parametrize("size", [10, 60_000])
async def test_a_busy_client_of_grpc_is_not_taken_for_a_flood(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hundreds of calls wait at once, each with window updates that come before and after its answer."""
    monkeypatch.setattr(flood_guard, "_SUSPICIOUS_FRAMES_PER_SECOND", 50)
    in_flight, all_in_flight, waiting = 300, asyncio.Event(), 0

    async def wait_for_all(_headers: RequestHeaders, _message: bytes, _names: Names) -> bytes:
        nonlocal waiting
        waiting += 1
        if waiting >= in_flight:
            all_in_flight.set()
        await all_in_flight.wait()
        return make_body(size)

    async with (
        serve_methods({"/a/wait": wait_for_all}, streams=in_flight) as (port, _),
        # Settings that follow its probes of the bandwidth are weighed by their streams, and not meant here.
        grpc_channel(port, **{"http2.bdp_probe": 0}) as client,
    ):
        turns = asyncio.Semaphore(in_flight)

        async def call() -> int:
            async with turns:
                return len(await method(client, "/a/wait")(b"a message"))

        assert set(await asyncio.gather(*(call() for _ in range(4 * in_flight)))) == {size}
