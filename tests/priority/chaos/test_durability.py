"""Durability of acknowledged tasks when Redis itself is killed, by its fsync policy."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.launch.embedded.redis import EmbeddedRedis
from tests.orchestrator.conftest import make_database
from tests.support.chaos import Chaos
from tests.support.priority.stack import Servers, Stack, expect_refusal, wait_until
from tests.support.priority.submitters import Client


@pytest.mark.chaos
@pytest.mark.req("PQ-183", "PQ-253")
@pytest.mark.parametrize("synced", ["always", "everysec"])
def test_acknowledged_tasks_survive_a_killed_redis(
    synced: str, tmp_path: Path, postgres: EmbeddedPostgres, logs: Path, chaos: Chaos
) -> None:
    """kill -9 under load, again and again: each acknowledged task is there afterwards.

    With `everysec` too, because the kernel has all writes of Redis before it answers. Only when the
    machine itself dies is the last second lost.
    """
    server = EmbeddedRedis(tmp_path / "redis", settings={"appendfsync": synced})
    server.start()
    lost: list[float] = []
    try:
        with Stack(Servers(server.url, make_database(postgres)), logs) as stack:
            api = stack.add("api", deployment="compose")
            promised: dict[str, float] = {}
            for number, chance in enumerate(chaos.rounds(2)):
                client = Client(f"{synced}-{number}", api.url, chance, stubborn=False)
                client.start()
                wait_until(client.has_begun, "tasks are accepted")
                time.sleep(chance.uniform(0, 0.7))
                server.kill()
                died = time.time()
                client.end()
                server.spawn()
                server.wait()
                promised |= client.when
                stored = {
                    name.removeprefix("tasks:") for name in stack.redis.scan_iter("tasks:*", _type="hash")
                }
                lost += [died - when for task, when in promised.items() if task not in stored]
                wait_until(lambda: api.http.get("/readyz").status_code == 200, "the API sees Redis again")
            assert set(stack.redis.zrange("tasks:status:queued", 0, -1)) >= set(promised)
    finally:
        server.remove()
    window = max(lost, default=0.0)
    chaos.count(kills=chaos.counted["rounds"], tasks=len(promised), lost=len(lost))
    assert not lost, f"the oldest of them {window * 1000:.0f} ms before the kill"


@pytest.mark.req("PQ-099")
def test_without_redis_nothing_is_accepted(stack_on_own_redis: Stack, own_redis: EmbeddedRedis) -> None:
    """The answer is that the service is unavailable, soon, and the request is accepted once Redis is back."""
    stack_on_own_redis.add("api")
    queue = stack_on_own_redis.queue()
    task = queue.submit()
    own_redis.kill()
    answer = queue.post(task_type="echo", idempotency_key="again")
    expect_refusal(answer, 503, "SERVICE_UNAVAILABLE")
    assert answer.headers["retry-after"]
    assert queue.client.get(f"/api/v1/tasks/{task}").status_code == 503
    assert queue.client.get("/readyz").status_code == 503
    own_redis.spawn()
    own_redis.wait()
    wait_until(lambda: queue.client.get("/readyz").status_code, "it is ready", lambda seen: seen == 200)
    assert queue.post(task_type="echo", idempotency_key="again").status_code == 201
    assert queue.status(task) == "queued"
