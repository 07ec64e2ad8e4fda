"""Redis in cluster mode: with a hash tag in front of every key all of it runs in one slot."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio

from generated.priority.lifecycle import TASK_RAISE_LOW, TASK_RETRY, WORKER_LOSE
from generated.priority.messages import COMPLETED, DEAD_LETTER, LOW, QUEUED
from runtime.launch.embedded.ports import allocate_ports
from runtime.launch.embedded.redis import EmbeddedRedis
from runtime.stores.redis.connection.pipelined_connection import ReplyError
from tests.runtime.stores.redis.conftest import MakeKit
from tests.support.eventually import eventually

CLUSTER = {"cluster-enabled": "yes", "cluster-node-timeout": "600000"}
"""A node that stalls for a while is not taken for lost by the other one."""


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[EmbeddedRedis]]:
    """Two servers in cluster mode."""
    made = [
        EmbeddedRedis(tmp_path / f"node-{number}", settings=CLUSTER, password="cluster")
        for number in range(2)
    ]
    for each in made:
        # They talk to each other at a port that is higher by ten thousand.
        lower = (port - 10_000 for port in iter(lambda: allocate_ports(1)[0], None))
        each.port = next(port for port in lower if _is_free(port))
        each.start()
    yield made
    for each in made:
        each.remove()


def _is_free(port: int) -> bool:
    with socket.socket() as tried, suppress(OSError):
        tried.bind(("127.0.0.1", port))
        return True
    return False


@pytest.fixture
async def cluster_url(nodes: list[EmbeddedRedis]) -> str:
    """Where a node is that has not the slot of our keys, which the other one has."""
    clients: list[Any] = [redis.asyncio.Redis.from_url(each.url, decode_responses=True) for each in nodes]
    await clients[0].execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[1].port)
    slot = await clients[0].execute_command("CLUSTER", "KEYSLOT", "{pq}:")
    owner = [range(slot, slot + 1), range(slot), range(slot + 1, 16_384)]
    for client, ranges in ((clients[1], owner[:1]), (clients[0], owner[1:])):
        for slots in ranges:
            for start in range(slots.start, slots.stop, 4096):
                part = range(start, min(start + 4096, slots.stop))
                await client.execute_command("CLUSTER", "ADDSLOTS", *part)
    for client in clients:
        await eventually(
            partial(client.execute_command, "CLUSTER", "INFO"),
            wanted=lambda told: "cluster_state:ok" in str(told),
        )
        await client.aclose()
    return nodes[0].url


@pytest.mark.req("PQ-162", "PQ-009")
async def test_a_life_in_one_slot(cluster_url: str, nodes: list[EmbeddedRedis], make_kit: MakeKit) -> None:
    """Submission, promotion, retries, dead workers, replay, cancel and listing, at the node that has it."""
    kit = await make_kit(cluster_url, REDIS_KEY_PREFIX="{pq}:")
    await kit.redis.aclose()
    kit.redis = redis.asyncio.Redis.from_url(nodes[1].url, decode_responses=True)
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
    assert await kit.sweep(TASK_RETRY, TASK_RETRY.dues[1]) == 1
    worker = await kit.worker(10, "gpu")
    (task,) = await kit.claim(worker)
    assert await kit.fail(task) == DEAD_LETTER
    assert (await kit.replay(low.task_id)).applied
    assert await kit.settle((await kit.claim(worker))[0]) == COMPLETED
    cancelled = await kit.add()
    assert (await kit.cancel(cancelled.task_id)).applied
    found, _ = await kit.tasks.find(size=10)
    assert {each.task_id for each in found} == {low.task_id, cancelled.task_id}
    assert await kit.tasks.trim() == 2
    await kit.sound()
    assert [key async for key in kit.redis.scan_iter("*") if not key.startswith("{pq}:")] == []
    untagged = await make_kit(cluster_url)
    with pytest.raises(ReplyError, match="CROSSSLOT"):
        await untagged.create(untagged.intent())
