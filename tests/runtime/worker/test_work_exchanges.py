"""A worker over a store that is nothing but the few calls that it needs: what it does at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import anyio

from generated.orchestrator.errors import ServiceUnavailable
from generated.orchestrator.lifecycle import JOB
from generated.orchestrator.messages import RUNNING
from generated.orchestrator.records import JobRecord
from handlers.jobs import Job
from handlers.jobs.job_loop import JobLoops
from handlers.jobs.registry import RegisteredFunction
from handlers.jobs.runner import FailureReasons, RunResult, run
from runtime.call import Call
from runtime.observe.log import Log
from runtime.stores.store import Busy, Exchanged, Held, Settling
from runtime.worker.config import Outcome, WorkerConfig
from runtime.worker.lease_worker import LeaseWorker
from tests.runtime.hand_world import Lines
from tests.runtime.virtual_time import LoopWorld, in_virtual_time
from tests.runtime.worker.working import DONE, GIVEN_BACK, OWNER, TOLD, UNSTORABLE, at_once
from tests.support.eventually import eventually

WORLD = LoopWorld()
REASONS = FailureReasons("TIMED_OUT", "NOT_JSON")


@dataclass
class Kept:
    """Jobs in memory; every answer takes a moment, and some may be held up by somebody."""

    left: int
    busy: int = 0
    """How many of the first that are settled somebody else has."""
    lets_go: bool = False
    """Whether that is only for a moment."""
    others: set[str] = field(default_factory=set)
    held: int = 0
    most: int = 0
    settled: int = 0
    outcomes: set[int] = field(default_factory=set)
    alone: int = 0
    under_way: int = 0
    together: int = 0
    beside: list[int] = field(default_factory=list)
    """How many outcomes had each exchange that was begun while another was under way."""
    breaks: asyncio.Barrier | None = None
    """Where the next exchanges wait for each other before all of them fail."""
    refused: int = 0
    looks: int = 0
    is_free: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when nobody else has anything any more."""

    async def exchange(
        self, owner: str, settling: Sequence[Settling], free: int, call: Call
    ) -> Exchanged[JobRecord]:
        self.looks += not settling
        outcomes = await self.settle_all(settling, call)
        free += sum(not isinstance(each, Exception) for each in outcomes)
        count = min(free, self.left)
        self.left -= count
        self.held += count
        self.most = max(self.most, self.held)
        taken = [
            JobRecord(job_id=WORLD.new_id(), state=RUNNING, lease_owner=owner, attempt=1)
            for _ in range(count)
        ]
        return Exchanged(taken, outcomes)

    async def settle_all(self, settling: Sequence[Settling], call: Call) -> Sequence[int | Exception]:
        if self.under_way:
            self.beside.append(len(settling))
        self.under_way += 1
        self.together = max(self.together, self.under_way)
        await asyncio.sleep(0.001)
        if self.breaks is not None:
            await self.breaks.wait()
            self.breaks, self.refused, self.under_way = None, self.refused + 1, self.under_way - 1
            raise ServiceUnavailable
        self.under_way -= 1
        outcomes: list[int | Exception] = []
        for each in settling:
            if self.busy or each.key in self.others:
                if each.key not in self.others:
                    self.busy -= 1
                    self.others.add(each.key)
                if self.lets_go:
                    self.others.remove(each.key)
                outcomes.append(Busy("somebody has it"))
            else:
                self._settle()
                self.outcomes.add(each.target)
                outcomes.append(each.target)
        return outcomes

    async def settle(
        self,
        key: str,
        target: int,
        held: Held,
        call: Call,
        final: bool = False,
        edge: str = "",
        /,
        **given: str | None,
    ) -> int:
        await self.is_free.wait()
        self.alone += 1
        self._settle()
        return target

    async def renew_all(self, held: Sequence[tuple[str, Held]]) -> Sequence[bool | Exception]:
        return [True] * len(held)

    async def awaited(self, timeout_s: float) -> bool:
        await asyncio.sleep(timeout_s)
        return False

    def _settle(self) -> None:
        self.held -= 1
        self.settled += 1


class Resting(LoopWorld):
    """The world, which knows the pauses that it was asked for."""

    def __init__(self) -> None:
        self.rests: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.rests.append(seconds)
        await super().sleep(seconds)


class Watched:
    """Counts the runs that are begun while an exchange is under way."""

    def __init__(self, store: Kept) -> None:
        self._store = store
        self.meanwhile = self.runs = 0
        self.push: Callable[[Sequence[JobRecord]], bool] = lambda _: False
        self.stopping = asyncio.Event()

    async def perform(self, record: JobRecord, held: Held) -> Outcome:
        self.meanwhile += self._store.under_way > 0
        self.runs += 1
        return await at_once(record, held)


async def slow(_record: JobRecord, _held: Held) -> Outcome:
    await asyncio.sleep(0.002)
    return DONE


@asynccontextmanager
async def working(
    store: Kept,
    slots: int,
    perform: Callable[[JobRecord, Held], Coroutine[Any, Any, Outcome]] | None = None,
    poll_s: float = 0.01,
    exchanges: int = 1,
    lines: Lines | None = None,
    world: LoopWorld = WORLD,
) -> AsyncIterator[Watched]:
    assert JOB.lease is not None
    watched = Watched(store)
    worker: LeaseWorker[JobRecord] = LeaseWorker(
        store,
        JOB.lease,
        JOB.key,
        OWNER,
        WorkerConfig(slots, poll_s, 30, 10, 5, exchanges),
        perform or watched.perform,
        GIVEN_BACK,
        UNSTORABLE,
        TOLD,
    )
    stopping = asyncio.Event()
    watched.push, watched.stopping = worker.push, stopping
    call = Call(world=world, log=Log("test", "DEBUG", WORLD, lines or Lines()), caller="worker")
    task = asyncio.create_task(worker.work(call, stopping))
    async with asyncio.timeout(60):
        yield watched
        stopping.set()
        await task


async def until(store: Kept, settled: int) -> None:
    # In virtual time, and as often as exchanges end.
    while store.settled < settled:
        await asyncio.sleep(0.002)


@in_virtual_time
async def test_a_half_is_run_while_the_other_is_exchanged() -> None:
    """With many slots worker and store work at the same time; no two exchanges are under way at once."""
    store = Kept(left=1000)
    async with working(store, 40) as watched:
        await until(store, 1000)
    assert watched.meanwhile > 600
    assert store.together == 1
    assert store.most <= 40


@in_virtual_time
async def test_a_store_that_can_do_two_at_a_time_is_given_two() -> None:
    """Each a half of the slots; both together hold no more than there are."""
    store = Kept(left=1000)
    async with working(store, 40, exchanges=2):
        await until(store, 1000)
    assert store.together == 2
    assert all(10 <= count <= 20 for count in store.beside)
    assert store.most <= 40
    assert store.held == 0


@in_virtual_time
async def test_a_few_outcomes_wait_for_the_exchange_that_is_under_way() -> None:
    """They go with all that have ended by then, as an exchange costs almost as much for a few as for many."""
    store = Kept(left=1000)
    async with working(store, 40, slow, exchanges=2):
        await until(store, 1000)
    assert all(count >= 10 for count in store.beside)
    assert store.most <= 40
    small = Kept(left=200)
    async with working(small, 8, exchanges=2):
        await until(small, 200)
    assert small.together == 1


@in_virtual_time
async def test_two_exchanges_that_fail_together_are_one_outage() -> None:
    """It is told once, and there is one pause; nothing is lost, and nothing written twice."""
    store, lines, world = Kept(left=1000), Lines(), Resting()
    async with working(store, 40, exchanges=2, lines=lines, world=world):
        await until(store, 200)
        store.breaks = asyncio.Barrier(2)
        await until(store, 1000)
    assert (store.settled, store.held, store.refused) == (1000, 0, 2)
    assert len(lines.read_back("acquire_failed")) == 1
    assert len(world.rests) == 1


@in_virtual_time
async def test_with_few_slots_all_go_together() -> None:
    """So few are exchanged at once, as an exchange of a few would cost as much as one of all."""
    store = Kept(left=100)
    async with working(store, 4) as watched:
        await until(store, 100)
    assert watched.meanwhile == 0
    assert store.most == 4


@in_virtual_time
async def test_runs_that_wait_fill_their_slots_as_they_end() -> None:
    store = Kept(left=200)
    async with working(store, 10, slow):
        await until(store, 200)
    assert store.most <= 10
    assert store.held == 0


@in_virtual_time
async def test_what_somebody_else_has_holds_up_nobody() -> None:
    """It is written alone, as long as that takes, and its slot is not filled before."""
    store = Kept(left=300, busy=3)
    async with working(store, 5):
        await until(store, 290)
        assert (store.alone, store.held > 2) == (0, True)
        store.is_free.set()
        await until(store, 300)
    assert (store.alone, store.held) == (3, 0)
    assert store.most <= 5


@in_virtual_time
async def test_what_somebody_else_had_for_a_moment_goes_with_the_next() -> None:
    """As many do that another exchange has passed over: to write each of them alone would cost far more."""
    store = Kept(left=300, busy=30, lets_go=True)
    async with working(store, 40, exchanges=2):
        await until(store, 300)
    assert (store.alone, store.held, store.others) == (0, 0, set())


@in_virtual_time
async def test_an_idle_worker_looks_once_in_an_interval() -> None:
    store = Kept(left=0)
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with working(store, 50, poll_s=0.05):
        await eventually(lambda: store.looks >= 5)
        looks, took = store.looks, loop.time() - began
    # As many as intervals have gone by, however long they were, and the one at the start.
    assert looks <= took / 0.05 + 1


@in_virtual_time
async def test_what_is_given_to_a_worker_is_run_without_a_look_into_the_store() -> None:
    """Its runs have begun after one turn of the loop, and its outcome is written like that of any other."""
    store = Kept(left=0, held=2)
    async with working(store, slots=4, poll_s=60) as worker:
        given = [JobRecord(job_id=WORLD.new_id(), state=RUNNING, attempt=1) for _ in range(2)]
        async with asyncio.timeout(60):
            while not worker.push(given):  # It has not begun.
                await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert worker.runs == 2
        await until(store, 2)


@in_virtual_time
async def test_a_worker_that_is_about_to_stop_takes_nothing() -> None:
    store = Kept(left=0)
    async with working(store, slots=4, poll_s=60) as worker:
        given = [JobRecord(job_id=WORLD.new_id(), state=RUNNING, attempt=1)]
        assert not worker.push(given)  # It has not begun.
        await asyncio.sleep(0.02)
        worker.stopping.set()
        assert not worker.push(given)
        assert worker.runs == 0


async def test_each_job_function_has_a_task_and_a_context_of_its_own() -> None:
    """What one sets no other sees, and a scope entered before the first wait can be left after it."""
    variable: ContextVar[str] = ContextVar("variable", default="nothing")
    found: list[str] = []

    async def function(_given: Job) -> str:
        found.append(variable.get())
        variable.set("a run")
        with anyio.move_on_after(0) as scope:
            await anyio.sleep_forever()
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 0)
        return "done" if scope.cancelled_caught else "not stopped"

    async def perform(record: JobRecord, _held: Held) -> Outcome:
        given = Job(record.job_id, "scoped", WORLD)
        ran = await run(RegisteredFunction("scoped", function, is_async=True), given, 60, REASONS, loops)
        return DONE if ran == RunResult('"done"') else GIVEN_BACK

    store = Kept(left=20)
    async with JobLoops(lambda *_: None) as loops, working(store, 4, perform):
        await until(store, 20)
    assert found == ["nothing"] * 20
    assert store.outcomes == {DONE.transition.target}


async def test_a_job_function_within_a_scope_is_ended_by_its_time_limit() -> None:
    async def function(_given: Job) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep_forever)

    given = Job("an id", "stuck", WORLD)
    async with JobLoops(lambda *_: None) as loops:
        ran = await run(RegisteredFunction("stuck", function, is_async=True), given, 0.01, REASONS, loops)
    assert ran == RunResult(error="TIMED_OUT: it took longer than 0.01 s")
