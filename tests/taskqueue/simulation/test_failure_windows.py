"""Every failure window: each call fails with each fault, alone and in pairs, and every job ends."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from generated.taskqueue.messages import EnqueueJobRequest, JobSpec, RemoveJobIfPresentRequest
from runtime.call.conditions import Failure
from runtime.simulation import Exchange, Fault
from tests.support.deep import DEEP
from tests.support.taskqueue.invariants import Ledger, settle, verify
from tests.support.taskqueue.stack import NO_WORKER, Stack, play

KINDS = (Fault.BEFORE, Fault.AFTER, Fault.TIMEOUT, Fault.LATE)
PAIRS = (
    (Fault.BEFORE, Fault.BEFORE),
    (Fault.BEFORE, Fault.AFTER),
    (Fault.AFTER, Fault.BEFORE),
    (Fault.AFTER, Fault.AFTER),
    (Fault.TIMEOUT, Fault.TIMEOUT),
    (Fault.AFTER, Fault.LATE),
)
MOST_CALLS = 9
"""More than any flow has; later calls repeat these, until the worker gives up."""
NEXT_CALLS = 3
"""The second failure is within so many calls of the first, where its compensation is; `--deep` has all."""
SHORT = JobSpec(job_type="sleep", work_duration_ms=100, payload_size_bytes=4)
FAILING = JobSpec(job_type="fail", work_duration_ms=100)
LONG = JobSpec(job_type="sleep", work_duration_ms=2500)
OUTSIDE = frozenset({"client", "gateway"})
INSIDE = frozenset({"coordinator", "worker"})

Step = Callable[[Stack, Ledger], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class Flow:
    """The preparation, the steps during which calls fail, and the principals whose calls are counted."""

    prepare: Step
    act: Step
    callers: frozenset[str]
    without: tuple[str, ...] = ()


class Outage:
    """Makes the counted calls at some places fail, and those of the same method after them if it lasts."""

    def __init__(self, places: Mapping[int, Fault], callers: frozenset[str], *, lasting: bool) -> None:
        self.play_with_failures = 0
        self._places = places
        self._callers = callers
        self._lasting = lasting
        self._seen = 0
        self._out: dict[tuple[str, str], Fault] = {}

    def __call__(self, exchange: Exchange) -> Fault | None:
        if exchange.principal not in self._callers:
            return None
        called = (exchange.principal, exchange.name)
        if called in self._out:
            return self._out[called]
        fault = self._places.get(self._seen)
        self._seen += 1
        if fault is not None:
            self.play_with_failures += 1
            if self._lasting:
                self._out[called] = fault
        return fault


async def nothing(stack: Stack, ledger: Ledger) -> None:
    """No preparation."""


async def submit(stack: Stack, ledger: Ledger) -> None:
    await ledger.submit(stack, spec=SHORT)


async def submit_keyed(stack: Stack, ledger: Ledger) -> None:
    await ledger.submit(stack, "key", SHORT)


async def submit_failing(stack: Stack, ledger: Ledger) -> None:
    await ledger.submit(stack, spec=FAILING)


async def start_worker(stack: Stack, ledger: Ledger) -> None:
    stack.deployment.start("worker")
    await stack.wait_until_idle(4.0)


async def cancel(stack: Stack, ledger: Ledger) -> None:
    for job_id in sorted(ledger.accepted):
        await ledger.cancel(stack, job_id)


async def start_long(stack: Stack, ledger: Ledger) -> None:
    await ledger.submit(stack, spec=LONG)
    await stack.world.sleep(1.0)


async def cancel_and_wait(stack: Stack, ledger: Ledger) -> None:
    await cancel(stack, ledger)
    await stack.wait_until_idle(4.0)


async def flag_in_flight(stack: Stack, ledger: Ledger) -> None:
    """A cancel that finds the job QUEUED and not in the queue, after which it is there again."""
    await submit(stack, ledger)
    (job_id,) = ledger.accepted
    call = stack.call("gateway")
    await stack.queue.remove_job_if_present(RemoveJobIfPresentRequest(job_id=job_id), call)
    await cancel(stack, ledger)
    await stack.queue.enqueue_job(EnqueueJobRequest(job_id=job_id), call)


async def run_on_lost_worker(stack: Stack, ledger: Ledger) -> None:
    ledger.accepted.add(await stack.submit_and_fetch(SHORT))


async def silence(stack: Stack, ledger: Ledger) -> None:
    await stack.wait_until_idle(9.0)


async def finish(stack: Stack, ledger: Ledger) -> None:
    job_id = await stack.submit_job(SHORT)
    ledger.accepted.add(job_id)
    await stack.wait_until_terminal(job_id)


async def get_result(stack: Stack, ledger: Ledger) -> None:
    for job_id in ledger.accepted:
        try:
            assert (await stack.result(job_id)).result_ready
        except Failure:
            assert [each for each in stack.exchanges if each.fault is not None]


FLOWS = {
    "submit": Flow(nothing, submit, OUTSIDE),
    "submit keyed": Flow(nothing, submit_keyed, OUTSIDE),
    "submit again": Flow(submit_keyed, submit_keyed, OUTSIDE, NO_WORKER),
    "dispatch and success": Flow(submit, start_worker, INSIDE, NO_WORKER),
    "dispatch and failure": Flow(submit_failing, start_worker, INSIDE, NO_WORKER),
    "cancel queued": Flow(submit, cancel, OUTSIDE, NO_WORKER),
    "cancel running": Flow(start_long, cancel_and_wait, OUTSIDE | INSIDE),
    "cancel at dispatch": Flow(flag_in_flight, start_worker, INSIDE, NO_WORKER),
    "worker lost": Flow(run_on_lost_worker, silence, INSIDE, NO_WORKER),
    "get result": Flow(finish, get_result, OUTSIDE),
}


def play_with_failures(
    flow: Flow, places: Mapping[int, Fault], *, lasting: bool, may_vanish: bool = False
) -> int:
    """Play a flow with failures at some of its calls; return how many of them came about."""
    outage = Outage(places, flow.callers, lasting=lasting)

    async def scenario(stack: Stack) -> None:
        ledger = Ledger()
        await flow.prepare(stack, ledger)
        stack.fail(outage)
        await flow.act(stack, ledger)
        await settle(stack)
        await verify(stack, ledger, may_vanish=may_vanish)

    try:
        play(scenario, without=flow.without, WORKER_SLOTS="1")
    except BaseException as error:
        error.add_note(f"with {places}, lasting: {lasting}")
        raise
    return outage.play_with_failures


@pytest.mark.req("TQ-071", "TQ-074", "TQ-081", "TQ-082", "TQ-085", "TQ-166", "TQ-221", "CH-14", "CH-48")
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("flow", FLOWS.values(), ids=FLOWS)
def test_no_single_failure_loses_a_job(flow: Flow, kind: Fault, lasting: bool) -> None:
    """Whichever call of a flow fails, and however, every job ends."""
    for place in count():
        if not play_with_failures(flow, {place: kind}, lasting=lasting):
            assert place > 1
            return


@pytest.mark.req("TQ-071", "TQ-082", "TQ-166", "CH-14", "CH-26", "CH-27", "CH-48", "CH-62")
@pytest.mark.parametrize("kinds", PAIRS, ids=lambda kinds: "-".join(kind.name for kind in kinds))
@pytest.mark.parametrize("name", ["submit", "submit keyed", "dispatch and success", "cancel queued"])
def test_no_two_failures_lose_a_job(name: str, kinds: tuple[Fault, Fault]) -> None:
    """The same when two methods fail, so that the compensation of the first failure fails too."""
    for first in range(MOST_CALLS - 1):
        for second in range(first + 1, MOST_CALLS if DEEP else first + NEXT_CALLS):
            places = {first: kinds[0], second: kinds[1]}
            hit = play_with_failures(FLOWS[name], places, lasting=True, may_vanish=kinds[1] is Fault.LATE)
            if hit < 2:
                break
        if hit == 0:
            return
