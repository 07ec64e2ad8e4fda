"""Retries: what is set back, what grows, and when it is enough."""

from __future__ import annotations

import pytest

from tests.support.priority.stack import Queue, Stack, told, wait_until


@pytest.mark.req("PQ-184", "PQ-187", "PQ-047", "PQ-049", "PQ-192", "PQ-046", "PQ-196")
def test_what_a_requeue_sets_back(queue: Queue) -> None:
    """Worker and start are unset, one more retry counts, and the place in the queue is the old one."""
    worker = queue.register()
    task, younger = queue.submit(), queue.submit()
    score = queue.redis.zscore("queue:medium", task)
    created = queue.get(task)["created_at"]
    queue.fail(worker, queue.claim(worker))
    shown = queue.get(task)
    assert (shown["status"], shown["retry_count"], shown["attempt"]) == ("queued", 1, 1)
    assert (shown["assigned_worker_id"], shown["started_at"], shown["deadline_at"]) == (None, None, None)
    assert shown["created_at"] == created
    assert queue.redis.zscore("queue:medium", task) == score
    assert [each["task_id"] for each in queue.poll(worker, 2)] == [task, younger]


@pytest.mark.req("PQ-185", "PQ-186", "PQ-210", "PQ-082")
@pytest.mark.parametrize(("priority", "runs"), [("high", 6), ("medium", 4), ("low", 3)])
def test_how_often_a_task_is_run(queue: Queue, priority: str, runs: int) -> None:
    """Once, and as often again as it has retries; the count never goes beyond."""
    worker = queue.register()
    task = queue.submit(priority=priority)
    ends = [queue.fail(worker, queue.claim(worker), message=f"run {n}") for n in range(runs)]
    assert ends == ["queued"] * (runs - 1) + ["dead_letter"]
    shown = queue.get(task)
    assert (shown["retry_count"], shown["max_retries"], shown["attempt"]) == (runs - 1, runs - 1, runs)
    assert (shown["dead_reason"], shown["error"]["message"]) == ("max_retries_exceeded", f"run {runs - 1}")
    assert queue.poll(worker, 5) == []


@pytest.mark.req("PQ-188", "PQ-189")
def test_the_time_limit_grows(queue: Queue) -> None:
    """By half each time, rounded up."""
    worker = queue.register()
    queue.submit(priority="high")
    limits = []
    for _ in range(6):
        given = queue.claim(worker)
        limits.append(given["timeout_seconds"])
        queue.fail(worker, given)
    assert limits == [300, 450, 675, 1013, 1520, 2280]


@pytest.mark.req("PQ-189", "PQ-196", "PQ-X02")
def test_a_ceiling_and_a_pause(fresh: Stack) -> None:
    """The limit grows to what the settings say, and a retry waits for as long as they say."""
    fresh.add(
        "api",
        MAX_TIMEOUT_SECONDS="400",
        RETRY_BACKOFF_SECONDS="3600",
        RETRY_BACKOFF_MAX_SECONDS="3600",
        DELAY_CHECK_INTERVAL_SECONDS="0.1",
    )
    queue = fresh.queue()
    worker = queue.register()
    task = queue.submit(priority="high")
    assert queue.fail(worker, queue.claim(worker)) == "queued"
    assert queue.get(task)["timeout_seconds"] == 400
    kept = queue.hash(task)
    assert int(kept["available_at"]) - int(kept["updated_at"]) == 3600 * 1_000_000
    assert queue.queues_of(task) == ["delayed"]
    assert queue.poll(worker, 1) == []
    queue.end_delay(task)
    (again,) = wait_until(lambda: queue.poll(worker, 1, wait_ms=20000), "it is released")
    assert again["task_id"] == task
    assert queue.get(task)["run_at"] is None


@pytest.mark.req("PQ-190", "PQ-191", "PQ-193", "PQ-018", "PQ-019", "PQ-016")
def test_a_promoted_task_goes_back_to_where_it_came_from(fresh: Stack) -> None:
    """And is promoted again, because its age counts."""
    fresh.add("api", LOW_TO_MEDIUM_SECONDS="1", MEDIUM_TO_HIGH_SECONDS="1", PROMOTION_INTERVAL_SECONDS="0.3")
    queue = fresh.queue()
    worker = queue.register()
    task = queue.submit(priority="low")
    score = float(queue.hash(task)["queued_at"])
    wait_until(lambda: queue.queues_of(task), "it is high", lambda seen: seen == ["high"])
    shown = queue.get(task)
    assert (shown["priority"], shown["effective_priority"]) == ("low", "high")
    assert queue.redis.zscore("queue:high", task) == score
    given = queue.claim(worker)
    assert queue.fail(worker, given) == "queued"
    kept = queue.hash(task)
    assert kept["priority"] == "low"
    assert queue.queues_of(task) in (["low"], ["medium"], ["high"])
    wait_until(lambda: queue.queues_of(task), "it is high again", lambda seen: seen == ["high"])


@pytest.mark.req("PQ-170", "PQ-171", "PQ-173", "PQ-195", "PQ-172")
def test_the_tasks_of_a_worker_that_is_lost(fresh: Stack) -> None:
    """What it ran is queued again with one more retry; what it had ended stays."""
    fresh.add("api", WORKER_DEAD_SECONDS="3600", WORKER_CHECK_INTERVAL_SECONDS="0.1")
    queue = fresh.queue()
    worker = queue.register()
    tasks = [queue.submit() for _ in range(4)]
    taken = queue.poll(worker, 4)
    queue.complete(worker, taken[0], {"n": 1})
    queue.silence(worker, 3601)
    wait_until(lambda: queue.waiting("medium"), "all are queued again", lambda seen: seen == tasks[1:])
    for task in tasks[1:]:
        shown = queue.get(task)
        assert (shown["retry_count"], shown["error"]["message"]) == (
            1,
            "the worker was not heard of any more",
        )
    assert queue.get(tasks[0])["result"] == {"n": 1}
    assert queue.stats()["workers"] == {
        **{"active": 0, "draining": 0, "dead": 1},
        **{"total_capacity": 0, "used_capacity": 0},
    }


@pytest.mark.req("PQ-197", "PQ-223", "PQ-228")
def test_retries_are_counted_by_cause(fresh: Stack) -> None:
    """One of each."""
    fresh.add("api", TIMEOUT_CHECK_INTERVAL_SECONDS="0.1")
    queue = fresh.queue()
    worker = queue.register()
    failing = queue.submit(priority="high", timeout_seconds=600)
    queue.fail(worker, queue.claim(worker))
    queue.cancel(failing)
    queue.submit(priority="high", timeout_seconds=1)
    queue.claim(worker)

    def counted(cause: str) -> str:
        text = fresh.nodes[0].http.get("/metrics").text
        wanted = f'task_retries_total{{priority="high",reason="{cause}"}}'
        return next(line.rpartition(" ")[2] for line in text.splitlines() if line.startswith(wanted))

    wait_until(lambda: counted("timeout"), "it timed out", lambda seen: seen == "1.0")
    assert counted("reported") == "1.0"
    assert counted("worker_lost") == "0.0"
    assert told(queue.client.get("/api/v1/queue/stats"))
