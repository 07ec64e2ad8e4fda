"""POST /internal/workers/{worker_id}/poll: which tasks are handed out, and in which order."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest

from tests.support.priority.stack import Queue, refused, told, wait_until

NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.mark.req("PQ-132", "PQ-133", "PQ-131")
def test_what_a_worker_is_given(queue: Queue) -> None:
    """All that it needs to run the task, to report it, and to know when it is too late."""
    worker = queue.register()
    task = queue.submit("resize", parameters={"w": 3}, timeout_seconds=90, priority="low")
    given = queue.claim(worker)
    shown = queue.get(task)
    assert given == {
        "task_id": task,
        "task_type": "resize",
        "parameters": {"w": 3},
        "timeout_seconds": 90,
        "trace_id": shown["trace_id"],
        "attempt": 1,
        "deadline_at": shown["deadline_at"],
        "priority": "low",
        "retry_count": 0,
    }
    started, deadline = (datetime.fromisoformat(shown[name]) for name in ("started_at", "deadline_at"))
    assert deadline - started == timedelta(seconds=90)


@pytest.mark.req("PQ-134", "PQ-135", "PQ-136")
def test_nothing_to_hand_out(queue: Queue) -> None:
    """An empty list, or a refusal where the question makes no sense."""
    worker = queue.register()
    assert queue.poll(worker, 5) == []
    queue.submit()
    assert queue.poll(worker, 0) == []
    assert queue.stats()["queues"]["medium"]["depth"] == 1
    refused(queue.ask(worker, "poll", available_capacity=-1), 400, "VALIDATION_ERROR")
    refused(queue.ask(NOBODY, "poll", available_capacity=1), 404, "WORKER_NOT_FOUND")
    assert queue.stats()["queues"]["medium"]["depth"] == 1


@pytest.mark.req("PQ-152", "PQ-153", "PQ-154", "PQ-155")
def test_the_urgent_ones_first(queue: Queue) -> None:
    """High, medium, low, the oldest of each first, and no more than was asked for."""
    order = {each: [queue.submit(priority=each) for _ in range(3)] for each in ("low", "medium", "high")}
    worker = queue.register(capacity=9)
    assert [each["task_id"] for each in queue.poll(worker, 1)] == order["high"][:1]
    assert queue.stats()["queues"]["low"]["depth"] == 3
    taken = [each["task_id"] for each in queue.poll(worker, 4)]
    assert taken == [*order["high"][1:], *order["medium"][:2]]
    assert [each["task_id"] for each in queue.poll(worker, 9)] == [*order["medium"][2:], *order["low"]]


@pytest.mark.req("PQ-158", "PQ-156")
def test_what_does_not_fit_hides_nothing(queue: Queue) -> None:
    """A plain task behind a thousand of another kind comes with the first poll."""
    tasks = [{"task_type": "t", "required_capabilities": ["gpu"]} for _ in range(1000)]
    told(queue.client.post("/api/v1/tasks/batch", json={"tasks": tasks}))
    plain = queue.submit()
    assert queue.claim(queue.register())["task_id"] == plain
    assert queue.redis.zcard("queue:medium") == 1000


@pytest.mark.req("PQ-166", "PQ-159", "PQ-078")
def test_many_workers_at_once(queue: Queue) -> None:
    """Every task is handed out once, and to one worker."""
    tasks = [{"task_type": "t"} for _ in range(600)]
    told(queue.client.post("/api/v1/tasks/batch", json={"tasks": tasks}))
    workers = [queue.register(capacity=100) for _ in range(20)]

    def drain(worker: str) -> list[str]:
        found: list[str] = []
        while taken := queue.poll(worker, 5):
            found += [each["task_id"] for each in taken]
        return found

    with ThreadPoolExecutor(20) as pool:
        taken = [each for found in pool.map(drain, workers) for each in found]
    assert len(taken) == len(set(taken)) == 600
    assert queue.stats()["queues"]["medium"]["depth"] == 0
    assert queue.redis.zcard("executing:deadlines") == 600


@pytest.mark.req("PQ-X05")
def test_a_poll_that_waits(queue: Queue) -> None:
    """It has the task as soon as that is there, and ends by itself if none comes."""
    worker = queue.register()
    began = time.monotonic()
    assert queue.poll(worker, 1, wait_ms=300) == []
    assert time.monotonic() - began > 0.29  # A timer may be a part of a millisecond early.
    with ThreadPoolExecutor(1) as pool:
        polling = pool.submit(queue.poll, worker, 1, wait_ms=20_000)
        wait_until(lambda: queue.is_waiting(worker), "the poll waits")
        task = queue.submit()
        assert [each["task_id"] for each in polling.result()] == [task]
    refused(queue.ask(worker, "poll", available_capacity=1, wait_ms=20001), 400, "VALIDATION_ERROR")


@pytest.mark.req("PQ-X09")
def test_a_queue_that_pauses(queue: Queue) -> None:
    """Its tasks are accepted and wait; the others go on."""
    worker = queue.register(capacity=10)
    assert told(queue.admin.post("/api/v1/admin/queues/high/pause")) == {"priority": "high", "paused": True}
    high, low = queue.submit(priority="high"), queue.submit(priority="low")
    shown = queue.stats()["queues"]["high"]
    assert (shown["depth"], shown["paused"]) == (1, True)
    assert [each["task_id"] for each in queue.poll(worker, 10)] == [low]
    with ThreadPoolExecutor(1) as pool:
        before = queue.calls("evalsha")
        polling = pool.submit(queue.poll, worker, 10, wait_ms=20_000)
        wait_until(lambda: queue.calls("evalsha") > before, "the poll has found nothing")
        told(queue.admin.post("/api/v1/admin/queues/high/resume"))
        assert [each["task_id"] for each in polling.result()] == [high]
    refused(queue.admin.post("/api/v1/admin/queues/urgent/pause"), 400, "VALIDATION_ERROR")


@pytest.mark.req("PQ-X11")
def test_results_and_new_tasks_in_one_request(queue: Queue) -> None:
    """Each result has its own answer; what was freed is taken again."""
    worker = queue.register(capacity=2)
    tasks = [queue.submit() for _ in range(5)]
    taken = told(queue.ask(worker, "exchange", available_capacity=2))["tasks"]
    assert [each["task_id"] for each in taken] == tasks[:2]
    results = [
        {"task_id": taken[0]["task_id"], "attempt": 1, "status": "completed", "result": {"n": 1}},
        {
            "task_id": taken[1]["task_id"],
            "attempt": 1,
            "status": "failed",
            "error": {"message": "no", "retriable": False},
        },
        {"task_id": tasks[4], "attempt": 1, "status": "completed"},
        {"task_id": NOBODY, "attempt": 1, "status": "completed"},
    ]
    answer = told(queue.ask(worker, "exchange", results=results, available_capacity=9))
    assert [each["status"] for each in answer["results"]] == ["completed", "failed", None, None]
    codes = [each["refused"] and each["refused"]["code"] for each in answer["results"]]
    assert codes == [None, None, "STALE_ATTEMPT", "TASK_NOT_FOUND"]
    assert [each["task_id"] for each in answer["tasks"]] == tasks[2:4]
    assert queue.get(tasks[0])["result"] == {"n": 1}


@pytest.mark.req("PQ-X02")
def test_a_task_for_later(queue: Queue) -> None:
    """It waits in no queue until its time has come; one whose time is over waits in its queue."""
    later = queue.post(task_type="t", run_at="2999-01-01T00:00:00Z").json()
    assert (later["status"], later["queue_position"]) == ("queued", None)
    assert queue.queues_of(later["task_id"]) == ["delayed"]
    assert queue.get(later["task_id"])["run_at"] == "2999-01-01T00:00:00.000Z"
    now = queue.submit(run_at="2001-01-01T00:00:00Z")
    assert queue.queues_of(now) == ["medium"]
    worker = queue.register()
    assert [each["task_id"] for each in queue.poll(worker, 5)] == [now]
    assert told(queue.cancel(later["task_id"]))["status"] == "cancelled"
    assert queue.queues_of(later["task_id"]) == []
