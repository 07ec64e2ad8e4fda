"""DELETE /api/v1/tasks/{task_id}: which tasks can be cancelled, and the effect on their workers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.chaos import Chaos
from tests.support.priority.probes import UNKNOWN_ID
from tests.support.priority.stack import Queue, expect_refusal, expect_success


@pytest.mark.req("PQ-083", "PQ-106", "PQ-048")
@pytest.mark.parametrize("priority", ["high", "medium", "low"])
def test_a_queued_task_is_cancelled(queue: Queue, priority: str) -> None:
    """It is removed from its queue and never claimed."""
    task = queue.submit(priority=priority, required_capabilities=["gpu"])
    assert expect_success(queue.cancel(task)) == {"task_id": task, "status": "cancelled"}
    assert queue.list_queues(task) == []
    assert queue.get(task)["completed_at"]
    assert queue.poll(queue.register("gpu"), 5) == []
    assert not list(queue.redis.scan_iter("queue:*:cap:*"))


@pytest.mark.req("PQ-107")
def test_a_promoted_task_is_cancelled(queue: Queue) -> None:
    """It is removed from the queue it was promoted to."""
    task = queue.submit(priority="low")
    score = queue.redis.zscore("queue:low", task)
    assert score is not None
    for key in queue.redis.scan_iter("queue:low*"):
        queue.redis.zrem(key, task)
    queue.redis.hset(f"tasks:{task}", "effective_priority", "high")
    queue.redis.zadd("queue:high", {task: score})
    queue.redis.zadd("queue:high:cap:any", {task: score})
    assert expect_success(queue.cancel(task))["status"] == "cancelled"
    assert queue.list_queues(task) == []
    assert not list(queue.redis.scan_iter("queue:*:cap:*"))


@pytest.mark.req("PQ-084", "PQ-108", "PQ-150", "PQ-062", "PQ-143")
def test_a_running_task_is_cancelled(queue: Queue) -> None:
    """Its slot is free at once, its worker is notified by the next heartbeat, and its result is refused."""
    worker = queue.register(capacity=1)
    task, other = queue.submit(), queue.submit()
    claimed = queue.claim(worker)
    assert claimed["task_id"] == task
    assert queue.poll(worker, 1) == []
    assert expect_success(queue.cancel(task))["status"] == "cancelled"
    beat = expect_success(queue.beat(worker, 1, running=[task]))
    assert (beat["acknowledged"], beat["stop"]) == (True, [task])
    assert expect_success(queue.beat(worker))["stop"] == []
    expect_refusal(queue.report(worker, claimed, result={}), 409, "STALE_ATTEMPT")
    assert queue.status(task) == "cancelled"
    assert queue.claim(worker)["task_id"] == other
    assert queue.redis.zscore("executing:deadlines", task) is None


@pytest.mark.req("PQ-109", "PQ-086")
def test_a_terminal_task_is_not_cancelled(queue: Queue) -> None:
    """All four terminal states are refused, and nothing changes."""
    worker = queue.register()
    completed, failed, cancelled = queue.submit(), queue.submit(), queue.submit()
    queue.complete(worker, queue.claim(worker))
    queue.fail(worker, queue.claim(worker), retriable=False)
    queue.cancel(cancelled)
    dead = queue.make_dead_letter(worker)
    for task in (completed, failed, cancelled, dead):
        before = queue.read_hash(task)
        error = expect_refusal(queue.cancel(task), 409, "TASK_TERMINAL")
        assert error["details"] == {"task_id": task, "status": before["status"]}
        assert queue.read_hash(task) == before


@pytest.mark.req("PQ-110")
def test_an_unknown_task_is_not_found(queue: Queue) -> None:
    """404, and nothing is created."""
    expect_refusal(queue.cancel(UNKNOWN_ID), 404, "TASK_NOT_FOUND")
    assert queue.list_keys() == []


@pytest.mark.chaos
@pytest.mark.req("PQ-111", "PQ-088")
def test_a_cancel_races_a_claim(queue: Queue, chaos: Chaos) -> None:
    """One of them wins: a task that is cancelled before its start is never claimed."""
    worker = queue.register(capacity=1000)
    with ThreadPoolExecutor(8) as pool:
        for _ in chaos.rounds(20):
            task = queue.submit()
            polling = pool.submit(queue.poll, worker, 1)
            cancelling = pool.submit(queue.cancel, task)
            claimed, answer = polling.result(), cancelling.result()
            assert answer.status_code == 200
            stored = queue.read_hash(task)
            assert stored["status"] == "cancelled"
            assert ("started_at" in stored) == bool(claimed)
            assert queue.list_queues(task) == []
    assert queue.stats()["workers"]["used_capacity"] == 0
