"""A worker on a real store, its runs, and a store whose answers a test may delay."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from generated.orchestrator.errors import ServiceUnavailable
from generated.orchestrator.lifecycle import JOB, JOB_COMPLETE, JOB_FAIL
from generated.orchestrator.records import JobRecord
from runtime.call import Call
from runtime.stores.contract import ExchangeResult, LeaseProof
from runtime.stores.postgres import PostgresStore
from runtime.worker.config import Outcome, WorkerConfig
from runtime.worker.lease_worker import LeaseWorker
from runtime.world import RealWorld
from tests.runtime.stores.postgres.kit import Kit
from tests.runtime.worker.events import EVENTS
from tests.support.eventually import eventually

OWNER = "the worker"
DONE = Outcome(JOB_COMPLETE, {"result": "1"})
RELEASED = Outcome(JOB_FAIL, {"error": "released"})
UNSTORABLE = Outcome(JOB_FAIL, {"error": "cannot be stored"}, is_final=True)
CONFIG = WorkerConfig(slots=2, poll_s=0.02, lease_s=30, renew_s=10, grace_s=5)
LEASE_S = 60.0
EAGER = WorkerConfig(slots=2, poll_s=0.02, lease_s=LEASE_S, renew_s=0.2, grace_s=5)
"""Renews at once. Its leases are so long that no busy machine makes it lose one; tests let them pass."""

Perform = Callable[[JobRecord, LeaseProof], Awaitable[Outcome]]


class Ahead(RealWorld):
    """A world whose clock a test puts forward."""

    seconds = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.seconds


class Store:
    """A real store whose answers a test may delay or fail."""

    def __init__(self, real: PostgresStore[JobRecord]) -> None:
        self._real = real
        self.failing = 0
        self.tried = 0
        self.renewed: list[object] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def exchange(self, *given: Any) -> ExchangeResult[JobRecord]:
        self._fail()
        exchanged = await self._real.exchange(*given)
        if exchanged.claimed:
            await self.may_answer.wait()
        return exchanged

    async def settle_many(self, *given: Any) -> Sequence[int | Exception]:
        self._fail()
        return await self._real.settle_many(*given)

    async def renew(self, *given: Any) -> Sequence[object]:
        outcomes = await self._real.renew(*given)
        self.renewed += outcomes
        return outcomes

    def _fail(self) -> None:
        self.tried += 1
        if self.failing:
            self.failing -= 1
            raise ServiceUnavailable


class Works:
    """A worker, and its runs."""

    def __init__(self, kit: Kit, perform: Perform, config: WorkerConfig) -> None:
        self.kit = kit
        self.store = Store(kit.store)
        self.runs: list[tuple[str, LeaseProof]] = []
        self.at_once = self.most = 0
        self.stopping = asyncio.Event()
        self.world = Ahead()
        self._perform = perform
        assert JOB.lease is not None
        self.worker: LeaseWorker[JobRecord] = LeaseWorker(
            self.store, JOB.lease, JOB.key, OWNER, config, self._run, RELEASED, UNSTORABLE, EVENTS
        )

    async def _run(self, record: JobRecord, held: LeaseProof) -> Outcome:
        self.runs.append((record.job_id, held))
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            return await self._perform(record, held)
        finally:
            self.at_once -= 1

    async def wait_for_runs(self, count: int = 1) -> None:
        """Wait until so many runs have begun."""
        await eventually(lambda: len(self.runs) >= count)

    async def wait_for_state(self, key: str, *states: int) -> JobRecord:
        """Wait until a job is in one of some states."""
        return await eventually(lambda: self.kit.job(key), wanted=lambda job: job.state in states)

    def work(self) -> Coroutine[Any, Any, None]:
        """Work until the stop."""
        call = Call(world=self.world, log=self.kit.log, caller="worker")
        return self.worker.work(call, self.stopping)

    async def pass_lease(self, key: str) -> None:
        """Let more than a whole lease pass, in parts, for the worker and for the database alike."""
        part = LEASE_S / 2
        for _ in range(3):
            self.world.seconds += part
            back = f"lease_expiry - interval '{part} s'"
            await self.kit.sql.execute(f"UPDATE jobs SET lease_expiry = {back} WHERE job_id = $1", key)
            is_whole = f"SELECT {back} > clock_timestamp() FROM jobs WHERE job_id = $1"
            await eventually(lambda: self.kit.sql.fetchval(is_whole, key))  # noqa: B023

    def losses(self) -> list[dict[str, Any]]:
        return self.kit.lines.read_back("lost")


@asynccontextmanager
async def run_worker(kit: Kit, perform: Perform, config: WorkerConfig = CONFIG) -> AsyncIterator[Works]:
    """A worker that is stopped at the end, if the test has not done so."""
    made = Works(kit, perform, config)
    task = asyncio.create_task(made.work())
    try:
        async with asyncio.timeout(60):
            yield made
            made.stopping.set()
            await task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def at_once(_record: JobRecord, _held: LeaseProof) -> Outcome:
    """A run that waits for nothing."""
    return DONE


async def for_ever(_record: JobRecord, _held: LeaseProof) -> Outcome:
    """A run that does not end by itself."""
    await asyncio.Event().wait()
    return DONE
