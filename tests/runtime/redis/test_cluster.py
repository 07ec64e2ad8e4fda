"""Redis in cluster mode: with a hash tag in front of every key all of it runs in one slot."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio

from generated.priority.lifecycle import TASK_RAISE_LOW, TASK_RETRY, WORKER_LOSE
from generated.priority.messages import CANCELLED, COMPLETED, DEAD_LETTER, LOW, QUEUED
from runtime.embedded.redis import EmbeddedRedis
from runtime.redis.line import ReplyError
from tests.runtime.redis.conftest import MakeKit


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    """A server in cluster mode that has all slots."""
    made = EmbeddedRedis(tmp_path / "cluster", settings={"cluster-enabled": "yes"})
    # Its nodes would talk at a port that is higher by ten thousand.
    made.port = next(port for port in iter(lambda: random.randrange(20_000, 50_000), 0) if _is_free(port))
    made.start()
    yield made
    made.remove()


def _is_free(port: int) -> bool:
    with socket.socket() as tried, suppress(OSError):
        tried.bind(("127.0.0.1", port))
        return True
    return False


@pytest.fixture
async def cluster_url(cluster: EmbeddedRedis) -> AsyncIterator[str]:
    client: Any = redis.asyncio.Redis.from_url(cluster.url, decode_responses=True)
    for start in range(0, 16_384, 4096):
        await client.execute_command("CLUSTER", "ADDSLOTS", *range(start, start + 4096))
    async with asyncio.timeout(10):
        while "cluster_state:ok" not in str(await client.execute_command("CLUSTER", "INFO")):
            await asyncio.sleep(0.05)
    yield cluster.url
    await client.aclose()


@pytest.mark.req("PQ-162", "PQ-009")
async def test_a_life_in_one_slot(cluster_url: str, make_kit: MakeKit) -> None:
    """Submission, promotion, retries, dead workers, replay, cancel and listing; without a tag nothing."""
    kit = await make_kit(cluster_url, REDIS_KEY_PREFIX="{pq}:")
    worker = await kit.worker(10, "gpu")
    low = await kit.add(priority=LOW, idempotency_key="{other}", required_capabilities=("gpu",))
    await kit.back_date(low.task_id, 700)
    assert await kit.sweep(TASK_RAISE_LOW) == 1
    (task,) = await kit.claim(worker)
    assert await kit.fail(task) == QUEUED
    (task,) = await kit.claim(worker)
    await kit.redis.hset(f"{{pq}}:workers:{worker}", "last_heartbeat", 1)
    await kit.redis.zadd("{pq}:workers:heartbeats", {worker: 1})
    assert await kit.sweep(WORKER_LOSE) == 1
    assert await kit.sweep(TASK_RETRY, TASK_RETRY.also_due) == 1
    worker = await kit.worker(10, "gpu")
    (task,) = await kit.claim(worker)
    assert await kit.fail(task) == DEAD_LETTER
    assert (await kit.tasks.move(low.task_id, DEAD_LETTER, QUEUED, kit.call("admin"))).applied
    assert await kit.settle((await kit.claim(worker))[0]) == COMPLETED
    cancelled = await kit.add()
    assert (await kit.tasks.move_to(cancelled.task_id, CANCELLED, kit.call("client"))).applied
    found, _ = await kit.tasks.find(size=10)
    assert {each.task_id for each in found} == {low.task_id, cancelled.task_id}
    assert await kit.tasks.trim() == 2
    await kit.sound()
    assert [key async for key in kit.redis.scan_iter("*") if not key.startswith("{pq}:")] == []
    untagged = await make_kit(cluster_url)
    with pytest.raises(ReplyError, match="CROSSSLOT"):
        await untagged.create(untagged.intent())
