"""POST /internal/workers/{worker_id}/poll: which tasks are claimed, and in which order."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest

from tests.support.priority.probes import UNKNOWN_ID
from tests.support.priority.stack import Queue, expect_refusal, expect_success, wait_until


@pytest.mark.req("PQ-132", "PQ-133", "PQ-131")
def test_a_claimed_task_has_all_fields(queue: Queue) -> None:
    """All that a worker needs to run the task, to report it, and to know its deadline."""
    worker = queue.register()
    task = queue.submit("resize", parameters={"w": 3}, timeout_seconds=90, priority="low")
    claimed = queue.claim(worker)
    task_view = queue.get(task)
    assert claimed == {
        "task_id": task,
        "task_type": "resize",
        "parameters": {"w": 3},
        "timeout_seconds": 90,
        "trace_id": task_view["trace_id"],
        "attempt": 1,
        "deadline_at": task_view["deadline_at"],
        "priority": "low",
        "retry_count": 0,
    }
    started, deadline = (datetime.fromisoformat(task_view[name]) for name in ("started_at", "deadline_at"))
    assert deadline - started == timedelta(seconds=90)


@pytest.mark.req("PQ-134", "PQ-135", "PQ-136")
def test_a_poll_without_tasks(queue: Queue) -> None:
    """An empty list, or a refusal of a request that makes no sense."""
    worker = queue.register()
    assert queue.poll(worker, 5) == []
    queue.submit()
    assert queue.poll(worker, 0) == []
    assert queue.stats()["queues"]["medium"]["depth"] == 1
    expect_refusal(queue.ask(worker, "poll", available_capacity=-1), 400, "VALIDATION_ERROR")
    expect_refusal(queue.ask(UNKNOWN_ID, "poll", available_capacity=1), 404, "WORKER_NOT_FOUND")
    assert queue.stats()["queues"]["medium"]["depth"] == 1


@pytest.mark.req("PQ-152", "PQ-153", "PQ-154", "PQ-155")
def test_tasks_are_claimed_by_priority_and_age(queue: Queue) -> None:
    """High, medium, low, the oldest of each first, and no more than requested."""
    order = {each: [queue.submit(priority=each) for _ in range(3)] for each in ("low", "medium", "high")}
    worker = queue.register(capacity=9)
    assert [each["task_id"] for each in queue.poll(worker, 1)] == order["high"][:1]
    assert queue.stats()["queues"]["low"]["depth"] == 3
    claimed = [each["task_id"] for each in queue.poll(worker, 4)]
    assert claimed == [*order["high"][1:], *order["medium"][:2]]
    assert [each["task_id"] for each in queue.poll(worker, 9)] == [*order["medium"][2:], *order["low"]]


@pytest.mark.req("PQ-158", "PQ-156")
def test_tasks_of_other_capabilities_hide_none(queue: Queue) -> None:
    """A plain task behind a thousand of another capability is claimed by the first poll."""
    tasks = [{"task_type": "t", "required_capabilities": ["gpu"]} for _ in range(1000)]
    expect_success(queue.client.post("/api/v1/tasks/batch", json={"tasks": tasks}))
    plain = queue.submit()
    assert queue.claim(queue.register())["task_id"] == plain
    assert queue.redis.zcard("queue:medium") == 1000


@pytest.mark.req("PQ-166", "PQ-159", "PQ-078")
def test_concurrent_workers_claim_each_task_once(queue: Queue) -> None:
    """Every task is assigned once, and to one worker."""
    tasks = [{"task_type": "t"} for _ in range(600)]
    expect_success(queue.client.post("/api/v1/tasks/batch", json={"tasks": tasks}))
    workers = [queue.register(capacity=100) for _ in range(20)]

    def drain(worker: str) -> list[str]:
        found: list[str] = []
        while claimed := queue.poll(worker, 5):
            found += [each["task_id"] for each in claimed]
        return found

    with ThreadPoolExecutor(20) as pool:
        claimed = [each for found in pool.map(drain, workers) for each in found]
    assert len(claimed) == len(set(claimed)) == 600
    assert queue.stats()["queues"]["medium"]["depth"] == 0
    assert queue.redis.zcard("executing:deadlines") == 600


@pytest.mark.req("PQ-X05")
def test_a_long_poll_returns_a_new_task_at_once(queue: Queue) -> None:
    """It returns the task as soon as that is there, and ends by itself if none comes."""
    worker = queue.register()
    began = time.monotonic()
    assert queue.poll(worker, 1, wait_ms=300) == []
    assert time.monotonic() - began > 0.29  # A timer may be a part of a millisecond early.
    with ThreadPoolExecutor(1) as pool:
        before = queue.calls("evalsha")
        polling = pool.submit(queue.poll, worker, 1, wait_ms=20_000)
        wait_until(lambda: queue.calls("evalsha") > before, "the poll has found nothing")
        task = queue.submit()
        assert [each["task_id"] for each in polling.result()] == [task]
    expect_refusal(queue.ask(worker, "poll", available_capacity=1, wait_ms=20001), 400, "VALIDATION_ERROR")


@pytest.mark.req("PQ-X09")
def test_a_paused_queue(queue: Queue) -> None:
    """Its tasks are accepted and wait; the others are claimed."""
    worker = queue.register(capacity=10)
    assert expect_success(queue.admin.post("/api/v1/admin/queues/high/pause")) == {
        "priority": "high",
        "paused": True,
    }
    high, low = queue.submit(priority="high"), queue.submit(priority="low")
    task_view = queue.stats()["queues"]["high"]
    assert (task_view["depth"], task_view["paused"]) == (1, True)
    assert [each["task_id"] for each in queue.poll(worker, 10)] == [low]
    with ThreadPoolExecutor(1) as pool:
        before = queue.calls("evalsha")
        polling = pool.submit(queue.poll, worker, 10, wait_ms=20_000)
        wait_until(lambda: queue.calls("evalsha") > before, "the poll has found nothing")
        expect_success(queue.admin.post("/api/v1/admin/queues/high/resume"))
        assert [each["task_id"] for each in polling.result()] == [high]
    expect_refusal(queue.admin.post("/api/v1/admin/queues/urgent/pause"), 400, "VALIDATION_ERROR")


@pytest.mark.req("PQ-X11")
def test_results_and_new_tasks_in_one_request(queue: Queue) -> None:
    """Each result has its own answer; freed slots are filled again."""
    worker = queue.register(capacity=2)
    tasks = [queue.submit() for _ in range(5)]
    claimed = expect_success(queue.ask(worker, "exchange", available_capacity=2))["tasks"]
    assert [each["task_id"] for each in claimed] == tasks[:2]
    results = [
        {"task_id": claimed[0]["task_id"], "attempt": 1, "status": "completed", "result": {"n": 1}},
        {
            "task_id": claimed[1]["task_id"],
            "attempt": 1,
            "status": "failed",
            "error": {"message": "no", "retriable": False},
        },
        {"task_id": tasks[4], "attempt": 1, "status": "completed"},
        {"task_id": UNKNOWN_ID, "attempt": 1, "status": "completed"},
    ]
    answer = expect_success(queue.ask(worker, "exchange", results=results, available_capacity=9))
    assert [each["status"] for each in answer["results"]] == ["completed", "failed", None, None]
    codes = [each["refused"] and each["refused"]["code"] for each in answer["results"]]
    assert codes == [None, None, "STALE_ATTEMPT", "TASK_NOT_FOUND"]
    assert [each["task_id"] for each in answer["tasks"]] == tasks[2:4]
    assert queue.get(tasks[0])["result"] == {"n": 1}


@pytest.mark.req("PQ-X02")
def test_a_delayed_task(queue: Queue) -> None:
    """It is in no queue until it is due; one whose time is over is in its queue."""
    later = queue.post(task_type="t", run_at="2999-01-01T00:00:00Z").json()
    assert (later["status"], later["queue_position"]) == ("queued", None)
    assert queue.list_queues(later["task_id"]) == ["delayed"]
    assert queue.get(later["task_id"])["run_at"] == "2999-01-01T00:00:00.000Z"
    now = queue.submit(run_at="2001-01-01T00:00:00Z")
    assert queue.list_queues(now) == ["medium"]
    worker = queue.register()
    assert [each["task_id"] for each in queue.poll(worker, 5)] == [now]
    assert expect_success(queue.cancel(later["task_id"]))["status"] == "cancelled"
    assert queue.list_queues(later["task_id"]) == []
