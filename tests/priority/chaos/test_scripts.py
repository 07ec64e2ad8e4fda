"""Scripts that Redis forgets in the middle of everything."""

from __future__ import annotations

import threading

import pytest
from redis import Redis

from tests.support.priority.stack import BRISK, Stack, wait_until

TASKS = 60


@pytest.mark.req("PQ-164")
def test_scripts_that_are_gone_are_loaded_again(fresh: Stack) -> None:
    """No call fails while all scripts are forgotten again and again, and each task is run once."""
    fresh.add("api", pace=BRISK)
    fresh.add("worker", pace=BRISK)
    over = threading.Event()

    def forget() -> None:
        with Redis.from_url(fresh.servers.redis_url) as there:
            while not over.wait(0.02):
                there.script_flush()

    forgetting = threading.Thread(target=forget)
    forgetting.start()
    try:
        queue = fresh.queue()
        tasks = [queue.submit() for _ in range(TASKS)]
        wait_until(
            lambda: {queue.status(task) for task in tasks}, "all are done", lambda seen: seen == {"completed"}
        )
    finally:
        over.set()
        forgetting.join()
    assert all(queue.get(task)["attempt"] == 1 for task in tasks)
