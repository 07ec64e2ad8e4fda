"""Job functions of a worker: each has a task and context variables of its own, also within a time limit."""

from __future__ import annotations

from contextvars import ContextVar

import anyio

from generated.bakery.records import CakeRecord
from handlers.jobs import Job
from handlers.jobs.executor import FailureReasons, RunResult, run
from handlers.jobs.job_loop import JobLoops
from handlers.jobs.registry import RegisteredFunction
from runtime.stores.contract import LeaseProof
from runtime.worker.config import Outcome
from tests.runtime.worker.memory_leases import (
    DONE,
    RELEASED,
    WORLD,
    MemoryLeases,
    run_worker,
    wait_for_settled,
)

REASONS = FailureReasons("TIMED_OUT", "NOT_JSON")


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

    async def perform(record: CakeRecord, _held: LeaseProof) -> Outcome:
        given = Job(record.order_id, "scoped", WORLD)
        ran = await run(RegisteredFunction("scoped", function, is_async=True), given, 60, REASONS, loops)
        return DONE if ran == RunResult('"done"') else RELEASED

    store = MemoryLeases(left=20)
    async with JobLoops(lambda *_: None) as loops, run_worker(store, 4, perform):
        await wait_for_settled(store, 20)
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
