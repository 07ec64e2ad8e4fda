"""Redis behind Sentinel: another master is elected, and the queue works on."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from runtime.launch.embedded.postgres import EmbeddedPostgres
from tests.orchestrator.conftest import make_database
from tests.support.priority.sentinels import Group
from tests.support.priority.stack import BRISK, Servers, Stack, wait_until
from tests.support.priority.submitters import Client


@pytest.mark.req("PQ-252")
def test_the_queue_survives_a_failover(tmp_path: Path, postgres: EmbeddedPostgres, logs: Path) -> None:
    """Three sentinels and two servers: submits and polls work again after kill -9 of the master."""
    with Group(tmp_path) as group, Stack(_servers(group, postgres), logs) as stack:
        api = stack.add("api", intervals=BRISK)
        stack.add("worker", intervals=BRISK)
        queue = stack.queue()
        before = [queue.submit() for _ in range(10)]
        wait_until(lambda: {queue.status(each) for each in before}, "all are done", {"completed"}.__eq__)
        client = Client("during", api.url, random.Random(1))
        client.start()
        wait_until(client.has_begun, "tasks are accepted")
        died = time.time()
        group.lose_master()
        chosen = time.time()
        # A write that the old master acknowledged may be lost with it, also if its answer was read late.
        wait_until(
            lambda: [task for task, begun_at in [*client.asked.items()] if begun_at > chosen],
            "tasks are accepted again",
        )
        client.end()
        after = [task for task, begun_at in client.asked.items() if begun_at > chosen]
        wait_until(lambda: {queue.status(each) for each in after}, "all are done", {"completed"}.__eq__)
        accepted = min(client.when[task] for task in after)
        print(f"tasks were accepted again {accepted - died:.1f} s after the master was killed")


@pytest.mark.req("PQ-253")
def test_no_acknowledged_task_is_lost_with_a_synchronous_replica(
    tmp_path: Path, postgres: EmbeddedPostgres, logs: Path
) -> None:
    """With a replica that must have a task before its submit is answered, none is lost with the master."""
    settings = {"min-replicas-to-write": "1"}
    with (
        Group(tmp_path, followers=2, settings=settings) as group,
        Stack(_servers(group, postgres), logs) as stack,
    ):
        api = stack.add("api", deployment="compose", REDIS_WAIT_REPLICAS="1")
        clients = [Client(f"client-{place}", api.url, random.Random(place)) for place in range(3)]
        for client in clients:
            client.start()
        wait_until(lambda: all(each.has_begun() for each in clients), "tasks are accepted")
        master = group.lose_master()
        for client in clients:
            client.end()
        promised = [task for client in clients for task in client.when]
        with group.client(master) as there:
            lost = [task for task in promised if not there.exists(f"tasks:{task}")]
        print(f"{len(promised)} tasks acknowledged around the loss of the master, {len(lost)} of them lost")
        assert not lost


def _servers(group: Group, postgres: EmbeddedPostgres) -> Servers:
    return Servers(group.url, make_database(postgres), redis=group.client(group.servers[0]))
