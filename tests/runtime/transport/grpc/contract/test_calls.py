"""Calls: each is answered, whatever else is in flight, and sees nothing of the others."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from contextvars import ContextVar

import pytest

from generated.studio import messages as m
from runtime.call import Call
from tests.runtime.transport.grpc.contract.support.carriers import (
    Gate,
    Sides,
    open_both,
    open_client,
    plain_channel,
    plain_method,
    start_server,
    with_limits,
)
from tests.support.eventually import eventually

MANY = 1000
seen: ContextVar[str] = ContextVar("seen", default="nothing")


async def test_a_call_is_answered(sides: Sides) -> None:
    """The answer is the one that the handler gave for this request."""
    async with open_both(sides) as (_, call):
        assert await call("a film") == m.GetPrintResponse(found=True, film_id="a film")


async def test_calls_at_once_each_have_their_own_answer(sides: Sides) -> None:
    """Of many calls on one connection no two answers are mistaken for each other."""
    async with open_both(sides) as (_, call):
        answers = await asyncio.gather(*(call(str(number)) for number in range(300)))
    assert [each.film_id for each in answers] == [str(number) for number in range(300)]


async def test_a_thousand_calls_are_in_flight(sides: Sides) -> None:
    """All of them have begun before the first of them is answered, and all are answered."""
    gate = Gate()
    async with open_both(sides, gate) as (_, call):
        calls = [asyncio.ensure_future(call(str(number))) for number in range(MANY)]
        await eventually(lambda: gate.begun == MANY)
        gate.open()
        answers = await asyncio.gather(*calls)
    assert [each.film_id for each in answers] == [str(number) for number in range(MANY)]


async def test_calls_beyond_the_streams_of_a_connection_wait_for_their_turn(sides: Sides) -> None:
    """No more have begun than the spec allows on a connection, and the others are answered after them."""
    gate = Gate()
    async with open_both(sides, gate, system=with_limits(concurrent_streams=10)) as (_, call):
        calls = [asyncio.ensure_future(call(str(number))) for number in range(50)]
        await eventually(lambda: gate.begun == 10)
        gate.open()
        answers = await asyncio.gather(*calls)
    assert [each.film_id for each in answers] == [str(number) for number in range(50)]


async def test_clients_that_begin_together_are_all_served(carrier: str) -> None:
    """Thousands of calls that arrive before the event loop turns to them wait, and none is refused."""
    gate = Gate()
    async with start_server(carrier, gate) as served, AsyncExitStack() as clients:
        callers = [await clients.enter_async_context(open_client("direct", served.address)) for _ in range(4)]
        calls = [asyncio.ensure_future(call(str(number))) for call in callers for number in range(MANY)]
        await eventually(lambda: gate.begun == 4 * MANY or any(each.done() for each in calls))
        gate.open()
        answers = await asyncio.gather(*calls)
    assert [each.film_id for each in answers] == [str(number) for number in range(MANY)] * 4


async def test_calls_that_are_given_up_at_once_do_not_keep_others_from_being_served(carrier: str) -> None:
    """A client that begins and cancels calls in a row has no more in flight than the spec allows."""
    gate = Gate()
    system = with_limits(concurrent_streams=50)
    async with (
        start_server(carrier, gate, system=system) as served,
        open_client("grpcio", served.address) as call,
    ):
        async with plain_channel(served.address) as channel:
            hasty = plain_method(channel)
            for _ in range(20):
                begun = [hasty(m.GetPrintRequest(film_id="hasty")) for _ in range(100)]
                await asyncio.sleep(0)
                for each in begun:
                    each.cancel()
            gate.open()
            assert (await call("patient")).film_id == "patient"
        await eventually(lambda: gate.begun == gate.cancelled + gate.ended)


async def test_answers_come_in_any_order(sides: Sides) -> None:
    """A call that waits does not delay later ones."""
    turns = [asyncio.Event() for _ in range(20)]

    async def handle(request: m.GetPrintRequest, _call: Call) -> m.GetPrintResponse:
        await turns[int(request.film_id)].wait()
        return m.GetPrintResponse(film_id=request.film_id)

    answered: list[str] = []
    async with open_both(sides, handle) as (_, call):

        async def ask(number: int) -> None:
            answered.append((await call(str(number))).film_id)

        calls = [asyncio.ensure_future(ask(number)) for number in range(20)]
        for number in reversed(range(20)):
            turns[number].set()
            await calls[number]
    assert answered == [str(number) for number in reversed(range(20))]


@pytest.mark.parametrize("size", [0, 1, 16_384, 3_000_000])
async def test_a_message_of_any_size_arrives_as_it_was_sent(sides: Sides, size: int) -> None:
    """An empty message is one, and a large one arrives whole, in both directions."""
    text = "".join(f"{number:08d}" for number in range(-(-size // 8)))[:size]
    async with open_both(sides) as (_, call):
        assert (await call(text)).film_id == text


async def test_an_empty_answer_is_an_answer(sides: Sides) -> None:
    """An empty message differs from no message."""

    async def handle(_request: m.GetPrintRequest, _call: Call) -> m.GetPrintResponse:
        return m.GetPrintResponse()

    async with open_both(sides, handle) as (_, call):
        assert await call("") == m.GetPrintResponse()


async def test_a_call_sees_no_context_variable_of_another(sides: Sides) -> None:
    """Each has a task and variables of its own, whether they follow each other or run side by side."""
    found: list[str] = []
    tasks: set[asyncio.Task[object] | None] = set()

    async def handle(request: m.GetPrintRequest, _call: Call) -> m.GetPrintResponse:
        found.append(seen.get())
        tasks.add(asyncio.current_task())
        seen.set(request.film_id)
        await asyncio.sleep(0)
        return m.GetPrintResponse(film_id=seen.get())

    async with open_both(sides, handle) as (_, call):
        for number in range(3):
            assert (await call(str(number))).film_id == str(number)
        answers = await asyncio.gather(*(call(str(number)) for number in range(5)))
    assert [each.film_id for each in answers] == [str(number) for number in range(5)]
    assert found == ["nothing"] * 8
    assert len(tasks) == 8
