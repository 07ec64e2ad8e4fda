"""Metadata: what goes along with a call, and what of it concerns that call alone."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from generated.studio import messages as m
from runtime.transport.grpc.carrier import CallRefused, make_client
from tests.runtime.transport.grpc.contract.support.carriers import (
    METHOD,
    PATIENCE_S,
    SYSTEM,
    Gate,
    Sides,
    open_both,
    plain_channel,
    plain_code,
    plain_method,
    plain_server,
    start_server,
)
from tests.support.eventually import eventually

REQUEST = m.GetPrintRequest(film_id="x")
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
BINARY = bytes(range(256))


async def test_the_id_and_the_trace_of_a_request_go_along(sides: Sides) -> None:
    """A handler sees those of its caller, so that the log lines of both can be joined."""
    gate = Gate()
    gate.open()
    async with open_both(sides, gate) as (_, call):
        await call(request_id="request 7", trace=TRACE)
        await call(request_id="request 8")
    assert [(each.request_id, each.trace) for each in gate.calls] == [
        ("request 7", TRACE),
        ("request 8", None),
    ]


async def test_a_client_of_grpc_sends_them_as_metadata(carrier: str) -> None:
    """x-request-id is cut to the limit of a log line, and x-trace-id stands in for a traceparent."""
    gate = Gate()
    gate.open()
    async with start_server(carrier, gate) as served, plain_channel(served.address) as channel:
        metadata = (("x-request-id", "r" * 1000), ("x-trace-id", "a trace"))
        await plain_method(channel)(REQUEST, metadata=metadata)
    assert [(each.request_id, each.trace) for each in gate.calls] == [("r" * 64, "a trace")]


async def test_two_authorization_headers_prove_nothing(carrier: str) -> None:
    """A call that has both is refused, also if both are valid."""
    gate = Gate()
    gate.open()
    async with start_server(carrier, gate) as served, plain_channel(served.address) as channel:
        metadata = (("authorization", "Bearer a"), ("authorization", "Bearer b"))
        assert await plain_code(plain_method(channel)(REQUEST, metadata=metadata)) == "UNAUTHENTICATED"
        (line,) = served.lines.read_back("call_denied")
    assert "more than one authorization header" in line["message"]
    assert gate.begun == 0


async def test_binary_metadata_of_a_client_does_no_harm(carrier: str) -> None:
    """Other implementations send other metadata, such as traces of their own."""
    gate = Gate()
    gate.open()
    async with start_server(carrier, gate) as served, plain_channel(served.address) as channel:
        metadata = (("x-data-bin", BINARY), ("grpc-trace-bin", b"\0\xff"), ("x-request-id", "this"))
        assert (await plain_method(channel)(REQUEST, metadata=metadata)).found
    assert gate.calls[0].request_id == "this"


async def test_binary_metadata_of_a_server_arrives_as_bytes(carrier: str) -> None:
    """Both carriers give the trailing metadata of a failure as the server has written it."""

    async def refuse(_message: bytes, context: Any) -> bytes:
        context.set_trailing_metadata((("x-data-bin", BINARY), ("x-text", "some text")))
        await context.abort(grpc.StatusCode.ABORTED, "no")
        raise AssertionError

    async with plain_server(refuse) as (port, _):
        client = make_client(carrier, SYSTEM, f"127.0.0.1:{port}")
        with pytest.raises(CallRefused) as caught:
            await client.method(METHOD.path)(b"", (), PATIENCE_S)
        await client.close()
    assert (caught.value.status, caught.value.message) == ("ABORTED", "no")
    assert caught.value.metadata["x-data-bin"] == BINARY
    assert caught.value.metadata["x-text"] == "some text"


async def test_large_headers_fail_their_call_alone(carrier: str) -> None:
    """A call on the same connection is answered, whether it was made before or after."""
    gate = Gate()
    async with start_server(carrier, gate) as served, plain_channel(served.address) as channel:
        method = plain_method(channel)
        before = asyncio.ensure_future(as_future(method(REQUEST)))
        await eventually(lambda: gate.begun == 1)
        for size in (17_000, 40_000):
            large = method(REQUEST, metadata=(("x-large", "x" * size),))
            assert await plain_code(large) == "RESOURCE_EXHAUSTED"
        after = asyncio.ensure_future(as_future(method(REQUEST)))
        await eventually(lambda: gate.begun == 2)
        gate.open()
        assert [each.found for each in await asyncio.gather(before, after)] == [True, True]


async def as_future(call: Any) -> Any:
    """A call of gRPC's own library as a coroutine."""
    return await call


async def test_large_headers_of_an_answer_fail_their_call_alone(carrier: str) -> None:
    """A client keeps its connection to a server that answers one of its calls with too much."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def answer(message: bytes, context: Any) -> bytes:
        if message == b"large":
            context.set_trailing_metadata((("x-large", "x" * 20_000),))
        else:
            begun.set()
            await go_on.wait()
        return message

    async with plain_server(answer) as (port, _):
        client = make_client(carrier, SYSTEM, f"127.0.0.1:{port}")
        send = client.method(METHOD.path)
        other = asyncio.ensure_future(send(b"other", (), PATIENCE_S))
        await begun.wait()
        with pytest.raises(CallRefused) as caught:
            await send(b"large", (), PATIENCE_S)
        go_on.set()
        assert await other == b"other"
        await client.close()
    assert caught.value.status in ("RESOURCE_EXHAUSTED", "INTERNAL")
