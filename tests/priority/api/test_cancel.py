"""DELETE /api/v1/tasks/{task_id}: what can be cancelled, and what happens to whoever runs it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.chaos import Chaos
from tests.support.priority.stack import Queue, refused, told

NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.mark.req("PQ-083", "PQ-106", "PQ-048")
@pytest.mark.parametrize("priority", ["high", "medium", "low"])
def test_a_task_that_waits(queue: Queue, priority: str) -> None:
    """It leaves its queue and is never handed out."""
    task = queue.submit(priority=priority, required_capabilities=["gpu"])
    assert told(queue.cancel(task)) == {"task_id": task, "status": "cancelled"}
    assert queue.queues_of(task) == []
    assert queue.get(task)["completed_at"]
    assert queue.poll(queue.register("gpu"), 5) == []
    assert not list(queue.redis.scan_iter("queue:*:cap:*"))


@pytest.mark.req("PQ-107")
def test_a_task_that_was_promoted(queue: Queue) -> None:
    """Wherever it is, it leaves from there."""
    task = queue.submit(priority="low")
    score = queue.redis.zscore("queue:low", task)
    assert score is not None
    for key in queue.redis.scan_iter("queue:low*"):
        queue.redis.zrem(key, task)
    queue.redis.hset(f"tasks:{task}", "effective_priority", "high")
    queue.redis.zadd("queue:high", {task: score})
    queue.redis.zadd("queue:high:cap:any", {task: score})
    assert told(queue.cancel(task))["status"] == "cancelled"
    assert queue.queues_of(task) == []
    assert not list(queue.redis.scan_iter("queue:*:cap:*"))


@pytest.mark.req("PQ-084", "PQ-108", "PQ-150", "PQ-062", "PQ-143")
def test_a_task_that_runs(queue: Queue) -> None:
    """Its slot is free at once, its worker learns of it at the next heartbeat, and its result is refused."""
    worker = queue.register(capacity=1)
    task, other = queue.submit(), queue.submit()
    given = queue.claim(worker)
    assert given["task_id"] == task
    assert queue.poll(worker, 1) == []
    assert told(queue.cancel(task))["status"] == "cancelled"
    beat = told(queue.beat(worker, 1))
    assert (beat["acknowledged"], beat["stop"]) == (True, [task])
    assert told(queue.beat(worker))["stop"] == []
    refused(queue.report(worker, given, result={}), 409, "STALE_ATTEMPT")
    assert queue.status(task) == "cancelled"
    assert queue.claim(worker)["task_id"] == other
    assert queue.redis.zscore("executing:deadlines", task) is None


@pytest.mark.req("PQ-109", "PQ-086")
def test_a_task_that_ended(queue: Queue) -> None:
    """All four ends are refused, and nothing changes."""
    worker = queue.register()
    completed, failed, cancelled = queue.submit(), queue.submit(), queue.submit()
    queue.complete(worker, queue.claim(worker))
    queue.fail(worker, queue.claim(worker), retriable=False)
    queue.cancel(cancelled)
    dead = queue.bury(worker)
    for task in (completed, failed, cancelled, dead):
        before = queue.hash(task)
        error = refused(queue.cancel(task), 409, "TASK_TERMINAL")
        assert error["details"] == {"task_id": task, "status": before["status"]}
        assert queue.hash(task) == before


@pytest.mark.req("PQ-110")
def test_a_task_that_is_not_there(queue: Queue) -> None:
    """404, and nothing is made of it."""
    refused(queue.cancel(NOBODY), 404, "TASK_NOT_FOUND")
    assert queue.stored() == []


@pytest.mark.chaos
@pytest.mark.req("PQ-111", "PQ-088")
def test_cancel_against_claim(queue: Queue, chaos: Chaos) -> None:
    """One of them wins: what was cancelled before it started is never handed out."""
    worker = queue.register(capacity=1000)
    with ThreadPoolExecutor(8) as pool:
        for _ in chaos.rounds(20):
            task = queue.submit()
            polling = pool.submit(queue.poll, worker, 1)
            cancelling = pool.submit(queue.cancel, task)
            taken, answer = polling.result(), cancelling.result()
            assert answer.status_code == 200
            kept = queue.hash(task)
            assert kept["status"] == "cancelled"
            assert ("started_at" in kept) == bool(taken)
            assert queue.queues_of(task) == []
    assert queue.stats()["workers"]["used_capacity"] == 0
