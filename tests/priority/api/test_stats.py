"""GET /api/v1/queue/stats: queue depths, workers, and recent ends."""

from __future__ import annotations

import time

import pytest

from tests.support.priority.stack import Queue, Stack, expect_success, wait_until

QUEUES = ("high", "medium", "low")


@pytest.mark.req("PQ-119", "PQ-112", "PQ-115")
def test_an_empty_queue_has_every_field(queue: Queue) -> None:
    """All of them 0."""
    nothing = {"depth": 0, "oldest_age_seconds": 0, "paused": False}
    assert queue.stats() == {
        "queues": {"high": nothing, "medium": nothing, "low": nothing},
        "workers": {"active": 0, "draining": 0, "dead": 0, "total_capacity": 0, "used_capacity": 0},
        "throughput": {"completed_last_minute": 0, "failed_last_minute": 0},
    }


@pytest.mark.req("PQ-113", "PQ-114")
def test_depth_and_age_of_each_queue(queue: Queue) -> None:
    """Equal to the queues themselves."""
    began = time.monotonic()
    for number, priority in enumerate(QUEUES, start=1):
        for _ in range(number):
            queue.submit(priority=priority)
    oldest = queue.list_waiting("low")[0]
    queue.redis.zincrby("queue:low", -45_000_000, oldest)
    found = queue.stats()["queues"]
    assert [found[each]["depth"] for each in QUEUES] == [1, 2, 3]
    assert [found[each]["depth"] for each in QUEUES] == [
        queue.redis.zcard(f"queue:{each}") for each in QUEUES
    ]
    elapsed = time.monotonic() - began
    assert 45 <= found["low"]["oldest_age_seconds"] <= 46 + elapsed
    assert found["high"]["oldest_age_seconds"] <= 1 + elapsed


@pytest.mark.req("PQ-116", "PQ-117", "PQ-126", "PQ-058", "PQ-057")
def test_workers_and_their_capacity(queue: Queue) -> None:
    """Dead ones do not count, draining ones do."""
    first, second, third = (queue.register(capacity=5) for _ in range(3))
    for _ in range(4):
        queue.submit()
    assert len(queue.poll(first, 4)) == 4
    found = queue.stats()["workers"]
    assert found == {"active": 3, "draining": 0, "dead": 0, "total_capacity": 15, "used_capacity": 4}
    expect_success(queue.beat(second, status="draining"))
    found = queue.stats()["workers"]
    assert (found["active"], found["draining"], found["total_capacity"]) == (2, 1, 15)
    assert third


@pytest.mark.req("PQ-116", "PQ-066", "PQ-067", "PQ-070", "PQ-169")
def test_a_dead_worker_has_no_capacity(fresh: Stack) -> None:
    """It is dead after WORKER_DEAD_SECONDS of silence."""
    fresh.add("api", WORKER_DEAD_SECONDS="3600", WORKER_CHECK_INTERVAL_SECONDS="0.1")
    queue = fresh.queue()
    silent, alive = queue.register(), queue.register()
    queue.silence(alive, 3000)
    queue.silence(silent, 3601)
    found = wait_until(lambda: queue.stats()["workers"], "one is dead", lambda seen: seen["dead"] == 1)
    assert (found["active"], found["total_capacity"]) == (1, 5)
    statuses = [queue.redis.hget(f"workers:{each}", "status") for each in (silent, alive)]
    assert statuses == ["dead", "active"]


@pytest.mark.req("PQ-118")
def test_recent_ends_are_counted(fresh: Stack) -> None:
    """Dead letters count as failed; after the window both are 0 again."""
    fresh.add("api", STATS_WINDOW_SECONDS="120")
    queue = fresh.queue()
    worker = queue.register()
    for tries in (3, 3, 3, 3, 0):
        queue.submit(max_retries=tries)
    *completed, hopeless, tried = queue.poll(worker, 5)
    for task in completed:
        queue.complete(worker, task)
    assert queue.fail(worker, hopeless, retriable=False) == "failed"
    assert queue.fail(worker, tried) == "dead_letter"
    assert queue.stats()["throughput"] == {"completed_last_minute": 3, "failed_last_minute": 2}
    # The same, as if it had been 120 seconds earlier.
    for state in ("completed", "failed", "dead_letter"):
        for task in queue.redis.zrange(f"tasks:status:{state}", 0, -1):
            queue.redis.zincrby(f"tasks:status:{state}", -120_000_000, task)
    assert queue.stats()["throughput"] == {"completed_last_minute": 0, "failed_last_minute": 0}


@pytest.mark.req("PQ-259", "PQ-231")
def test_two_apis_return_the_same(fresh: Stack) -> None:
    """Neither has state of its own."""
    queues = [fresh.queue(fresh.add("api")) for _ in range(2)]
    worker = queues[0].register()
    queues[1].submit()
    queues[0].submit()
    assert queues[1].claim(worker)
    # A second may begin between two answers, and the oldest task is older then.
    seen = wait_until(
        lambda: [each.stats() for each in queues], "both agree", lambda seen: seen[0] == seen[1]
    )
    assert seen[0]["queues"]["medium"]["depth"] == seen[0]["workers"]["used_capacity"] == 1
