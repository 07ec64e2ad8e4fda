"""Deadlines and cancellation: a handler knows how long its caller waits, and when it does not any more."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from msgspec.structs import replace

from generated.studio import messages as m
from runtime.call.conditions import Failure
from tests.runtime.transport.grpc.contract.support.carriers import (
    GROWING_S,
    METHOD,
    PATIENCE_S,
    Caller,
    Gate,
    Sides,
    open_both,
    plain_channel,
    plain_method,
    start_server,
)
from tests.support.eventually import eventually

DETACHED = replace(METHOD, detached=True)


async def expire(call: Caller, gate: Gate) -> None:
    """Make a call that is in flight when its deadline expires."""
    for seconds in GROWING_S:
        with pytest.raises(Failure) as caught:
            await call(seconds=seconds)
        assert caught.value.grpc == "DEADLINE_EXCEEDED"
        if gate.begun:
            return
    raise AssertionError("no call has begun before its deadline")


async def test_a_handler_sees_the_time_that_its_caller_waits(sides: Sides) -> None:
    """The remaining time is that of the caller, which grpcio rounds up by less than a hundredth."""
    gate = Gate()
    gate.open()
    async with open_both(sides, gate) as (_, call):
        await call(seconds=PATIENCE_S / 2)
    remaining = gate.calls[0].remaining()
    assert remaining is not None
    assert 0 < remaining <= 1.01 * PATIENCE_S / 2


async def test_a_call_without_a_deadline_has_none(carrier: str) -> None:
    """A client of gRPC's own library that gives no timeout waits for ever."""
    gate = Gate()
    gate.open()
    async with start_server(carrier, gate) as served, plain_channel(served.address) as channel:
        await plain_method(channel)(m.GetPrintRequest(film_id="x"))
    assert gate.calls[0].remaining() is None


async def test_a_deadline_that_passes_ends_both_sides(sides: Sides) -> None:
    """The caller gets DEADLINE_EXCEEDED, the handler is cancelled, and the log has one line of it."""
    gate = Gate()
    async with open_both(sides, gate) as (served, call):
        await expire(call, gate)
        await eventually(lambda: gate.cancelled == gate.begun)
        await eventually(lambda: len(served.lines.read_back("rpc_error")) >= gate.begun)
        lines = served.lines.read_back("rpc_error")
    assert {line["grpc_code"] for line in lines} <= {"DEADLINE_EXCEEDED", "CANCELLED"}
    assert gate.ended == 0


async def test_a_deadline_of_a_client_of_grpc_cancels_the_handler(carrier: str) -> None:
    """A handler does not go on for a caller of another implementation that has given up."""
    gate = Gate()
    async with start_server(carrier, gate) as served, plain_channel(served.address) as channel:
        for seconds in GROWING_S:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await plain_method(channel)(m.GetPrintRequest(film_id="x"), timeout=seconds)
            assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            if gate.begun:
                break
        await eventually(lambda: gate.begun and gate.cancelled == gate.begun)


async def test_a_caller_that_is_cancelled_cancels_the_handler(sides: Sides) -> None:
    """The handler ends, the other calls of the connection go on, and the log has the cancellation."""
    gate = Gate()
    async with open_both(sides, gate) as (served, call):
        given_up, kept = asyncio.ensure_future(call("given up")), asyncio.ensure_future(call("kept"))
        await eventually(lambda: gate.begun == 2)
        given_up.cancel()
        await eventually(lambda: gate.cancelled == 1)
        gate.open()
        assert (await kept).film_id == "kept"
        with pytest.raises(asyncio.CancelledError):
            await given_up
        await eventually(lambda: served.lines.read_back("rpc_error"))
        (line,) = served.lines.read_back("rpc_error")
    assert (line["grpc_code"], line["message"]) == ("CANCELLED", "its caller stopped waiting")


async def test_a_detached_method_goes_on_without_its_caller(sides: Sides) -> None:
    """Its steps are carried through to their end, and it knows that its caller is gone."""
    gate = Gate()
    async with open_both(sides, gate, method=DETACHED) as (served, call):
        given_up = asyncio.ensure_future(call())
        await eventually(lambda: gate.begun == 1)
        given_up.cancel()
        await eventually(lambda: gate.calls[0].gone)
        assert (gate.cancelled, gate.ended) == (0, 0)
        gate.open()
        await served.endpoint.drain()
    assert (gate.cancelled, gate.ended) == (0, 1)


async def test_a_detached_method_goes_on_beyond_its_deadline(sides: Sides) -> None:
    """The caller has its DEADLINE_EXCEEDED, and the steps their end."""
    gate = Gate()
    async with open_both(sides, gate, method=DETACHED) as (served, call):
        await expire(call, gate)
        await eventually(lambda: gate.calls[-1].gone)
        gate.open()
        await served.endpoint.drain()
    assert (gate.cancelled, gate.ended) == (0, gate.begun)
