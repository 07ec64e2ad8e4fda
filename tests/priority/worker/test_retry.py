"""Retries: which fields are reset, how time limits grow, and the maximum."""

from __future__ import annotations

import pytest

from tests.support.priority.stack import Queue, Stack, expect_success, wait_until


@pytest.mark.req("PQ-184", "PQ-187", "PQ-047", "PQ-049", "PQ-192", "PQ-046", "PQ-196")
def test_fields_that_a_requeue_resets(queue: Queue) -> None:
    """Worker and start are unset, one more retry counts, and the position in the queue is the old one."""
    worker = queue.register()
    task, younger = queue.submit(), queue.submit()
    score = queue.redis.zscore("queue:medium", task)
    created = queue.get(task)["created_at"]
    queue.fail(worker, queue.claim(worker))
    task_view = queue.get(task)
    assert (task_view["status"], task_view["retry_count"], task_view["attempt"]) == ("queued", 1, 1)
    assert (task_view["assigned_worker_id"], task_view["started_at"], task_view["deadline_at"]) == (
        None,
        None,
        None,
    )
    assert task_view["created_at"] == created
    assert queue.redis.zscore("queue:medium", task) == score
    assert [each["task_id"] for each in queue.poll(worker, 2)] == [task, younger]


@pytest.mark.req("PQ-185", "PQ-186", "PQ-210", "PQ-082")
@pytest.mark.parametrize(("priority", "runs"), [("high", 6), ("medium", 4), ("low", 3)])
def test_the_number_of_runs(queue: Queue, priority: str, runs: int) -> None:
    """Once, and as often again as it has retries; the count never exceeds them."""
    worker = queue.register()
    task = queue.submit(priority=priority)
    ends = [queue.fail(worker, queue.claim(worker), message=f"run {n}") for n in range(runs)]
    assert ends == ["queued"] * (runs - 1) + ["dead_letter"]
    task_view = queue.get(task)
    assert (task_view["retry_count"], task_view["max_retries"], task_view["attempt"]) == (
        runs - 1,
        runs - 1,
        runs,
    )
    assert (task_view["dead_reason"], task_view["error"]["message"]) == (
        "max_retries_exceeded",
        f"run {runs - 1}",
    )
    assert queue.poll(worker, 5) == []


@pytest.mark.req("PQ-188", "PQ-189")
def test_the_time_limit_grows(queue: Queue) -> None:
    """By half each time, rounded up."""
    worker = queue.register()
    queue.submit(priority="high")
    limits = []
    for _ in range(6):
        claimed = queue.claim(worker)
        limits.append(claimed["timeout_seconds"])
        queue.fail(worker, claimed)
    assert limits == [300, 450, 675, 1013, 1520, 2280]


@pytest.mark.req("PQ-189", "PQ-196", "PQ-X02")
def test_maximum_time_limit_and_backoff(fresh: Stack) -> None:
    """The limit grows to the maximum of the settings, and a retry waits for the backoff of the settings."""
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
    stored = queue.read_hash(task)
    assert int(stored["available_at"]) - int(stored["updated_at"]) == 3600 * 1_000_000
    assert queue.list_queues(task) == ["delayed"]
    assert queue.poll(worker, 1) == []
    queue.end_delay(task)
    (again,) = wait_until(lambda: queue.poll(worker, 1, wait_ms=20000), "it is released")
    assert again["task_id"] == task
    assert queue.get(task)["run_at"] is None


@pytest.mark.req("PQ-190", "PQ-191", "PQ-193", "PQ-018", "PQ-019", "PQ-016")
def test_a_promoted_task_is_requeued_at_its_own_priority(fresh: Stack) -> None:
    """And is promoted again, because its age counts."""
    fresh.add("api", LOW_TO_MEDIUM_SECONDS="1", MEDIUM_TO_HIGH_SECONDS="1", PROMOTION_INTERVAL_SECONDS="0.3")
    queue = fresh.queue()
    worker = queue.register()
    task = queue.submit(priority="low")
    score = float(queue.read_hash(task)["queued_at"])
    wait_until(lambda: queue.list_queues(task), "it is high", lambda seen: seen == ["high"])
    task_view = queue.get(task)
    assert (task_view["priority"], task_view["effective_priority"]) == ("low", "high")
    assert queue.redis.zscore("queue:high", task) == score
    claimed = queue.claim(worker)
    assert queue.fail(worker, claimed) == "queued"
    stored = queue.read_hash(task)
    assert stored["priority"] == "low"
    assert queue.list_queues(task) in (["low"], ["medium"], ["high"])
    wait_until(lambda: queue.list_queues(task), "it is high again", lambda seen: seen == ["high"])


@pytest.mark.req("PQ-170", "PQ-171", "PQ-173", "PQ-195", "PQ-172")
def test_the_tasks_of_a_lost_worker_are_requeued(fresh: Stack) -> None:
    """Its running tasks are queued again with one more retry; those that had ended stay."""
    fresh.add("api", WORKER_DEAD_SECONDS="3600", WORKER_CHECK_INTERVAL_SECONDS="0.1")
    queue = fresh.queue()
    worker = queue.register()
    tasks = [queue.submit() for _ in range(4)]
    claimed = queue.poll(worker, 4)
    queue.complete(worker, claimed[0], {"n": 1})
    queue.silence(worker, 3601)
    wait_until(lambda: queue.list_waiting("medium"), "all are queued again", lambda seen: seen == tasks[1:])
    for task in tasks[1:]:
        task_view = queue.get(task)
        assert (task_view["retry_count"], task_view["error"]["message"]) == (
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

    def format_series(cause: str) -> str:
        text = fresh.nodes[0].http.get("/metrics").text
        wanted = f'task_retries_total{{priority="high",reason="{cause}"}}'
        return next(line.rpartition(" ")[2] for line in text.splitlines() if line.startswith(wanted))

    wait_until(lambda: format_series("timeout"), "it timed out", lambda seen: seen == "1.0")
    assert format_series("reported") == "1.0"
    assert format_series("worker_lost") == "0.0"
    assert expect_success(queue.client.get("/api/v1/queue/stats"))
