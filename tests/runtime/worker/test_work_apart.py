"""A worker whose store writes entities one by one: many exchanges at a time, leases of any length."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from generated.objectqueue.lifecycle import TASK, TASK_COMPLETE, TASK_RELEASE, TASK_RETRY
from generated.objectqueue.records import TaskRecord
from runtime.call import Call
from runtime.observe.log import Log
from runtime.stores.store import Exchanged, Held, Settling
from runtime.worker.config import Outcome, WorkerConfig
from runtime.worker.lease_worker import LeaseWorker
from tests.runtime.hand_world import Lines
from tests.runtime.virtual_time import LoopWorld, in_virtual_time
from tests.runtime.worker.working import TOLD
from tests.support.eventually import eventually

WORLD = LoopWorld()
DONE = Outcome(TASK_COMPLETE, {"output": "1"})
BACK = Outcome(TASK_RELEASE)
LATE = Outcome(TASK_RETRY, {"error": "late"})
APART = WorkerConfig(
    slots=4, poll_s=0.01, lease_s=None, renew_s=None, grace_s=5, exchanges=5, settles_individually=True
)


@dataclass
class Kept:
    """Tasks in memory; a test may hold up what becomes of one of them."""

    waiting: list[TaskRecord]
    settled: list[Settling] = field(default_factory=list)
    renewed: list[str] = field(default_factory=list)
    slow: str = ""
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)
    under_way: int = 0
    most: int = 0
    largest: int = 0
    asked: int = 0

    async def exchange(
        self, owner: str, settling: Sequence[Settling], free: int, call: Call
    ) -> Exchanged[TaskRecord]:
        outcomes = await self.settle_all(settling, call)
        wanted = free + len(settling)
        self.asked += wanted
        taken, self.waiting = self.waiting[:wanted], self.waiting[wanted:]
        self.asked -= wanted
        return Exchanged([replace(each, worker_id=owner, attempt=1) for each in taken], outcomes)

    async def settle_all(self, settling: Sequence[Settling], call: Call) -> Sequence[int | Exception]:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        self.largest = max(self.largest, len(settling))
        await asyncio.sleep(0.01)
        if any(each.key == self.slow for each in settling):
            await self.goes_on.wait()
        self.under_way -= 1
        self.settled += settling
        return [each.target for each in settling]

    async def settle(
        self,
        key: str,
        target: int,
        held: Held,
        call: Call,
        final: bool = False,
        edge: str = "",
        /,
        **given: Any,
    ) -> int:
        raise AssertionError("nobody else has it")

    async def renew_all(self, held: Sequence[tuple[str, Held]]) -> Sequence[bool | Exception]:
        self.renewed += [key for key, _ in held]
        return [True] * len(held)

    async def awaited(self, timeout_s: float) -> bool:
        await asyncio.sleep(timeout_s)
        return False

    def ends(self) -> dict[str, str]:
        return {each.key: each.edge for each in self.settled}


class Heard:
    """Who hears what becomes of tasks."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def on_claimed(self, key: str) -> None:
        self.told.append(("taken", key))

    def on_settled(self, key: str, outcome: Outcome) -> None:
        self.told.append((outcome.transition.name, key))

    def on_lost(self, key: str, fence: int) -> None:
        self.told.append(("lost", key))


def task(key: str, seconds: int = 60) -> TaskRecord:
    return TaskRecord(id=key, timeout_seconds=seconds)


@asynccontextmanager
async def working(
    store: Kept,
    perform: Callable[[TaskRecord, Held], Any],
    pace: WorkerConfig = APART,
    heard: Heard | None = None,
    stopping: asyncio.Event | None = None,
) -> AsyncIterator[LeaseWorker[TaskRecord]]:
    assert TASK.lease is not None
    worker: LeaseWorker[TaskRecord] = LeaseWorker(
        store,
        TASK.lease,
        TASK.key,
        "me",
        pace,
        perform,
        BACK,
        DONE,
        TOLD,
        overrun=lambda _record: LATE,
        observer=heard,
    )
    stopping = stopping or asyncio.Event()
    call = Call(world=WORLD, log=Log("test", "DEBUG", WORLD, Lines()), caller="worker")
    running = asyncio.create_task(worker.work(call, stopping))
    try:
        async with asyncio.timeout(60):
            yield worker
            stopping.set()
            await running
    finally:
        running.cancel()


async def at_once(_record: TaskRecord, _held: Held) -> Outcome:
    return DONE


async def for_ever(_record: TaskRecord, _held: Held) -> Outcome:
    await asyncio.Event().wait()
    return DONE


@in_virtual_time
async def test_nobody_waits_for_the_slowest() -> None:
    """While the end of one is being written, all the others go through the remaining slots."""
    store = Kept([task(f"{number}") for number in range(40)], slow="0")
    async with working(store, at_once):
        await eventually(lambda: len(store.settled) == 39)
        assert "0" not in store.ends()
        store.goes_on.set()
        await eventually(lambda: len(store.settled) == 40)
    assert store.largest == 1
    assert 2 <= store.most <= APART.exchanges


@in_virtual_time
async def test_no_more_are_held_than_there_are_slots() -> None:
    """However many exchanges are under way, what they ask for together fits into the slots."""
    held = most = 0

    async def perform(_record: TaskRecord, _held: Held) -> Outcome:
        nonlocal held, most
        held += 1
        most = max(most, held)
        await asyncio.sleep(0.005)
        held -= 1
        return DONE

    store = Kept([task(f"{number}") for number in range(60)])
    async with working(store, perform):
        await eventually(lambda: len(store.settled) == 60)
    assert most == APART.slots


@in_virtual_time
async def test_a_run_is_stopped_when_its_lease_is_over() -> None:
    """Each record has a lease of its own length; nobody renews it, and the worker says how it ended."""
    store = Kept([task("long"), task("short", 1)])
    stopping = asyncio.Event()
    async with working(store, for_ever, replace(APART, grace_s=0), stopping=stopping):
        await eventually(lambda: store.settled)
        assert store.ends() == {"short": "retry"}
        assert dict(store.settled[0].given) == {"error": "late"}
        stopping.set()
    assert store.ends() == {"short": "retry", "long": "release"}
    assert store.renewed == []


@in_virtual_time
async def test_a_shorter_lease_that_comes_later_ends_first() -> None:
    """The worker is not asleep until the end of the one that it has."""
    store = Kept([task("long", 3600)])
    stopping = asyncio.Event()
    async with working(store, for_ever, replace(APART, grace_s=0), stopping=stopping):
        await asyncio.sleep(0.05)
        store.waiting.append(task("short", 1))
        await eventually(lambda: store.ends() == {"short": "retry"})
        stopping.set()


@in_virtual_time
async def test_leases_of_their_own_length_are_renewed_each_in_its_time() -> None:
    """When a third is over: the short one soon, the long one not yet."""
    store = Kept([task("long", 60), task("short", 3)])
    stopping = asyncio.Event()
    pace = replace(APART, renew_s=1e8, grace_s=0)
    async with working(store, for_ever, pace, stopping=stopping):
        await eventually(lambda: len(store.renewed) >= 3)
        assert set(store.renewed) == {"short"}
        assert store.settled == []
        stopping.set()


@in_virtual_time
async def test_a_run_may_be_given_up_from_outside() -> None:
    """Somebody found out that it is another's: it is stopped, nothing is written, the rest goes on."""
    store, heard = Kept([task("mine"), task("theirs")]), Heard()
    ends = asyncio.Event()

    async def perform(_record: TaskRecord, _held: Held) -> Outcome:
        await ends.wait()
        return DONE

    async with working(store, perform, heard=heard) as worker:
        await eventually(lambda: len(heard.told) == 2)
        worker.abandon("theirs", 1)
        worker.abandon("nobody's", 1)
        await eventually(lambda: ("lost", "theirs") in heard.told)
        ends.set()
        await eventually(lambda: store.settled)
    assert store.ends() == {"mine": "complete"}
    assert set(heard.told) == {
        ("taken", "mine"),
        ("taken", "theirs"),
        ("lost", "theirs"),
        ("complete", "mine"),
    }


@pytest.mark.parametrize("exchanges", [1, 2, 9])
@in_virtual_time
async def test_a_worker_that_is_stopped_gives_back_what_it_has(exchanges: int) -> None:
    """By the edge that the handler named, whatever the number of exchanges."""
    store, stopping = Kept([task(f"{number}") for number in range(3)]), asyncio.Event()
    pace = replace(APART, grace_s=0.02, exchanges=exchanges)
    async with working(store, for_ever, pace, stopping=stopping):
        await eventually(lambda: not store.waiting)
        await asyncio.sleep(0.05)
        stopping.set()
    assert store.ends() == {"0": "release", "1": "release", "2": "release"}
