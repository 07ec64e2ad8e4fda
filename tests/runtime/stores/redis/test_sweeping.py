"""What the clock drives: promotion, time-outs, workers that died, delays, and old dead letters."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from generated.priority.lifecycle import (
    TASK,
    TASK_RELEASE,
    TASK_RETRY,
    WORKER_LOSE,
    WORKER_LOSE_DRAINING,
)
from generated.priority.messages import (
    ACTIVE,
    COMPLETED,
    DEAD,
    DEAD_LETTER,
    DRAINING,
    QUEUED,
)
from runtime.call.conditions import Condition
from runtime.stores.redis.codec import parse_moment, to_microseconds
from runtime.stores.semantics import clocks
from tests.runtime.stores.redis.conftest import MakeKit
from tests.runtime.stores.redis.kit import Kit


@pytest.mark.req("PQ-175", "PQ-176", "PQ-177", "PQ-178", "PQ-195", "PQ-223")
async def test_a_task_runs_out_of_its_own_time(kit: Kit) -> None:
    """One of a minute is given up, one of an hour is left alone however long it has run already."""
    worker = await kit.worker()
    short = await kit.running(worker, timeout_seconds=60)
    long = await kit.running(worker, timeout_seconds=3600)
    assert await kit.sweep(TASK_RETRY) == 0
    past = await kit.now() - 1
    await kit.redis.hset(f"tasks:{short.task_id}", "deadline_at", past)
    await kit.redis.zadd("executing:deadlines", {short.task_id: past})
    assert await kit.sweep(TASK_RETRY) == 1
    now = await kit.task(short.task_id)
    assert (now.status, now.retry_count, now.error) == (QUEUED, 1, "the task ran out of time")
    assert await kit.held_by(worker) == {long.task_id}
    assert await kit.redis.hget("metrics", "task_retries_total|medium|timeout") == "1"
    assert (await kit.outbox(short.task_id))[-1]["reason"] == "timeout"
    assert isinstance(await kit.settle(short), Condition)
    await kit.sound()


@pytest.mark.req("PQ-082")
async def test_running_out_of_time_may_be_the_last_failure(kit: Kit) -> None:
    task = await kit.running(timeout_seconds=1, max_retries=0)
    await kit.redis.hset(f"tasks:{task.task_id}", "deadline_at", 1)
    await kit.redis.zadd("executing:deadlines", {task.task_id: 1})
    assert await kit.sweep(TASK_RETRY) == 1
    now = await kit.task(task.task_id)
    assert (now.status, now.dead_reason) == (DEAD_LETTER, "max_retries_exceeded")
    assert await kit.redis.hget("metrics", "tasks_dlq_total") == "1"
    assert await kit.redis.hget("metrics", "task_retries_total|medium|timeout") is None
    await kit.sound()


async def test_the_script_looks_at_the_clock_itself(kit: Kit) -> None:
    """An index that says that something is due does not make it so."""
    task = await kit.running(timeout_seconds=3600)
    await kit.redis.zadd("executing:deadlines", {task.task_id: 1})
    assert await kit.sweep(TASK_RETRY) == 0
    assert await kit.task(task.task_id) == task


@pytest.mark.req("PQ-066", "PQ-067", "PQ-169", "PQ-170", "PQ-171", "PQ-173", "PQ-181", "PQ-227")
async def test_the_tasks_of_a_dead_worker_are_queued_again(make_kit: MakeKit) -> None:
    """Two detectors do what one does, also where the first died between the two steps."""
    kits = [await make_kit(), await make_kit()]
    kit = kits[0]
    silent, heard = await kit.worker(10), await kit.worker(10)
    await kit.create(*(kit.intent() for _ in range(8)))
    taken = await kit.claim(silent, 4)
    others = await kit.claim(heard, 4)
    assert await kit.settle(taken[0]) == COMPLETED
    for worker, age in ((silent, 91), (heard, 30)):
        at = await kit.now() - age * 1_000_000
        await kit.redis.hset(f"workers:{worker}", "last_heartbeat", at)
        await kit.redis.zadd("workers:heartbeats", {worker: at})
    lost = await asyncio.gather(*(each.sweep(WORKER_LOSE) for each in kits))
    assert sorted(lost) == [0, 1]
    found = await kit.workers.get(silent)
    assert found is not None and found.status == DEAD
    queued = await asyncio.gather(*(each.sweep(TASK_RETRY, TASK_RETRY.dues[1]) for each in kits))
    assert sum(queued) == 3
    for task in taken[1:]:
        now = await kit.task(task.task_id)
        assert (now.status, now.retry_count, now.error) == (QUEUED, 1, "the worker was not heard of any more")
    assert (await kit.task(taken[0].task_id)).status == COMPLETED
    assert await kit.held_by(heard) == {task.task_id for task in others}
    assert await kit.redis.hget("metrics", "task_retries_total|medium|worker_lost") == "3"
    assert await kit.redis.hget("metrics", "worker_heartbeat_failures_total") == "1"
    assert await kit.claim(silent) == []
    await kit.sound()


async def test_those_who_drain_and_those_who_do_not_are_each_lost_their_own_way(make_kit: MakeKit) -> None:
    """However many of the others stand before them in the index."""
    kit = await make_kit()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clocks, "BATCH", 2)
        draining = [await kit.worker() for _ in range(5)]
        for worker in draining:
            await kit.workers.transition(worker, "drain", kit.call("worker"))
        active = await kit.worker()
        for place, worker in enumerate((*draining, active)):
            at = await kit.now() - (200 - place) * 1_000_000
            await kit.redis.hset(f"workers:{worker}", "last_heartbeat", at)
            await kit.redis.zadd("workers:heartbeats", {worker: at})
        assert await kit.sweep(WORKER_LOSE) == 1
        assert await kit.sweep(WORKER_LOSE_DRAINING) == 5
    assert (await kit.workers.count()) == {ACTIVE: 0, DRAINING: 0, DEAD: 6}


async def test_a_delayed_task_is_released_when_its_time_has_come(kit: Kit) -> None:
    in_an_hour = parse_moment(await kit.now()) + timedelta(hours=1)
    await kit.add(available_at=in_an_hour)
    made = await kit.add(available_at=in_an_hour)
    assert await kit.sweep(TASK_RELEASE) == 0
    waiting = asyncio.create_task(kit.claim(await kit.worker(), wait_s=60.0))
    at = await kit.now() - 1
    await kit.redis.hset(f"tasks:{made.task_id}", "available_at", at)
    await kit.redis.zadd("queue:delayed", {made.task_id: at})
    assert await kit.sweep(TASK_RELEASE) == 1
    assert [task.task_id for task in await waiting] == [made.task_id]
    await kit.sound()


@pytest.mark.req("PQ-212")
async def test_old_dead_letters_are_deleted(kit: Kit) -> None:
    """After thirty days with their hash; one of twenty-nine stays."""
    dead = []
    for _ in range(2):
        task = await kit.running(max_retries=0)
        assert await kit.fail(task) == DEAD_LETTER
        dead.append(task.task_id)
    for key, days in zip(dead, (31, 29), strict=True):
        at = await kit.now() - days * 86_400_000_000
        await kit.redis.hset(f"tasks:{key}", "completed_at", at)
        await kit.redis.zadd("queue:dlq", {key: at})
    assert await kit.sweep(None, TASK.deletion_due) == 1
    assert await kit.redis.exists(f"tasks:{dead[0]}") == 0
    assert await kit.redis.zrange("queue:dlq", 0, -1) == [dead[1]]
    await kit.sound()


async def test_a_dead_letter_is_purged_and_nothing_else_is(kit: Kit) -> None:
    admin = kit.call("admin")
    task = await kit.running(max_retries=0)
    assert await kit.tasks.delete(task.task_id, DEAD_LETTER, admin) == (False, task.status)
    await kit.fail(task)
    with pytest.raises(Condition):
        await kit.tasks.delete(task.task_id, DEAD_LETTER, kit.call("client"))
    assert await kit.tasks.delete(task.task_id, COMPLETED, admin) == (False, DEAD_LETTER)
    assert await kit.tasks.delete(task.task_id, DEAD_LETTER, admin) == (True, DEAD_LETTER)
    assert await kit.redis.exists("queue:dlq", f"tasks:{task.task_id}") == 0
    await kit.sound()


async def test_only_the_component_of_the_clock_drives_it(kit: Kit) -> None:
    assert TASK_RETRY.dues
    with pytest.raises(Condition):
        await kit.tasks.run_due("retry", kit.call("promoter"))
    with pytest.raises(Condition):
        await kit.tasks.run_due("retry", kit.call("worker"))


@pytest.mark.req("PQ-056")
async def test_what_has_expired_leaves_the_indexes_too(make_kit: MakeKit) -> None:
    """Ended tasks are counted for as long as they are kept; sets of needs that nobody has are forgotten."""
    kit = await make_kit(TASK_RETENTION_SECONDS=3600)
    worker = await kit.worker(10, "gpu")
    task = await kit.running(worker, required_capabilities=("gpu",))
    await kit.settle(task)
    cancelled, waiting = await kit.add(required_capabilities=("tpu",)), await kit.add()
    await kit.cancel(cancelled.task_id)
    assert (await kit.tasks.count())[COMPLETED] == 1
    assert await kit.redis.hlen("queue:capabilities") == 3
    for key, state in ((task.task_id, "completed"), (cancelled.task_id, "cancelled")):
        assert 0 < await kit.redis.pttl(f"tasks:{key}") <= 3_600_000
        # As it is when they ended long ago.
        await kit.redis.delete(f"tasks:{key}")
        await kit.redis.zadd(f"tasks:status:{state}", {key: 1}, xx=True)
    assert (await kit.tasks.count())[COMPLETED] == 0
    assert await kit.tasks.trim() == 4
    assert await kit.redis.hkeys("queue:capabilities") == ["any"]
    assert await kit.redis.exists("tasks:status:completed", "tasks:status:cancelled") == 0
    assert [each.task_id for each in await kit.claim(worker)] == [waiting.task_id]
    again = await kit.add(required_capabilities=("gpu",))
    assert [each.task_id for each in await kit.claim(worker)] == [again.task_id]
    await kit.sound()


async def test_a_due_time_is_told_as_the_store_has_it(kit: Kit) -> None:
    task = await kit.running()
    assert task.deadline_at is not None
    assert to_microseconds(task.deadline_at) == int((await kit.hash(task.task_id))["deadline_at"])
