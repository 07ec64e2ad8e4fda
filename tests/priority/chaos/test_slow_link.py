"""A Redis with a round trip of some milliseconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.launch.embedded.redis import EmbeddedRedis
from tests.orchestrator.conftest import make_database
from tests.support.priority.slow_link import SlowLink
from tests.support.priority.stack import BRISK, Servers, Stack, expect_success, wait_until

TASKS = 200
FAR_MS = 60
LONG_INTERVALS = {**BRISK, "HEARTBEAT_INTERVAL_SECONDS": "30", "POLL_WAIT_MS": "20000"}
"""A worker that sends little besides its tasks, however long they last."""


@pytest.mark.req("PQ-255")
def test_all_operations_work_with_a_latency_of_five_milliseconds(
    own_redis: EmbeddedRedis, postgres: EmbeddedPostgres, logs: Path
) -> None:
    """Tasks are accepted, run, dead, replayed and cancelled; concurrent calls are batched."""
    with SlowLink(own_redis.port, 5) as link, SlowLink(own_redis.port, 5) as of_worker:
        url, worker_url = (
            own_redis.url.replace(f":{own_redis.port}/", f":{each.port}/") for each in (link, of_worker)
        )
        with Stack(Servers(url, make_database(postgres)), logs) as stack:
            stack.add("api", intervals=LONG_INTERVALS)
            worker = stack.add("worker", intervals=LONG_INTERVALS, WORKER_CAPACITY="50", REDIS_URL=worker_url)
            queue = stack.queue()
            one = queue.submit(parameters={"hello": "world"})
            wait_until(lambda: queue.status(one), "it is done", "completed".__eq__)
            assert queue.get(one)["result"] == {"hello": "world"}
            # So far that much has ended by the time at which an answer is back.
            link.delay_ms = of_worker.delay_ms = FAR_MS
            before = of_worker.journeys
            answer = queue.client.post("/api/v1/tasks/batch", json={"tasks": [{"task_type": "echo"}] * TASKS})
            tasks = [each["task_id"] for each in expect_success(answer)["tasks"]]
            wait_until(
                lambda: stack.redis.zcard("tasks:status:completed"), "all are done", (TASKS + 1).__eq__
            )
            journeys = of_worker.journeys - before
            assert journeys < 2 * TASKS, "each by itself would take at least a journey there and back"
            bad = queue.submit("fail", max_retries=1)
            wait_until(lambda: queue.status(bad), "it is buried", "dead_letter".__eq__)
            assert queue.get(bad)["retry_count"] == 1
            assert expect_success(queue.admin.post(f"/api/v1/admin/dlq/{bad}/replay"))["status"] == "queued"
            worker.stop()
            waiting = queue.submit()
            assert expect_success(queue.cancel(waiting))["status"] == "cancelled"
            print(f"{len(tasks)} tasks in {journeys} journeys, {FAR_MS} ms away")
