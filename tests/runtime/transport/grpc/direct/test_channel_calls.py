"""Calls over a channel to a server of gRPC's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

from runtime.call.conditions import CONDITION_HEADER
from runtime.transport.grpc.direct.messages import GrpcStatusError
from tests.runtime.transport.grpc.direct.support.echo_application import GROWING_S, MESSAGE_BYTES, PATIENCE_S
from tests.runtime.transport.grpc.direct.support.scripted_server import (
    UNUSED_ADDRESS,
    call_echo,
    open_channel,
)


class Echo:
    """Responses of every kind."""

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
async def grpcio_server(port: int = 0, **options: int) -> AsyncIterator[tuple[Echo, str, grpc.aio.Server]]:
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
    """With its metadata, over one connection for all calls."""
    async with grpcio_server() as (echo, address, _), open_channel(address) as channel:
        assert await call_echo(channel) == b"hello"
        assert await asyncio.gather(*(call_echo(channel, b"%d" % n) for n in range(200))) == [
            b"%d" % n for n in range(200)
        ]
        assert echo.metadata["x-request-id"] in {(b"%d" % n).hex() for n in range(200)}


@pytest.mark.parametrize("size", [0, 1, 16_384, 200_000, MESSAGE_BYTES])
async def test_long_messages_go_in_both_directions(size: int) -> None:
    """Whatever the windows of the server are."""
    async with (
        grpcio_server(max_receive_message_length=MESSAGE_BYTES) as (_, address, _),
        open_channel(address) as channel,
    ):
        assert await call_echo(channel, bytes(size)) == bytes(size)
        assert await call_echo(channel, b"%d" % size, "/echo.Echo/Grow") == bytes(size)


@pytest.mark.parametrize("algorithm", list(grpc.Compression))
async def test_answers_may_be_compressed(algorithm: grpc.Compression) -> None:
    """With the algorithm that the server prefers."""
    option = {"default_compression_algorithm": algorithm.value}
    async with grpcio_server(**option) as (_, address, _), open_channel(address) as channel:
        assert await call_echo(channel, b"hello" * 1000) == b"hello" * 1000
        with pytest.raises(GrpcStatusError) as error:
            await call_echo(channel, b"%d" % (MESSAGE_BYTES + 1), "/echo.Echo/Grow")
        assert error.value.status == "RESOURCE_EXHAUSTED"


async def test_a_longer_answer_than_was_agreed_is_refused() -> None:
    """And the connection is good for the next call."""
    async with grpcio_server() as (_, address, _), open_channel(address) as channel:
        with pytest.raises(GrpcStatusError) as error:
            await call_echo(channel, b"%d" % (MESSAGE_BYTES + 1), "/echo.Echo/Grow")
        assert error.value.status == "RESOURCE_EXHAUSTED"
        assert await call_echo(channel) == b"hello"


async def test_a_failed_call_has_its_condition() -> None:
    """In the words of the server, whatever is in them."""
    async with grpcio_server() as (_, address, _), open_channel(address) as channel:
        with pytest.raises(GrpcStatusError) as ended:
            await call_echo(channel, path="/echo.Echo/Refuse")
        assert (ended.value.status, ended.value.message) == ("NOT_FOUND", "nö: 100% gone")
        assert (CONDITION_HEADER.encode(), b"GONE") in ended.value.trailers
        with pytest.raises(GrpcStatusError) as unknown:
            await call_echo(channel, path="/echo.Echo/Nothing")
        assert unknown.value.status == "UNIMPLEMENTED"


async def test_who_waits_no_longer_ends_the_call_on_the_other_side_too() -> None:
    """By a deadline, and by a cancel."""
    async with grpcio_server() as (echo, address, _), open_channel(address) as channel:
        for patience in GROWING_S:
            with pytest.raises(GrpcStatusError) as error:
                await call_echo(channel, path="/echo.Echo/Wait", patience=patience)
            assert error.value.status == "DEADLINE_EXCEEDED"
            if echo.begun.is_set():
                break
        async with asyncio.timeout(PATIENCE_S):
            await echo.cancelled.wait()
        echo.begun.clear()
        echo.cancelled.clear()
        call = asyncio.create_task(call_echo(channel, path="/echo.Echo/Wait"))
        async with asyncio.timeout(PATIENCE_S):
            await echo.begun.wait()
            call.cancel()
            await echo.cancelled.wait()
        assert await call_echo(channel) == b"hello"


async def test_calls_wait_for_each_other_where_a_server_takes_few() -> None:
    """As many as it says at a time, and none is refused."""
    async with (
        grpcio_server(max_concurrent_streams=2) as (_, address, _),
        open_channel(address) as channel,
    ):
        await call_echo(channel)
        assert len(await asyncio.gather(*(call_echo(channel) for _ in range(50)))) == 50


async def test_a_server_that_leaves_is_not_asked_again_and_its_successor_is() -> None:
    """Calls in flight are answered, and later ones go to the next listener."""
    async with grpcio_server() as (echo, address, server), open_channel(address) as channel:
        call = asyncio.create_task(call_echo(channel, path="/echo.Echo/Wait"))
        async with asyncio.timeout(PATIENCE_S):
            await echo.begun.wait()
            await server.stop(0.1)
        with pytest.raises(GrpcStatusError) as lost:
            await call
        assert lost.value.status in ("UNAVAILABLE", "CANCELLED")
        async with grpcio_server(int(address.rpartition(":")[2])), asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    assert await call_echo(channel) == b"hello"
                    break
                except GrpcStatusError as error:
                    assert error.status == "UNAVAILABLE"
                    await asyncio.sleep(0.05)


async def test_a_missing_listener_is_reported_at_once() -> None:
    """With the address and the reason; and again without another try, for a while."""
    async with open_channel(UNUSED_ADDRESS) as channel:
        for _ in range(3):
            with pytest.raises(GrpcStatusError) as error:
                await call_echo(channel)
            assert error.value.status == "UNAVAILABLE"
            assert UNUSED_ADDRESS in error.value.message and "refused" in error.value.message
