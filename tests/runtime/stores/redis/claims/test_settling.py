"""Leases that end: results, failures with another try, dead letters, and reports that come too late."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from generated.priority.lifecycle import TASK_GIVE_BACK
from generated.priority.messages import (
    COMPLETED,
    DEAD_LETTER,
    FAILED,
    HIGH,
    LOW,
    MEDIUM,
    QUEUED,
)
from runtime.call.conditions import Condition
from runtime.stores.contract import LeaseProof
from runtime.stores.redis.codec import to_microseconds
from tests.runtime.stores.redis.conftest import MakeKit
from tests.runtime.stores.redis.kit import Kit, settlement


@pytest.mark.req("PQ-140", "PQ-141", "PQ-143", "PQ-015", "PQ-182", "PQ-084")
async def test_a_report_by_anyone_but_the_holder_is_refused(kit: Kit) -> None:
    """By another worker, for an earlier attempt, for a task that nobody runs: nothing at all is written."""
    worker = await kit.worker()
    task = await kit.running(worker)

    async def refused(held: LeaseProof, key: str = task.task_id, target: int = COMPLETED) -> None:
        before = await kit.hash(task.task_id)
        (outcome,) = await kit.tasks.settle_many([settlement(key, target, held)], kit.call("worker"))
        assert isinstance(outcome, Condition) and outcome.code == "stale_attempt"
        assert await kit.hash(task.task_id) == before

    for target in (COMPLETED, FAILED, QUEUED, DEAD_LETTER):
        await refused(LeaseProof("somebody", 1), target=target)
        await refused(LeaseProof(worker, 2), target=target)
    await refused(LeaseProof(worker, 1), key="no such task")
    assert await kit.fail(task) == QUEUED
    (again,) = await kit.claim(worker)
    assert again.attempt == 2
    await refused(LeaseProof(worker, 1))
    assert (await kit.cancel(task.task_id)).applied
    await refused(LeaseProof(worker, 2))
    await kit.sound()


@pytest.mark.req("PQ-142")
async def test_the_same_report_twice_is_counted_once(kit: Kit) -> None:
    """A success, a failure, and a failure that was the last one; also twice in one call."""
    for target, limit, ended in (
        (COMPLETED, 3, COMPLETED),
        (FAILED, 3, FAILED),
        (QUEUED, 3, QUEUED),
        (QUEUED, 0, DEAD_LETTER),
    ):
        task = await kit.running(max_retries=limit)
        held = LeaseProof(task.assigned_worker_id or "", task.attempt)
        asked = [settlement(task.task_id, target, held, {"reason": "reported"})] * 2
        first, second = await kit.tasks.settle_many(asked, kit.call("worker"))
        (third,) = await kit.tasks.settle_many(asked[:1], kit.call("worker"))
        assert first == ended
        assert [getattr(each, "code", each) for each in (second, third)] == ["stale_attempt"] * 2
        assert len(await kit.outbox(task.task_id)) == 3
        await kit.redis.flushall()


@pytest.mark.req("PQ-081", "PQ-184", "PQ-187", "PQ-188", "PQ-189", "PQ-046", "PQ-192", "PQ-051")
async def test_a_failure_is_tried_again_with_more_time(make_kit: MakeKit) -> None:
    """300 seconds become 450, 675, 1013, 1520, then what the ceiling allows; the place in the queue stays."""
    kit = await make_kit(MAX_TIMEOUT_SECONDS=2000)
    worker = await kit.worker()
    made = await kit.add(priority=HIGH)
    for count, seconds in enumerate((450, 675, 1013, 1520, 2000), 1):
        (task,) = await kit.claim(worker)
        assert await kit.fail(task) == QUEUED
        now = await kit.task(made.task_id)
        assert (now.retry_count, now.timeout_seconds, now.attempt) == (count, seconds, count)
        assert (now.started_at, now.assigned_worker_id, now.deadline_at) == (None, None, None)
        assert (now.created_at, now.error, now.retriable) == (made.created_at, "it broke", True)
        assert await kit.redis.zscore("queue:high", made.task_id) == to_microseconds(made.created_at)
    await kit.sound()


@pytest.mark.req("PQ-082", "PQ-185", "PQ-186", "PQ-208", "PQ-209", "PQ-210", "PQ-211", "PQ-213")
@pytest.mark.parametrize(("priority", "retries"), [(HIGH, 5), (MEDIUM, 3), (LOW, 2)])
async def test_one_failure_more_than_allowed_makes_a_dead_letter(
    kit: Kit, priority: int, retries: int
) -> None:
    worker = await kit.worker()
    made = await kit.add(priority=priority)
    for _ in range(retries):
        assert await kit.fail((await kit.claim(worker))[0]) == QUEUED
    assert await kit.fail((await kit.claim(worker))[0]) == DEAD_LETTER
    dead = await kit.task(made.task_id)
    assert (dead.retry_count, dead.attempt) == (retries, retries + 1)
    assert (dead.dead_reason, dead.error) == ("max_retries_exceeded", "it broke")
    assert dead.completed_at is not None and dead.assigned_worker_id == worker
    assert await kit.redis.zscore("queue:dlq", made.task_id) == to_microseconds(dead.completed_at)
    assert await kit.redis.ttl(f"tasks:{made.task_id}") == -1
    assert await kit.claim(worker) == []
    told = await kit.outbox(made.task_id)
    assert told[-1]["reason"] == "reported" and "record" in told[-1] and "record" not in told[-2]
    await kit.sound()


@pytest.mark.req("PQ-080", "PQ-194")
async def test_a_failure_for_good_is_not_tried_again(kit: Kit) -> None:
    task = await kit.running()
    assert await kit.settle(task, FAILED, error="no use", retriable="false", reason="non_retriable") == FAILED
    now = await kit.task(task.task_id)
    assert (now.status, now.retry_count, now.retriable) == (FAILED, 0, False)
    assert await kit.redis.exists("queue:dlq") == 0
    await kit.sound()


@pytest.mark.req("PQ-190", "PQ-191")
async def test_a_retry_goes_back_to_the_queue_of_its_priority(kit: Kit) -> None:
    made = await kit.add(priority=LOW)
    await kit.back_date(made.task_id, 1300)
    from generated.priority.lifecycle import TASK_RAISE_LOW, TASK_RAISE_MEDIUM

    await kit.sweep(TASK_RAISE_LOW)
    await kit.sweep(TASK_RAISE_MEDIUM)
    (task,) = await kit.claim(await kit.worker())
    assert task.effective_priority == HIGH
    await kit.fail(task)
    now = await kit.task(made.task_id)
    assert (now.effective_priority, (await kit.queues())["low"]) == (LOW, [made.task_id])
    await kit.sound()


@pytest.mark.req("PQ-196")
async def test_a_wait_before_the_next_try(make_kit: MakeKit) -> None:
    """2, 4, then no more than 5 seconds; without a base there is no wait at all."""
    kit = await make_kit(RETRY_BACKOFF_SECONDS=2.0, RETRY_BACKOFF_MAX_SECONDS=5.0)
    worker, made = await kit.worker(), await kit.add(priority=HIGH)
    for seconds in (2, 4, 5):
        (task,) = await kit.claim(worker)
        await kit.fail(task)
        now = await kit.task(made.task_id)
        assert now.available_at is not None and now.available_at - now.updated_at == timedelta(
            seconds=seconds
        )
        assert await kit.claim(worker) == []
        await kit.sound()
        await kit.redis.hset(f"tasks:{made.task_id}", "available_at", 1)
        await kit.redis.zadd("queue:delayed", {made.task_id: 1})
        from generated.priority.lifecycle import TASK_RELEASE

        assert await kit.sweep(TASK_RELEASE) == 1
    await kit.sound()


async def test_changes_of_a_kind_are_told_in_one_entry_that_is_not_too_large(kit: Kit) -> None:
    """Five that end together are one entry, unless what they leave behind is too much for that."""
    worker = await kit.worker()
    for result, entries in (('"small"', 1), (f'"{"x" * 300_000}"', 2)):
        made = {(await kit.add()).task_id for _ in range(5)}
        tasks = await kit.claim(worker)
        asked = [
            settlement(each.task_id, COMPLETED, LeaseProof(worker, each.attempt), {"result": result})
            for each in tasks
        ]
        await kit.redis.delete("history:outbox")
        assert await kit.tasks.settle_many(asked, kit.call("worker")) == [COMPLETED] * 5
        assert await kit.redis.xlen("history:outbox") == entries
        told = await kit.outbox()
        assert {each["key"] for each in told} == made
        assert {json.loads(each["record"])["result"] for each in told} == {result}
        assert {(each["from"], each["to"], each["fence"]) for each in told} == {
            ("executing", "completed", "1")
        }
    await kit.sound()


@pytest.mark.req("PQ-184", "PQ-185")
async def test_what_is_given_back_counts_nothing_and_fences(kit: Kit) -> None:
    """Neither retries nor time limit nor place change; an old lease settles nothing, and failures count."""
    worker = await kit.worker()
    task = await kit.running(worker, max_retries=0, timeout_seconds=100, priority=LOW)
    edge, first = TASK_GIVE_BACK, LeaseProof(worker, 1)
    for attempt in range(1, 6):
        given = settlement(
            task.task_id, QUEUED, LeaseProof(worker, attempt), {"reason": "given_back"}, edge=edge.name
        )
        assert await kit.tasks.settle_many([given], kit.call("worker")) == [QUEUED]
        waits = await kit.task(task.task_id)
        assert (waits.status, waits.retry_count, waits.timeout_seconds) == (QUEUED, 0, 100)
        assert (waits.queued_at, waits.error, waits.available_at) == (task.queued_at, None, None)
        (again,) = await kit.claim(worker)
        assert again.attempt == attempt + 1
        (stale,) = await kit.tasks.settle_many(
            [settlement(task.task_id, COMPLETED, first)], kit.call("worker")
        )
        assert isinstance(stale, Condition) and stale.code == "stale_attempt"
    await kit.sound()
    for actor in ("detector", "client"):
        given = settlement(task.task_id, QUEUED, LeaseProof(worker, 6), edge=edge.name)
        (denied,) = await kit.tasks.settle_many([given], kit.call(actor))
        assert isinstance(denied, Condition) and denied.code == "forbidden"
    assert await kit.fail(await kit.task(task.task_id)) == DEAD_LETTER
