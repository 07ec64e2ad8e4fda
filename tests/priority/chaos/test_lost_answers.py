"""A worker whose connection breaks: tasks that it does not know of are run again before their timeout."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.launch.embedded.redis import EmbeddedRedis
from tests.orchestrator.conftest import make_database
from tests.support.priority.cut_link import CutLink
from tests.support.priority.stack import BRISK, Servers, Stack, wait_until

LONG = 86_000
"""A test that waits for this time limit fails."""


@pytest.fixture
def link(own_redis: EmbeddedRedis) -> Iterator[CutLink]:
    with CutLink(own_redis.port) as link:
        yield link


@pytest.fixture
def stack(own_redis: EmbeddedRedis, link: CutLink, postgres: EmbeddedPostgres, logs: Path) -> Iterator[Stack]:
    """An API, and a worker that reaches Redis by the link alone."""
    with Stack(Servers(own_redis.url, make_database(postgres)), logs) as stack:
        url = own_redis.url.replace(f":{own_redis.port}/", f":{link.port}/")
        stack.node("api", intervals=BRISK).begin()
        stack.node("worker", intervals=BRISK, REDIS_URL=url).begin()
        for node in stack.nodes:
            node.wait()
        yield stack


@pytest.mark.req("PQ-137", "PQ-167")
def test_tasks_whose_assignment_was_lost_are_requeued(stack: Stack, link: CutLink) -> None:
    """Redis has assigned them, and the connection ends before the worker knows: heartbeats reveal it."""
    queue = stack.queue()
    link.cuts = 3
    tasks = [queue.submit(timeout_seconds=LONG) for _ in range(12)]
    wait_until(lambda: stack.redis.zcard("tasks:status:completed"), "all are done", len(tasks).__eq__)
    assert link.cuts == 0
    found = [queue.get(task) for task in tasks]
    assert sum(each["retry_count"] for each in found) >= 3
    assert all(each["attempt"] == each["retry_count"] + 1 for each in found)


def test_a_task_whose_outcome_was_dropped_is_run_again(stack: Stack, link: CutLink) -> None:
    """The worker is cut off while it runs its task, for too long to report it; its name is still valid."""
    queue = stack.queue()
    worker = next(node for node in stack.nodes if node.name == "worker")
    link.fails_next = True
    task = queue.submit(timeout_seconds=LONG)
    wait_until(
        lambda: [line for line in worker.lines() if line["event"] == "lease_lost"], "it is dropped", bool
    )
    assert queue.status(task) == "executing"
    link.is_down = False
    found = wait_until(lambda: queue.get(task), "it is done", lambda seen: seen["status"] == "completed")
    assert (found["attempt"], found["retry_count"]) == (2, 1)
    assert queue.stats()["workers"]["active"] == 1, "it is the same worker"
