"""A Redis without memory: nothing new is accepted, and all tasks in it can be run."""

from __future__ import annotations

import pytest

from runtime.launch.embedded.redis import EmbeddedRedis
from tests.support.priority.stack import Queue, Stack, expect_refusal

BALLAST = {"text": "x" * 20_000}


@pytest.fixture
def full_queue(stack_on_own_redis: Stack) -> tuple[Queue, list[str]]:
    """A queue whose Redis has no more memory, and the tasks in it."""
    stack_on_own_redis.add("api")
    queue = stack_on_own_redis.queue()
    worker = queue.register(capacity=3)
    tasks = [queue.submit(parameters=BALLAST) for _ in range(30)]
    assert len(queue.poll(worker, 1)) == 1
    used = int(stack_on_own_redis.redis.info("memory")["used_memory"])
    # Somewhat less, so that it stays full when a connection gives its buffers back.
    stack_on_own_redis.redis.config_set("maxmemory", used - len(tasks) * 10_000)
    return queue, tasks


def test_a_submit_to_a_full_redis_is_refused(full_queue: tuple[Queue, list[str]]) -> None:
    """As full, not as broken; and nothing of it is stored."""
    queue, tasks = full_queue
    before = queue.list_keys()
    answer = queue.post(task_type="echo", parameters=BALLAST, idempotency_key="no room")
    expect_refusal(answer, 429, "QUEUE_FULL")
    assert int(answer.headers["retry-after"]) > 0
    assert queue.list_keys() == before
    assert queue.redis.zcard("queue:medium") == len(tasks) - 1
    expect_refusal(
        queue.client.post("/api/v1/tasks/batch", json={"tasks": [{"task_type": "echo"}] * 3}),
        429,
        "QUEUE_FULL",
    )
    assert queue.list_keys() == before


def test_a_full_queue_can_be_drained(full_queue: tuple[Queue, list[str]], own_redis: EmbeddedRedis) -> None:
    """Tasks are claimed, ended and cancelled, heartbeats are received; then there is room again."""
    queue, tasks = full_queue
    worker = str(queue.redis.zrange("workers:status:active", 0, -1)[0])
    ended = 0
    for task in queue.poll(worker, 3):
        queue.complete(worker, task)
        ended += 1
    assert ended == 2, "one of its three slots was in use"
    assert queue.beat(worker, load=1).status_code == 200
    last = queue.list_waiting("medium")[-1]
    assert queue.cancel(last).status_code == 200
    while found := queue.poll(worker, 2):
        for task in found:
            queue.complete(worker, task)
            ended += 1
    assert ended == len(tasks) - 2
    assert own_redis.running
    queue.redis.config_set("maxmemory", 0)
    assert queue.submit()
