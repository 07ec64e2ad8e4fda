"""Scripts that Redis loses during operation (SCRIPT FLUSH)."""

from __future__ import annotations

import threading

import pytest
from redis import Redis

from tests.support.priority.stack import BRISK, Stack, wait_until

TASKS = 60


@pytest.mark.req("PQ-164")
def test_lost_scripts_are_loaded_again(fresh: Stack) -> None:
    """No call fails while all scripts are flushed again and again, and each task is run once."""
    fresh.add("api", intervals=BRISK)
    fresh.add("worker", intervals=BRISK)
    over = threading.Event()

    def flush_scripts() -> None:
        with Redis.from_url(fresh.servers.redis_url) as there:
            while not over.wait(0.02):
                there.script_flush()

    forgetting = threading.Thread(target=flush_scripts)
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
