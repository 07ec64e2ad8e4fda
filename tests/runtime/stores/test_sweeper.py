"""The loop that drives what is due by the clock, on a real store."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from generated.orchestrator.errors import ServiceUnavailable
from generated.orchestrator.lifecycle import JOB_ACCEPT, JOB_FAIL
from generated.orchestrator.messages import CREATED, QUEUED, RETRY, RUNNING
from runtime.call import Call
from runtime.model.lifecycles import Transition
from runtime.stores.postgres import due_transitions
from runtime.stores.sweeper import Sweep, sweep_all, sweep_regularly
from runtime.world import RealWorld
from tests.runtime.stores.postgres.conftest import folder, kit, make_kit, server, url
from tests.runtime.stores.postgres.kit import Kit, unguarded
from tests.support.eventually import eventually

__all__ = ["folder", "kit", "make_kit", "server", "url"]


def due(kit: Kit, edge: Transition) -> Sweep:
    """What drives an edge by the clock."""

    async def step(call: Call) -> int:
        return await kit.store.run_due(edge.name, call)

    return Sweep("job", edge.name, step)


DUE = unguarded("UPDATE jobs SET created_at = clock_timestamp() - interval '61 s'")


class Drawn(RealWorld):
    """A world that notes what was left to chance."""

    def __init__(self) -> None:
        self.drawn: list[tuple[float, float]] = []

    def uniform(self, low: float, high: float) -> float:
        self.drawn.append((low, high))
        return super().uniform(low, high)


@pytest.mark.req("ORC-068")
async def test_all_that_is_due_is_moved_in_bounded_batches(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven entities, two at a time: one look moves all of them, the next one none."""
    monkeypatch.setattr(due_transitions, "batch_size", lambda *_: 2)
    jobs = [(await kit.add(CREATED)).job_id for _ in range(7)]
    await kit.sql.execute(DUE)
    asked: list[int] = []
    original = kit.store.run_due

    async def sweep(*given: Any) -> int:
        asked.append(await original(*given))
        return asked[-1]

    monkeypatch.setattr(kit.store, "run_due", sweep)
    assert await sweep_all(due(kit, JOB_ACCEPT), kit.call("api"), asyncio.Event()) == 7
    assert asked == [2, 2, 2, 1, 0]
    assert {(await kit.job(job)).state for job in jobs} == {QUEUED}
    assert await sweep_all(due(kit, JOB_ACCEPT), kit.call("api"), asyncio.Event()) == 0


@pytest.mark.req("ORC-X06")
async def test_a_loop_that_is_told_to_stop_begins_no_further_batch(kit: Kit) -> None:
    """What is due stays for the others, and the loop ends although its next look would be in an hour."""
    job, stopping = (await kit.add(CREATED)).job_id, asyncio.Event()
    loop = asyncio.create_task(sweep_regularly([due(kit, JOB_ACCEPT)], 3600, kit.call("api"), stopping))
    await eventually(lambda: kit.lines.read_back("sweep"))
    await kit.sql.execute(DUE)
    stopping.set()
    await loop
    assert await sweep_all(due(kit, JOB_ACCEPT), kit.call("api"), stopping) == 0
    assert (await kit.job(job)).state == CREATED


@pytest.mark.req("ORC-017", "ORC-142")
async def test_loops_look_again_and_not_all_at_the_same_moment(kit: Kit) -> None:
    """What becomes due later is moved by a later look; the time between two looks is left to chance."""
    world, stopping = Drawn(), asyncio.Event()
    call = Call(world=world, log=kit.log, caller="reaper")
    loop = asyncio.create_task(sweep_regularly([due(kit, JOB_FAIL)], 0.05, call, stopping))
    for _ in range(2):
        job = (await kit.add(RUNNING)).job_id
        await kit.sql.execute(
            "UPDATE jobs SET lease_expiry = clock_timestamp() - interval '1 s' WHERE job_id = $1", job
        )
        await eventually(lambda: kit.job(job), wanted=lambda seen: seen.state == RETRY)  # noqa: B023
    stopping.set()
    await loop
    assert world.drawn.count((0.8 * 0.05, 0.05)) > 1


@pytest.mark.req("ORC-145", "ORC-010")
async def test_a_store_that_is_away_is_told_of_and_waited_for(kit: Kit) -> None:
    """Each look that fails has a line with the edge and no details; when the store is back all is moved."""
    job, stopping = (await kit.add(CREATED)).job_id, asyncio.Event()
    await kit.sql.execute(DUE)
    await kit.sql.execute("ALTER TABLE jobs RENAME TO away")
    loop = asyncio.create_task(sweep_regularly([due(kit, JOB_ACCEPT)], 0.02, kit.call("api"), stopping))
    try:
        lines = await eventually(lambda: kit.lines.read_back("sweep_failed"))
    finally:
        await kit.sql.execute("ALTER TABLE away RENAME TO jobs")
    assert lines[0]["message"] == "accept: the service cannot reach its database now"
    assert (lines[0]["level"], lines[0]["grpc_code"]) == ("WARNING", "UNAVAILABLE")
    await eventually(lambda: kit.job(job), wanted=lambda seen: seen.state == QUEUED)
    stopping.set()
    await loop


class Hurried(Drawn):
    """A world in which no pause takes long."""

    def uniform(self, low: float, high: float) -> float:
        super().uniform(low, high)
        return 0.0


@pytest.mark.req("ORC-145", "OQ-250")
async def test_failures_are_followed_by_pauses_that_grow(kit: Kit) -> None:
    """Up to the usual time between two looks; one that works is followed by the usual time again."""
    world, stopping = Hurried(), asyncio.Event()
    call = Call(world=world, log=kit.log, caller="api")
    fails = [True, True, True, True, False, True, False]

    async def step(_call: Call) -> int:
        is_failing = fails.pop(0)
        if not fails:
            stopping.set()
        if is_failing:
            raise ServiceUnavailable
        return 0

    await sweep_regularly([Sweep("job", "accept", step)], 5.0, call, stopping)
    pauses = [most for low, most in world.drawn if low == 0.8 * most]
    assert pauses == [1.0, 2.0, 4.0, 5.0, 5.0, 1.0, 5.0]
