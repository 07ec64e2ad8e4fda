"""A worker over a store in memory that has the few calls which it needs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from generated.bakery.errors import BookClosed
from generated.bakery.lifecycle import CAKE, CAKE_BURN, CAKE_FINISH
from generated.bakery.messages import BAKING
from generated.bakery.records import CakeRecord
from runtime.call import Call
from runtime.observe.log import Log
from runtime.stores.contract import ExchangeResult, LeaseProof, LeaseSettlement
from runtime.stores.store import Busy
from runtime.worker.config import Outcome, WorkerConfig
from runtime.worker.lease_worker import LeaseWorker
from tests.runtime.hand_world import Lines
from tests.runtime.virtual_time import LoopWorld
from tests.runtime.worker.events import EVENTS
from tests.support.eventually import eventually

WORLD = LoopWorld()
OWNER = "the worker"
DONE = Outcome(CAKE_FINISH, {"bread": "1"})
RELEASED = Outcome(CAKE_BURN, {"complaint": "given back"})
UNSTORABLE = Outcome(CAKE_BURN, {"complaint": "cannot be stored"}, is_final=True)


@dataclass
class MemoryLeases:
    """Leases in memory; every answer takes a moment, and another owner may lock some entities."""

    left: int
    busy: int = 0
    """How many of the first that are settled another owner has locked."""
    unlocks: bool = False
    """Whether they are locked for a moment only."""
    locked: set[str] = field(default_factory=set)
    held: int = 0
    most: int = 0
    settled: int = 0
    outcomes: set[int] = field(default_factory=set)
    settled_alone: int = 0
    in_flight: int = 0
    concurrent: int = 0
    beside: list[int] = field(default_factory=list)
    """How many outcomes had each exchange that was begun while another was in flight."""
    fails_at: int | None = None
    """After so many settled entities two concurrent exchanges fail together."""
    barrier: asyncio.Barrier | None = None
    """Where these two wait for each other."""
    failed_exchanges: int = 0
    polls: int = 0
    is_free: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when no other owner has locked anything."""

    async def exchange(
        self, owner: str, settlements: Sequence[LeaseSettlement], free: int, call: Call
    ) -> ExchangeResult[CakeRecord]:
        self.polls += not settlements
        outcomes = await self.settle_many(settlements, call)
        free += sum(not isinstance(each, Exception) for each in outcomes)
        count = min(free, self.left)
        self.left -= count
        self.held += count
        self.most = max(self.most, self.held)
        taken = [
            CakeRecord(order_id=WORLD.new_id(), state=BAKING, baker=owner, round=1) for _ in range(count)
        ]
        return ExchangeResult(taken, outcomes)

    async def settle_many(
        self, settlements: Sequence[LeaseSettlement], call: Call
    ) -> Sequence[int | Exception]:
        if self.in_flight:
            self.beside.append(len(settlements))
        self.in_flight += 1
        self.concurrent = max(self.concurrent, self.in_flight)
        await asyncio.sleep(0.001)
        if self.fails_at is not None and self.settled >= self.fails_at:
            self.fails_at, self.barrier = None, asyncio.Barrier(2)
        if self.barrier is not None:
            await self.barrier.wait()
            self.barrier = None
            self.failed_exchanges += 1
            self.in_flight -= 1
            raise BookClosed
        self.in_flight -= 1
        outcomes: list[int | Exception] = []
        for each in settlements:
            if self.busy or each.key in self.locked:
                if each.key not in self.locked:
                    self.busy -= 1
                    self.locked.add(each.key)
                if self.unlocks:
                    self.locked.remove(each.key)
                outcomes.append(Busy("another owner has locked it"))
            else:
                self._settle()
                target = CAKE.transition(each.edge).target
                self.outcomes.add(target)
                outcomes.append(target)
        return outcomes

    async def settle(self, settlement: LeaseSettlement, call: Call) -> int:
        await self.is_free.wait()
        self.settled_alone += 1
        self._settle()
        target: int = CAKE.transition(settlement.edge).target
        return target

    async def renew(self, held: Sequence[tuple[str, LeaseProof]]) -> Sequence[object]:
        return [True] * len(held)

    async def wait(self, timeout_s: float) -> bool:
        await asyncio.sleep(timeout_s)
        return False

    def _settle(self) -> None:
        self.held -= 1
        self.settled += 1


class RunCounter:
    """Counts the runs that begin while an exchange is in flight."""

    def __init__(self, store: MemoryLeases) -> None:
        self._store = store
        self.meanwhile = self.runs = 0
        self.push: Callable[[Sequence[CakeRecord]], bool] = lambda _: False
        self.stopping = asyncio.Event()

    async def perform(self, record: CakeRecord, held: LeaseProof) -> Outcome:
        self.meanwhile += self._store.in_flight > 0
        self.runs += 1
        return DONE


@asynccontextmanager
async def run_worker(
    store: MemoryLeases,
    slots: int,
    perform: Callable[[CakeRecord, LeaseProof], Coroutine[Any, Any, Outcome]] | None = None,
    poll_s: float = 0.01,
    exchanges: int = 1,
    lines: Lines | None = None,
    world: LoopWorld = WORLD,
) -> AsyncIterator[RunCounter]:
    assert CAKE.lease is not None
    counter = RunCounter(store)
    worker: LeaseWorker[CakeRecord] = LeaseWorker(
        store,
        CAKE.lease,
        CAKE.key,
        OWNER,
        WorkerConfig(slots, poll_s, 30, 10, 5, exchanges),
        perform or counter.perform,
        RELEASED,
        UNSTORABLE,
        EVENTS,
    )
    stopping = asyncio.Event()
    counter.push, counter.stopping = worker.push, stopping
    call = Call(world=world, log=Log("test", "DEBUG", WORLD, lines or Lines()), caller="worker")
    task = asyncio.create_task(worker.work(call, stopping))
    async with asyncio.timeout(60):
        yield counter
        stopping.set()
        await task


async def wait_for_settled(store: MemoryLeases, count: int) -> None:
    await eventually(lambda: store.settled >= count, f"{count} settled entities")
