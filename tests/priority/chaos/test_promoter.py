"""A promoter that is killed during a promotion."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.support.chaos import Chaos
from tests.support.priority.stack import Stack, expect_success, wait_until

TASKS = 400
INTERVALS = {
    "PROMOTION_INTERVAL_SECONDS": "0.05",
    "PROMOTION_BATCH_SIZE": "5",
    "LOW_TO_MEDIUM_SECONDS": "0.1",
    "MEDIUM_TO_HIGH_SECONDS": "0.2",
}


@pytest.mark.chaos
@pytest.mark.req("PQ-028")
def test_a_killed_promoter_loses_and_doubles_nothing(fresh: Stack, chaos: Chaos) -> None:
    """Each task is in exactly one queue after every kill, and another promoter ends the rest."""
    fresh.add("api", deployment="compose")
    queue = fresh.queue()
    many = [{"task_type": "echo", "priority": "low"}] * TASKS
    answer = expect_success(queue.client.post("/api/v1/tasks/batch", json={"tasks": many}))
    tasks = sorted(each["task_id"] for each in answer["tasks"])
    promoter = fresh.node("scheduler", deployment="compose", intervals=INTERVALS)
    counts: list[int] = []

    def list_waiting() -> list[str]:
        with fresh.redis.pipeline() as pipe:
            for priority in ("high", "medium", "low"):
                pipe.zrange(f"queue:{priority}", 0, -1)
            return [task for found in pipe.execute() for task in found]

    for chance in chaos.rounds(2):
        before = fresh.redis.zcard("queue:high")
        promoter.begin()
        wait_until(lambda: fresh.redis.zcard("queue:high"), "it has begun", _has_progressed(before))
        time.sleep(chance.uniform(0, 0.05))
        promoter.kill()
        assert sorted(list_waiting()) == tasks
        counts.append(fresh.redis.zcard("queue:high"))
    promoter.begin()
    wait_until(lambda: fresh.redis.zcard("queue:high"), "all are raised", lambda high: high == TASKS)
    assert sorted(list_waiting()) == tasks
    chaos.count(kills=len(counts), tasks=TASKS, lost=0)


def _has_progressed(before: int) -> Callable[[int], bool]:
    return lambda high: high != before or high == TASKS
