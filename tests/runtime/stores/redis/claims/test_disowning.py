"""Leases of which their holder knows nothing: they are left by their own fence, and no other with them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from generated.priority.messages import COMPLETED, DEAD_LETTER, EXECUTING, QUEUED
from generated.priority.records import TaskRecord
from runtime.stores.redis.rows import moment_of
from tests.runtime.stores.redis.conftest import MakeKit
from tests.runtime.stores.redis.kit import Kit, gathered

GIVEN = {"reason": "worker_lost", "error": "nobody knows of it", "retriable": "true"}


async def disowned(kit: Kit, worker: str, *tasks: TaskRecord, before: datetime | None = None) -> set[str]:
    before = before or moment_of(await kit.now())
    keys = [task.task_id for task in tasks]
    return await kit.tasks.disown(worker, keys, before, QUEUED, kit.call("worker"), **GIVEN)


@pytest.mark.req("PQ-137")
async def test_what_was_taken_before_a_moment_is_left(kit: Kit) -> None:
    """It waits again where it was, counted as a retry; what was taken at that moment or later does not."""
    worker = await kit.worker()
    early = await kit.running(worker)
    late = await kit.running(worker)
    assert late.started_at is not None
    assert await disowned(kit, worker, early, late, before=late.started_at) == {early.task_id}
    back = await kit.task(early.task_id)
    assert (back.status, back.retry_count, back.attempt) == (QUEUED, 1, 1)
    assert (back.assigned_worker_id, back.started_at, back.error) == (None, None, "nobody knows of it")
    assert back.queued_at == early.queued_at
    assert (await kit.task(late.task_id)).status == EXECUTING
    assert await kit.tasks.held_by(worker) == {late.task_id}
    assert (await kit.outbox(early.task_id))[-1]["reason"] == "worker_lost"
    await kit.sound()


async def test_its_late_result_is_refused_and_the_next_attempt_counts(kit: Kit) -> None:
    """Whoever had it all the same has lost it; whoever takes it next is the only one who can end it."""
    worker, other = await kit.worker(), await kit.worker()
    first = await kit.running(worker)
    assert await disowned(kit, worker, first) == {first.task_id}
    (second,) = await kit.claim(other)
    assert (second.task_id, second.attempt) == (first.task_id, 2)
    assert isinstance(await kit.settle(first), Exception)
    assert await disowned(kit, worker, first) == set(), "it is another's"
    assert await kit.settle(second) == COMPLETED
    await kit.sound()


async def test_what_has_ended_or_is_gone_stays_so(kit: Kit) -> None:
    """Also if it ended between the look and the change: one of the two happens, and only one."""
    worker = await kit.worker()
    ended, gone = await kit.running(worker), kit.intent()
    assert await kit.settle(ended) == COMPLETED
    assert await disowned(kit, worker, ended, gone) == set()
    seen = set()
    for _ in range(40):
        task = await kit.running(worker)
        left, told = await gathered(disowned(kit, worker, task), kit.settle(task))
        now = await kit.task(task.task_id)
        assert (now.status == QUEUED) == (left == {task.task_id}) == (told != COMPLETED)
        seen.add(now.status)
        if now.status == QUEUED:
            assert await kit.settle((await kit.claim(worker))[0]) == COMPLETED
    assert seen <= {QUEUED, COMPLETED}
    await kit.sound()


async def test_many_processes_leave_each_once(make_kit: MakeKit) -> None:
    """A heartbeat that comes several times, at several copies of the API, counts one retry."""
    kits = [await make_kit() for _ in range(4)]
    kit = kits[0]
    worker = await kit.worker()
    await kit.create(*(kit.intent() for _ in range(30)))
    tasks = await kit.claim(worker)
    before = moment_of(await kit.now())
    left = await gathered(*(disowned(each, worker, *tasks, before=before) for each in kits * 2))
    assert set.union(*left) == {task.task_id for task in tasks}
    assert {(await kit.task(task.task_id)).retry_count for task in tasks} == {1}
    again = await kit.claim(worker)
    assert len(again) == 30
    late = await gathered(*(disowned(each, worker, *tasks, before=before) for each in kits))
    assert late == [set()] * 4, "they were taken anew since"
    await kit.sound()


async def test_it_ends_when_it_was_lost_too_often(kit: Kit) -> None:
    """No way back into a queue is without end."""
    worker = await kit.worker()
    task = await kit.running(worker, max_retries=0)
    later = moment_of(await kit.now()) + timedelta(seconds=1)
    assert await disowned(kit, worker, task, before=later) == {task.task_id}
    assert (await kit.task(task.task_id)).status == DEAD_LETTER
    await kit.sound()
