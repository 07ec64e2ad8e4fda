"""The queue: first in, first out, no id twice, no job lost, and no longer wait than needed."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated.taskqueue.lifecycle import ENTRY
from generated.taskqueue.messages import (
    DequeueJobRequest,
    DequeueJobResponse,
    EnqueueJobRequest,
    RemoveJobIfPresentRequest,
)
from generated.taskqueue.records import EntryRecord
from generated.taskqueue.system import SYSTEM
from handlers.taskqueue.queue import Queue
from runtime.call import Call
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.simulation import SimulatedWorld, simulate
from runtime.stores.memory import MemoryStore
from tests.runtime.hand_world import Lines

STEPS = st.lists(
    st.tuples(st.sampled_from(["enqueue", "dequeue", "remove"]), st.sampled_from("abcde")), max_size=40
)


class Fixture:
    """A queue and the calls that reach it."""

    def __init__(self, world: SimulatedWorld) -> None:
        self.world = world
        self.lines = Lines()
        self.entries: MemoryStore[EntryRecord] = MemoryStore(SYSTEM, ENTRY, EntryRecord, world, Metrics())
        self.queue = Queue(self.entries, world)

    def call(self, seconds: float | None = None) -> Call:
        deadline = None if seconds is None else self.world.monotonic() + seconds
        log = Log("queue", "INFO", self.world, self.lines)
        return Call(
            world=self.world, log=log, caller="coordinator", deadline=deadline, fields={"worker_id": "w"}
        )

    async def enqueue(self, *job_ids: str, at_ms: int = 0) -> None:
        for job_id in job_ids:
            request = EnqueueJobRequest(job_id=job_id, enqueued_at_ms=at_ms)
            assert (await self.queue.enqueue_job(request, self.call())).accepted

    async def pop(self, seconds: float | None = 1.0) -> DequeueJobResponse:
        return await self.queue.dequeue_job(DequeueJobRequest(worker_id="w"), self.call(seconds))

    async def remove(self, job_id: str) -> bool:
        request = RemoveJobIfPresentRequest(job_id=job_id)
        return (await self.queue.remove_job_if_present(request, self.call())).removed


@pytest.mark.req("TQ-079", "TQ-080", "CH-41")
def test_jobs_are_dequeued_in_the_order_of_arrival() -> None:
    """Order is that of arrival, whatever time the caller claims; a popped id is not in the queue any more."""

    async def scenario(world: SimulatedWorld) -> None:
        fixture = Fixture(world)
        for place, job_id in enumerate("abc"):
            await fixture.enqueue(job_id, at_ms=1000 - place)
        assert [(await fixture.pop()).job_id for _ in range(3)] == ["a", "b", "c"]
        assert not (await fixture.pop()).found

    simulate(scenario)


@pytest.mark.req("TQ-072", "CH-19")
def test_an_id_is_enqueued_once() -> None:
    """An id that waits already is accepted, keeps its position, and is not enqueued twice."""

    async def scenario(world: SimulatedWorld) -> None:
        fixture = Fixture(world)
        await fixture.enqueue("a", "b", "a")
        assert [(await fixture.pop()).job_id for _ in range(2)] == ["a", "b"]
        assert not (await fixture.pop()).found

    simulate(scenario)


@pytest.mark.req("CH-20")
def test_a_dequeued_id_may_be_enqueued_again() -> None:
    """Popped or removed, an id may be enqueued anew, at the tail."""

    async def scenario(world: SimulatedWorld) -> None:
        fixture = Fixture(world)
        await fixture.enqueue("a", "b")
        await fixture.pop()
        await fixture.enqueue("a")
        assert await fixture.remove("b")
        await fixture.enqueue("b")
        assert [(await fixture.pop()).job_id for _ in range(2)] == ["a", "b"]

    simulate(scenario)


@pytest.mark.req("TQ-116")
def test_a_removal_is_idempotent() -> None:
    """The first removal finds the id, the second does not, and both are fine."""

    async def scenario(world: SimulatedWorld) -> None:
        fixture = Fixture(world)
        await fixture.enqueue("a")
        assert [await fixture.remove("a"), await fixture.remove("a")] == [True, False]

    simulate(scenario)


@pytest.mark.req("TQ-081", "TQ-072", "TQ-080")
@given(STEPS)
def test_nothing_is_lost_whatever_the_order(steps: list[tuple[str, str]]) -> None:
    """Any mix of enqueues, pops and removals has the same result as on an ordered set."""

    async def scenario(world: SimulatedWorld) -> None:
        fixture, model = Fixture(world), OrderedDict[str, None]()
        for step, job_id in steps:
            if step == "enqueue":
                await fixture.enqueue(job_id)
                model.setdefault(job_id)
            elif step == "remove":
                assert await fixture.remove(job_id) == (job_id in model)
                model.pop(job_id, None)
            elif model:
                assert (await fixture.pop()).job_id == model.popitem(last=False)[0]
        assert [(await fixture.pop()).job_id for _ in model] == list(model)

    simulate(scenario)


@pytest.mark.req("CH-29", "TQ-163")
def test_a_pop_is_logged() -> None:
    """Each pop logs the job and the worker, so that a lost answer can be traced."""

    async def scenario(world: SimulatedWorld) -> None:
        fixture = Fixture(world)
        await fixture.enqueue("a")
        await fixture.pop()
        (line,) = fixture.lines.read_back("job_dequeued")
        assert (line["job_id"], line["worker_id"], line["level"]) == ("a", "w", "INFO")

    simulate(scenario)


def test_an_entry_has_no_lines_of_its_own() -> None:
    """What the queue keeps is an entity that is not logged: a pop has its line, the rest has none."""

    async def scenario(world: SimulatedWorld) -> None:
        fixture = Fixture(world)
        await fixture.enqueue("a", "b")
        await fixture.remove("a")
        await fixture.pop()
        assert [line["event"] for line in fixture.lines.read_back()] == ["job_dequeued"]

    simulate(scenario)


def test_a_queue_goes_on_where_another_ended() -> None:
    """A queue over the same store has the same jobs in the same order, and adds to them at the tail."""

    async def scenario(world: SimulatedWorld) -> None:
        fixture = Fixture(world)
        await fixture.enqueue(*map(str, range(1200)))
        await fixture.pop()
        await fixture.remove("1")
        fixture.queue = Queue(fixture.entries, world)
        assert await asyncio.gather(fixture.enqueue("2"), fixture.enqueue("last"), fixture.remove("3"))
        left = [(await fixture.pop()).job_id for _ in range(1198)]
        assert left == ["2", *map(str, range(4, 1200)), "last"]

    simulate(scenario)


def test_an_entry_that_a_killed_process_left_late_is_used() -> None:
    """Its last statement was committed after the next process had read the queue; the job waits once."""

    async def scenario(world: SimulatedWorld) -> None:
        fixture = Fixture(world)
        await fixture.enqueue("a")
        await fixture.entries.create(EntryRecord(job_id="late", enqueued_at_ms=1), fixture.call())
        await fixture.enqueue("late")
        assert [(await fixture.pop()).job_id for _ in range(2)] == ["a", "late"]

    simulate(scenario)


def test_a_waiting_pop_gets_the_job_at_once() -> None:
    """A dequeue of an empty queue is answered the moment a job comes in."""

    async def scenario(world: SimulatedWorld) -> None:
        fixture = Fixture(world)
        waiting = asyncio.create_task(fixture.pop())
        await world.sleep(0.2)
        await fixture.enqueue("a")
        assert (await waiting).job_id == "a"
        assert world.monotonic() == 0.2

    simulate(scenario)


@pytest.mark.parametrize("seconds", [None, 1.0, 0.3, 0.0, -1.0])
def test_a_pop_waits_for_at_most_half_of_its_deadline(seconds: float | None) -> None:
    """The idle answer comes within 600 ms and half of the caller's deadline, so that it is not too late."""

    async def scenario(world: SimulatedWorld) -> None:
        assert not (await Fixture(world).pop(seconds)).found
        most = min(0.6, 0.6 if seconds is None else max(0.0, seconds / 2))
        assert most * 0.6 <= world.monotonic() <= most

    simulate(scenario)


@pytest.mark.req("TQ-083")
@pytest.mark.parametrize("seed", range(8))
def test_one_job_wakes_one_waiting_call(seed: int) -> None:
    """Of many calls that wait, each job goes to one, and no job stays in the queue."""

    async def scenario(world: SimulatedWorld) -> None:
        fixture = Fixture(world)
        waiting = [asyncio.create_task(fixture.pop(5.0)) for _ in range(6)]
        await world.sleep(0.01)
        await fixture.enqueue("a", "b", "c")
        late = asyncio.create_task(fixture.pop(5.0))
        found = [answer.job_id for answer in await asyncio.gather(*waiting, late) if answer.found]
        assert sorted(found) == ["a", "b", "c"]

    simulate(scenario, seed)


@pytest.mark.req("TQ-081")
@pytest.mark.parametrize("seed", range(8))
def test_a_wake_up_for_a_canceled_call_goes_to_the_next(seed: int) -> None:
    """If the call that was woken up is canceled at that moment, the next one is; no job is popped."""

    async def scenario(world: SimulatedWorld) -> None:
        fixture = Fixture(world)
        first, second = (asyncio.create_task(fixture.pop(5.0)) for _ in range(2))
        await world.sleep(0.01)
        await fixture.enqueue("a")
        canceled, stays = (first, second) if seed % 2 else (second, first)
        canceled.cancel()
        results = await asyncio.gather(canceled, stays, return_exceptions=True)
        assert [each.job_id for each in results if isinstance(each, DequeueJobResponse)] == ["a"]
        assert world.monotonic() == 0.01

    simulate(scenario, seed)


@pytest.mark.req("TQ-081", "CH-29")
def test_a_call_past_its_deadline_pops_nothing() -> None:
    """A caller whose deadline is over would not get the job, so it stays in the queue."""

    async def scenario(world: SimulatedWorld) -> None:
        fixture = Fixture(world)
        await fixture.enqueue("a")
        assert not (await fixture.pop(0.0)).found
        assert (await fixture.pop()).job_id == "a"

    simulate(scenario)


def test_waiters_that_got_no_job_are_removed() -> None:
    """A dequeue that waits without success does not grow the queue's memory."""

    async def scenario(world: SimulatedWorld) -> None:
        fixture = Fixture(world)
        for _ in range(20):
            await fixture.pop()
        assert not vars(fixture.queue)["_idle"]

    simulate(scenario)


class Steps(OrderedDict[Any, Any]):
    """Counts every entry that is looked at in turn."""

    walked = 0

    def __iter__(self) -> Any:
        for each in super().__iter__():
            Steps.walked += 1
            yield each


def test_no_operation_iterates_over_the_queue() -> None:
    """Enqueue, pop and removal touch one entry each, however many wait."""

    async def scenario(world: SimulatedWorld) -> None:
        fixture = Fixture(world)
        vars(fixture.queue)["_waiting"] = Steps()
        await fixture.enqueue(*map(str, range(2_000)))
        assert await fixture.remove("1000")
        assert (await fixture.pop()).job_id == "0"
        assert Steps.walked == 0

    simulate(scenario)
