"""A Redis without room: nothing new is accepted, and all that is there can be worked off."""

from __future__ import annotations

import pytest

from runtime.embedded.redis import EmbeddedRedis
from tests.support.priority.stack import Queue, Stack, refused

BALLAST = {"text": "x" * 20_000}


@pytest.fixture
def full(shaken: Stack) -> tuple[Queue, list[str]]:
    """A queue that Redis has no more memory for, and the tasks in it."""
    shaken.add("api")
    queue = shaken.queue()
    worker = queue.register(capacity=3)
    tasks = [queue.submit(parameters=BALLAST) for _ in range(30)]
    assert len(queue.poll(worker, 1)) == 1
    used = int(shaken.redis.info("memory")["used_memory"])
    # Somewhat less, so that it stays full when a connection gives its buffers back.
    shaken.redis.config_set("maxmemory", used - len(tasks) * 10_000)
    return queue, tasks


def test_a_submit_is_refused_clearly(full: tuple[Queue, list[str]]) -> None:
    """As full, not as broken; and nothing of it is left behind."""
    queue, tasks = full
    before = queue.stored()
    answer = queue.post(task_type="echo", parameters=BALLAST, idempotency_key="no room")
    refused(answer, 429, "QUEUE_FULL")
    assert int(answer.headers["retry-after"]) > 0
    assert queue.stored() == before
    assert queue.redis.zcard("queue:medium") == len(tasks) - 1
    refused(
        queue.client.post("/api/v1/tasks/batch", json={"tasks": [{"task_type": "echo"}] * 3}),
        429,
        "QUEUE_FULL",
    )
    assert queue.stored() == before


def test_what_is_there_can_be_drained(full: tuple[Queue, list[str]], own_redis: EmbeddedRedis) -> None:
    """Tasks are handed out, ended and cancelled, heartbeats are heard; then there is room again."""
    queue, tasks = full
    worker = str(queue.redis.zrange("workers:status:active", 0, -1)[0])
    ended = 0
    for task in queue.poll(worker, 3):
        queue.complete(worker, task)
        ended += 1
    assert ended == 2, "one of its three places was taken"
    assert queue.beat(worker, load=1).status_code == 200
    last = queue.waiting("medium")[-1]
    assert queue.cancel(last).status_code == 200
    while found := queue.poll(worker, 2):
        for task in found:
            queue.complete(worker, task)
            ended += 1
    assert ended == len(tasks) - 2
    assert own_redis.running
    queue.redis.config_set("maxmemory", 0)
    assert queue.submit()
