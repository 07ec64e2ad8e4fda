"""Stopping: a server loses no call in flight, and ends within the grace."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest
from msgspec.structs import replace

from generated.studio import messages as m
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.model.system import Method, RetryProfile
from tests.runtime.transport.grpc.contract.support.carriers import (
    METHOD,
    PATIENCE_S,
    Gate,
    Served,
    Sides,
    open_both,
    open_client,
    open_relay,
    plain_channel,
    plain_code,
    plain_method,
    start_server,
)
from tests.support.eventually import eventually

CALLERS = 20
CUT_OFF = ("UNAVAILABLE", "CANCELLED")
RETRIED = replace(
    METHOD,
    policy=replace(
        METHOD.policy,
        retry=RetryProfile("contract", frozenset(("UNAVAILABLE",)), 5, 10, 2.0, 1000, full_jitter=True),
    ),
)
Ask = Callable[[str], Awaitable[m.GetPrintResponse]]
CLIENTS = ("grpcio", "direct", "plain")


@asynccontextmanager
async def open_any_client(client: str, address: str, method: Method = METHOD) -> AsyncIterator[Ask]:
    """A client of a carrier, or of gRPC's own library."""
    if client != "plain":
        async with open_client(client, address, method=method) as call:
            yield call
        return
    async with plain_channel(address) as channel:
        send = plain_method(channel)

        async def ask(film_id: str) -> m.GetPrintResponse:
            answer: m.GetPrintResponse = await send(
                m.GetPrintRequest(film_id=film_id), timeout=PATIENCE_S, wait_for_ready=True
            )
            return answer

        yield ask


async def outcome(ask: Ask, film_id: str) -> str:
    """The status with which a call ends."""
    try:
        assert (await ask(film_id)).film_id == film_id
    except Failure as failure:
        return failure.grpc
    except grpc.aio.AioRpcError as error:
        return error.code().name
    return "OK"


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_replaced_server_answers_its_calls_in_flight(carrier: str, client: str) -> None:
    """Calls that have begun are answered, and those that come after the GOAWAY go to its successor.

    Between the two grpcio's library refuses calls without beginning them; direct serves them.
    """
    old, new = Gate(), Gate()
    new.open()
    async with (
        start_server(carrier, old) as first,
        open_relay(first.port) as relay,
        open_any_client(client, relay.address) as ask,
        start_server(carrier, new) as second,
    ):
        taken = [asyncio.ensure_future(outcome(ask, str(number))) for number in range(100)]
        await eventually(lambda: old.begun == 100)
        relay.lead_to(second.port)
        stopping = asyncio.ensure_future(first.server.stop(PATIENCE_S))
        later: list[asyncio.Future[str]] = []

        def has_switched() -> bool:
            """Make one call more, until one has met the successor."""
            later.append(asyncio.ensure_future(outcome(ask, "later")))
            return new.begun > 0

        await eventually(has_switched)
        assert not stopping.done()
        old.open()
        assert await asyncio.gather(*taken) == ["OK"] * 100
        ended = Counter(await asyncio.gather(*later))
        await stopping
    assert (old.cancelled, new.cancelled) == (0, 0)
    assert ended["OK"] == old.begun + new.begun - 100
    if carrier == "direct":
        assert ended.total() == ended["OK"]
    assert set(ended) <= {"OK", "CANCELLED" if client == "plain" else "UNAVAILABLE"}


class Load:
    """Callers that make one call after the other until they are ended."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._is_over = False
        self.ended = Counter[str]()
        self._callers = [asyncio.ensure_future(self._call_on(number)) for number in range(CALLERS)]

    async def _call_on(self, number: int) -> None:
        turn = 0
        while not self._is_over:
            turn += 1
            self.ended[await outcome(self._ask, f"{number}.{turn}")] += 1

    async def progress(self, calls: int) -> None:
        """Return when so many more have been answered."""
        least = self.ended["OK"] + calls
        await eventually(lambda: self.ended["OK"] >= least)

    async def end(self) -> None:
        self._is_over = True
        await asyncio.gather(*self._callers)


@pytest.mark.parametrize(
    ("server", "client", "method"),
    [
        *(("direct", client, METHOD) for client in CLIENTS),
        # What grpcio's library refuses between its GOAWAY and the client's hearing of it is made again.
        *(("grpcio", client, RETRIED) for client in ("grpcio", "direct")),
    ],
    ids=lambda value: value if isinstance(value, str) else "retried" if value is RETRIED else "once",
)
async def test_a_server_that_stops_under_load_loses_no_call(server: str, client: str, method: Method) -> None:
    """No call fails, whether it meets the first server, the second, or the moment in between."""
    async with (
        start_server(server) as first,
        start_server(server) as second,
        open_relay(first.port) as relay,
        open_any_client(client, relay.address, method) as ask,
    ):
        load = Load(ask)
        await load.progress(200)
        relay.lead_to(second.port)
        await first.server.stop(PATIENCE_S)
        await load.progress(200)
        await load.end()
    assert set(load.ended) == {"OK"}


async def stop_with_a_call(served: Served, gate: Gate, call: Awaitable[Any], grace: float) -> None:
    """Stop a server that has one call in flight."""
    in_flight = asyncio.ensure_future(call)
    await eventually(lambda: gate.begun == 1)
    async with asyncio.timeout(PATIENCE_S):
        await served.server.stop(grace)
    await in_flight


async def test_calls_in_flight_after_the_grace_are_aborted(sides: Sides) -> None:
    """Its caller may retry elsewhere, and its handler is cancelled."""
    gate = Gate()
    async with open_both(sides, gate) as (served, call):
        with pytest.raises(Failure) as caught:
            await stop_with_a_call(served, gate, call(), 0.01)
        await eventually(lambda: gate.cancelled == 1)
    assert caught.value.grpc in CUT_OFF


async def test_a_client_of_grpc_is_cut_off_after_the_grace(carrier: str) -> None:
    """It has a status that says that the server is gone, and not that the call was wrong."""
    gate = Gate()
    async with start_server(carrier, gate) as served, plain_channel(served.address) as channel:
        in_flight = asyncio.ensure_future(plain_code(plain_method(channel)(m.GetPrintRequest(film_id="x"))))
        await eventually(lambda: gate.begun == 1)
        await served.server.stop(0.01)
        assert await in_flight in CUT_OFF


async def test_a_stop_without_calls_does_not_use_up_its_grace(sides: Sides) -> None:
    """A client that is connected and silent delays no stop."""
    async with open_both(sides) as (served, call):
        await call()
        async with asyncio.timeout(PATIENCE_S):
            await served.server.stop(100 * PATIENCE_S)
        with pytest.raises(Failure) as caught:
            await call(seconds=5)
    assert caught.value.grpc == "UNAVAILABLE"


async def test_a_server_stops_twice(carrier: str) -> None:
    """A stop that is cut short is finished by the next one."""
    gate = Gate()
    async with start_server(carrier, gate) as served, open_client(carrier, served.address) as call:
        in_flight = asyncio.ensure_future(call())
        await eventually(lambda: gate.begun == 1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await served.server.stop(PATIENCE_S)
        assert gate.cancelled == 0
        await served.server.stop(0)
        with pytest.raises(Failure):
            await in_flight
        await eventually(lambda: gate.cancelled == 1)


async def test_a_port_is_free_again_after_a_stop(carrier: str) -> None:
    """The next server listens there at once, and a client finds it."""
    async with (
        start_server(carrier) as first,
        open_client(carrier, first.address, wait_for_ready=True) as call,
    ):
        await call("first")
        await first.server.stop(PATIENCE_S)
        async with start_server(carrier, port=first.port):
            assert (await call("second")).film_id == "second"


async def test_a_port_that_is_taken_is_an_os_error(carrier: str) -> None:
    """The message names the address, for the operator of the node."""
    async with start_server(carrier) as served:
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{served.port}"):
            async with start_server(carrier, port=served.port):
                raise AssertionError
        async with open_client(carrier, served.address) as call:
            await call()


async def test_a_server_that_was_never_started_can_be_stopped(carrier: str) -> None:
    """As a node does whose start has failed."""

    async def handle(_request: m.GetPrintRequest, _call: Call) -> m.GetPrintResponse:
        raise AssertionError

    async with start_server(carrier, handle, is_started=False) as served:
        await served.server.stop(0)


async def test_a_channel_that_closes_ends_its_calls(sides: Sides) -> None:
    """They fail as calls do, and do not look like a cancellation of the caller."""
    gate = Gate()
    async with open_both(sides, gate) as (_, call):
        in_flight = asyncio.ensure_future(call())
        await eventually(lambda: gate.begun == 1)
        await call.channel.close()
        with pytest.raises(Failure) as caught:
            await in_flight
        await eventually(lambda: gate.cancelled == 1)
    assert caught.value.grpc in CUT_OFF
