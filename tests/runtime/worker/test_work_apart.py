"""A worker whose store writes entities one by one: many exchanges at a time, leases of any length."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import inf
from typing import Any

import pytest
from msgspec.structs import replace

from generated.nursery.errors import GateShut
from generated.nursery.lifecycle import PLANT, PLANT_FORGET, PLANT_PUT_DOWN, PLANT_WATER
from generated.nursery.records import PlantRecord
from runtime.call import Call
from runtime.observe.log import Log
from runtime.stores.contract import ExchangeResult, LeaseProof, LeaseSettlement
from runtime.worker.config import Outcome, WorkerConfig
from runtime.worker.lease_worker import LeaseWorker
from tests.runtime.hand_world import Lines
from tests.runtime.virtual_time import LoopWorld, in_virtual_time
from tests.runtime.worker.events import EVENTS
from tests.support.eventually import eventually

WORLD = LoopWorld()
DONE = Outcome(PLANT_WATER, {"note": "1"})
RELEASED = Outcome(PLANT_PUT_DOWN)
LATE = Outcome(PLANT_FORGET, {"note": "late"})
APART = WorkerConfig(
    slots=4, poll_s=0.01, lease_s=None, renew_s=None, grace_s=5, exchanges=5, settles_individually=True
)


@dataclass
class MemoryLeases:
    """Leases in memory; a test may delay the settlement of one entity."""

    waiting: list[PlantRecord]
    settled: list[LeaseSettlement] = field(default_factory=list)
    renewed: list[str] = field(default_factory=list)
    slow: str = ""
    may_settle: asyncio.Event = field(default_factory=asyncio.Event)
    in_flight: int = 0
    most: int = 0
    largest: int = 0
    asked: int = 0
    is_away: bool = False
    refused: int = 0
    """How many settlements failed because the store is away."""

    async def exchange(
        self, owner: str, settlements: Sequence[LeaseSettlement], free: int, call: Call
    ) -> ExchangeResult[PlantRecord]:
        outcomes = await self.settle_many(settlements, call)
        wanted = free + len(settlements)
        self.asked += wanted
        taken, self.waiting = self.waiting[:wanted], self.waiting[wanted:]
        self.asked -= wanted
        return ExchangeResult([replace(each, gardener=owner, turn=1) for each in taken], outcomes)

    async def settle_many(
        self, settlements: Sequence[LeaseSettlement], call: Call
    ) -> Sequence[int | Exception]:
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        self.largest = max(self.largest, len(settlements))
        await asyncio.sleep(0.01)
        if any(each.key == self.slow for each in settlements):
            await self.may_settle.wait()
        self.in_flight -= 1
        if self.is_away:
            self.refused += len(settlements)
            return [GateShut()] * len(settlements)
        self.settled += settlements
        return [PLANT.transition(each.edge).target for each in settlements]

    async def settle(self, settlement: LeaseSettlement, call: Call) -> int:
        raise AssertionError("no other owner has it")

    async def renew(self, held: Sequence[tuple[str, LeaseProof]]) -> Sequence[object]:
        self.renewed += [key for key, _ in held]
        return [True] * len(held)

    async def wait(self, timeout_s: float) -> bool:
        await asyncio.sleep(timeout_s)
        return False

    def ends(self) -> dict[str, str]:
        return {each.key: each.edge for each in self.settled}


class Recorder:
    """An observer that records the events of a worker."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def on_claimed(self, key: str) -> None:
        self.events.append(("claimed", key))

    def on_settled(self, key: str, outcome: Outcome) -> None:
        self.events.append((outcome.transition.name, key))

    def on_lost(self, key: str, fence: int) -> None:
        self.events.append(("lost", key))


def plant(key: str, seconds: int = 60) -> PlantRecord:
    return PlantRecord(plant_id=key, tending_seconds=seconds)


@asynccontextmanager
async def run_worker(
    store: MemoryLeases,
    perform: Callable[[PlantRecord, LeaseProof], Any],
    config: WorkerConfig = APART,
    recorder: Recorder | None = None,
    stopping: asyncio.Event | None = None,
) -> AsyncIterator[LeaseWorker[PlantRecord]]:
    assert PLANT.lease is not None
    worker: LeaseWorker[PlantRecord] = LeaseWorker(
        store,
        PLANT.lease,
        PLANT.key,
        "me",
        config,
        perform,
        RELEASED,
        DONE,
        EVENTS,
        overrun=lambda _record: LATE,
        observer=recorder,
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


async def at_once(_record: PlantRecord, _held: LeaseProof) -> Outcome:
    return DONE


async def for_ever(_record: PlantRecord, _held: LeaseProof) -> Outcome:
    await asyncio.Event().wait()
    return DONE


@in_virtual_time
async def test_no_run_waits_for_the_slowest() -> None:
    """While the end of one is being written, all the others go through the remaining slots."""
    store = MemoryLeases([plant(f"{number}") for number in range(40)], slow="0")
    async with run_worker(store, at_once):
        await eventually(lambda: len(store.settled) == 39)
        assert "0" not in store.ends()
        store.may_settle.set()
        await eventually(lambda: len(store.settled) == 40)
    assert store.largest == 1
    assert 2 <= store.most <= APART.exchanges


@in_virtual_time
async def test_no_more_are_in_flight_than_there_are_slots() -> None:
    """However many exchanges are in flight, together they claim no more than the slots."""
    held = most = 0

    async def perform(_record: PlantRecord, _held: LeaseProof) -> Outcome:
        nonlocal held, most
        held += 1
        most = max(most, held)
        await asyncio.sleep(0.005)
        held -= 1
        return DONE

    store = MemoryLeases([plant(f"{number}") for number in range(60)])
    async with run_worker(store, perform):
        await eventually(lambda: len(store.settled) == 60)
    assert most == APART.slots


@in_virtual_time
async def test_a_run_is_stopped_when_its_lease_is_over() -> None:
    """Each record has a lease of its own length; it is not renewed, and the worker settles it as late."""
    store = MemoryLeases([plant("long"), plant("short", 1)])
    stopping = asyncio.Event()
    async with run_worker(store, for_ever, replace(APART, grace_s=0), stopping=stopping):
        await eventually(lambda: store.settled)
        assert store.ends() == {"short": "forget"}
        assert dict(store.settled[0].given) == {"note": "late"}
        stopping.set()
    assert store.ends() == {"short": "forget", "long": "put_down"}
    assert store.renewed == []


@in_virtual_time
async def test_a_shorter_lease_that_comes_later_ends_first() -> None:
    """The worker is not asleep until the end of the one that it has."""
    store = MemoryLeases([plant("long", 3600)])
    stopping = asyncio.Event()
    async with run_worker(store, for_ever, replace(APART, grace_s=0), stopping=stopping):
        await asyncio.sleep(0.05)
        store.waiting.append(plant("short", 1))
        await eventually(lambda: store.ends() == {"short": "forget"})
        stopping.set()


@in_virtual_time
async def test_leases_of_their_own_length_are_renewed_each_in_its_time() -> None:
    """When a third is over: the short one soon, the long one not yet."""
    store = MemoryLeases([plant("long", 60), plant("short", 3)])
    stopping = asyncio.Event()
    config = replace(APART, renew_s=1e8, grace_s=0)
    async with run_worker(store, for_ever, config, stopping=stopping):
        await eventually(lambda: len(store.renewed) >= 3)
        assert set(store.renewed) == {"short"}
        assert store.settled == []
        stopping.set()


@in_virtual_time
async def test_a_run_may_be_abandoned_from_outside() -> None:
    """Its lease turned out to be another owner's: it is stopped, nothing is written, the rest goes on."""
    store, recorder = MemoryLeases([plant("mine"), plant("lost")]), Recorder()
    ends = asyncio.Event()

    async def perform(_record: PlantRecord, _held: LeaseProof) -> Outcome:
        await ends.wait()
        return DONE

    async with run_worker(store, perform, recorder=recorder) as worker:
        await eventually(lambda: len(recorder.events) == 2)
        worker.abandon("lost", 1)
        worker.abandon("unknown", 1)
        await eventually(lambda: ("lost", "lost") in recorder.events)
        ends.set()
        await eventually(lambda: store.settled)
    assert store.ends() == {"mine": "water"}
    assert set(recorder.events) == {
        ("claimed", "mine"),
        ("claimed", "lost"),
        ("lost", "lost"),
        ("water", "mine"),
    }


@pytest.mark.parametrize("exchanges", [1, 2, 9])
@in_virtual_time
async def test_a_worker_that_is_stopped_releases_its_leases(exchanges: int) -> None:
    """By the edge that the handler named, whatever the number of exchanges."""
    store, stopping = MemoryLeases([plant(f"{number}") for number in range(3)]), asyncio.Event()
    config = replace(APART, grace_s=0.02, exchanges=exchanges)
    async with run_worker(store, for_ever, config, stopping=stopping):
        await eventually(lambda: not store.waiting)
        await asyncio.sleep(0.05)
        stopping.set()
    assert store.ends() == {"0": "put_down", "1": "put_down", "2": "put_down"}


@in_virtual_time
async def test_a_lease_without_an_end_outlives_any_outage() -> None:
    """Only the store can say that it was lost, so that its outcome is kept until the store is back."""
    store, recorder = MemoryLeases([plant("a")], is_away=True), Recorder()
    async with run_worker(store, at_once, replace(APART, lease_s=inf, renew_s=1), recorder):
        await eventually(lambda: store.refused > 5)
        store.is_away = False
        await eventually(lambda: store.settled)
    assert recorder.events == [("claimed", "a"), ("water", "a")]


@in_virtual_time
async def test_a_stopped_worker_does_not_wait_for_a_store_that_is_away() -> None:
    """When its grace is over it drops what it could not settle, although the lease has no end."""
    store, recorder = MemoryLeases([plant("a")], is_away=True), Recorder()
    async with run_worker(store, at_once, replace(APART, lease_s=inf, renew_s=1), recorder):
        await eventually(lambda: store.refused)
    assert recorder.events == [("claimed", "a"), ("lost", "a")]
