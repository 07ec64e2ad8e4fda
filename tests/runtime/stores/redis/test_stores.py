"""The stores of a node: what each component drives by the clock, in which order, and how that is watched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import generate_latest

from generated.priority.lifecycle import TASK, WORKER
from generated.priority.messages import HIGH, LOW, QUEUED
from generated.priority.records import TaskRecord, WorkerRecord
from generated.priority.system import SYSTEM
from runtime.node.wiring import find_clock_drivers, needs_no_handler
from runtime.stores.contract import EntityStore
from runtime.stores.node_stores import Stores
from tests.runtime.stores.redis.conftest import MakeKit
from tests.runtime.stores.redis.kit import WORLD, Kit
from tests.support.eventually import eventually


@asynccontextmanager
async def driven(kit: Kit, component: str, **values: object) -> AsyncIterator[Stores]:
    """All that a component does by the clock, in a node of its own."""
    settings = {**kit.values, "REDIS_URL": kit.url, **values}
    stores, stopping = Stores(SYSTEM, WORLD, kit.metrics, settings, component), asyncio.Event()
    tasks = [asyncio.create_task(each) for each in stores.sweepers(component, kit.call(component), stopping)]
    try:
        yield stores
    finally:
        stopping.set()
        await asyncio.gather(*tasks)
        await stores.close()


async def until(kit: Kit, key: str, **wanted: object) -> TaskRecord:
    return await eventually(
        lambda: kit.task(key),
        wanted=lambda task: all(getattr(task, name) == value for name, value in wanted.items()),
    )


def test_every_clock_of_the_spec_has_a_component() -> None:
    assert find_clock_drivers(TASK) == {"promoter", "detector", "sweeper", "historian"}
    assert find_clock_drivers(WORKER) == {"detector"}
    assert all(needs_no_handler(SYSTEM, component) for component in find_clock_drivers(TASK))
    assert not needs_no_handler(SYSTEM, "manager")


@pytest.mark.req("PQ-008", "PQ-014", "PQ-015", "PQ-031", "PQ-168", "PQ-174")
async def test_both_steps_of_a_promotion_are_made_in_one_cycle(make_kit: MakeKit) -> None:
    """An hour between two looks: whatever is not done in the first one would not be done in time."""
    kit = await make_kit()
    made = await kit.add(priority=LOW)
    await kit.back_date(made.task_id, 1300)
    async with driven(kit, "promoter", PROMOTION_INTERVAL_SECONDS=3600):
        await until(kit, made.task_id, effective_priority=HIGH)
    told = generate_latest(kit.metrics.registry).decode()
    assert 'charter_swept_total{change="raise_low",entity="task"} 1.0' in told
    assert 'charter_sweep_failures_total{change="raise_medium",entity="task"} 0.0' in told
    assert 'charter_sweep_last_run_seconds{change="raise_medium",entity="task"} 1.' in told
    assert [line["changed"] for line in kit.lines.read_back("sweep")] == [1, 1]


@pytest.mark.req("PQ-172", "PQ-030", "PQ-173")
async def test_a_worker_is_lost_before_its_tasks_are_looked_for(make_kit: MakeKit) -> None:
    """In the same look, so that its tasks do not wait for another one."""
    kit = await make_kit()
    worker = await kit.worker()
    task = await kit.running(worker)
    await kit.redis.hset(f"workers:{worker}", "last_heartbeat", 1)
    await kit.redis.zadd("workers:heartbeats", {worker: 1})
    slow = {"WORKER_CHECK_INTERVAL_SECONDS": 3600, "TIMEOUT_CHECK_INTERVAL_SECONDS": 3600}
    async with driven(kit, "detector", **slow):
        await until(kit, task.task_id, status=QUEUED, retry_count=1)
    await kit.sound()


async def test_stores_are_shared_and_told_apart_by_their_records(make_kit: MakeKit) -> None:
    kit = await make_kit()
    values = {**kit.values, "REDIS_URL": kit.url}
    stores = Stores(SYSTEM, WORLD, kit.metrics, values, "node")
    tasks: EntityStore[TaskRecord] = stores.of(TASK, TaskRecord)
    workers: EntityStore[WorkerRecord] = stores.of(WORKER, WorkerRecord)
    assert stores.of(TASK, TaskRecord) is tasks and tasks is not workers
    await stores.open(kit.log, ["manager"])
    assert await stores.health() is None
    made = (await tasks.create(kit.intent(), kit.call("client"))).record
    assert await kit.task(made.task_id) == made
    assert b'queue_depth{priority="medium"} 1.0' in await kit.metrics.render()
    await stores.close()
