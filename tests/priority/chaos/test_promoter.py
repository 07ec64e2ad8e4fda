"""A promoter that is killed in the middle of its work."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.support.chaos import Chaos
from tests.support.priority.stack import Stack, told, wait_until

TASKS = 400
PACE = {
    "PROMOTION_INTERVAL_SECONDS": "0.05",
    "PROMOTION_BATCH_SIZE": "5",
    "LOW_TO_MEDIUM_SECONDS": "0.1",
    "MEDIUM_TO_HIGH_SECONDS": "0.2",
}


@pytest.mark.chaos
@pytest.mark.req("PQ-028")
def test_a_killed_promoter_loses_and_doubles_nothing(fresh: Stack, chaos: Chaos) -> None:
    """Each task is in exactly one queue after every kill, and another promoter ends what was begun."""
    fresh.add("api", deployment="compose")
    queue = fresh.queue()
    many = [{"task_type": "echo", "priority": "low"}] * TASKS
    answer = told(queue.client.post("/api/v1/tasks/batch", json={"tasks": many}))
    tasks = sorted(each["task_id"] for each in answer["tasks"])
    promoter = fresh.node("scheduler", deployment="compose", pace=PACE)
    seen: list[int] = []

    def waiting() -> list[str]:
        with fresh.redis.pipeline() as pipe:
            for priority in ("high", "medium", "low"):
                pipe.zrange(f"queue:{priority}", 0, -1)
            return [task for found in pipe.execute() for task in found]

    for chance in chaos.rounds(2):
        before = fresh.redis.zcard("queue:high")
        promoter.begin()
        wait_until(lambda: fresh.redis.zcard("queue:high"), "it has begun", _moved_on(before))
        time.sleep(chance.uniform(0, 0.05))
        promoter.kill()
        assert sorted(waiting()) == tasks
        seen.append(fresh.redis.zcard("queue:high"))
    promoter.begin()
    wait_until(lambda: fresh.redis.zcard("queue:high"), "all are raised", lambda high: high == TASKS)
    assert sorted(waiting()) == tasks
    chaos.count(kills=len(seen), tasks=TASKS, lost=0)


def _moved_on(before: int) -> Callable[[int], bool]:
    return lambda high: high != before or high == TASKS
