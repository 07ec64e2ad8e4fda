"""Everything at once: many workers, and processes and the database that die at random moments.

A run is had again, as far as chance allows, by its seed: `CHARTER_SEED=… pytest tests/orchestrator/worker`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.embedded.postgres import EmbeddedPostgres
from tests.orchestrator.conftest import make_database
from tests.support.deep import DEEP
from tests.support.orchestrator.stack import SERVE, Node, wait_until
from tests.support.orchestrator.stage import BEGUN
from tests.support.orchestrator.verdict import verdict
from tests.support.orchestrator.worker_processes import CALM, Crew
from tests.support.random_kills import RandomKills
from tests.support.submitters import Submitter

WORKERS, JOBS = (20, 2000) if DEEP else (4, 300)
KILLS = 300 if DEEP else 9
VICTIMS = ["worker"] * 5 + ["api"] * 2 + ["postgres"] * 2
SEED = int(os.environ.get("CHARTER_SEED") or random.SystemRandom().randrange(1 << 32))


@pytest.fixture
def shaken(own_server: EmbeddedPostgres, tmp_path: Path) -> Iterator[Crew]:
    """A database on a server that may be stopped."""
    with Crew(make_database(own_server), tmp_path / "stage") as made:
        yield made


@pytest.mark.req("ORC-119", "ORC-156", "ORC-120", "ORC-003", "ORC-144", "ORC-160")
def test_when_nothing_fails_each_job_is_run_once(lone: Crew, server: EmbeddedPostgres) -> None:
    """Many workers compete for many jobs: one run for each job, and that is its first attempt."""
    logged = server.log.stat().st_size
    lone.work(*(f"worker-{number}" for number in range(WORKERS)), **CALM, WORKER_CONCURRENCY="3")
    jobs = lone.put(count=JOBS, seconds=0.002)
    assert lone.ended() == {"SUCCESS": JOBS}
    runs = lone.stage.runs(BEGUN)
    assert sorted(run.job_id for run in runs) == sorted(jobs)
    assert {run.attempt for run in runs} == {1}
    count = verdict(lone)
    assert (count.runs, count.repeated, count.leases_lost) == (JOBS, 0, 0)
    assert b"deadlock detected" not in server.log.read_bytes()[logged:]
    print(f"{WORKERS} workers, {len({run.worker for run in runs})} of which ran something: {count}")


class Client(Submitter):
    """Submits jobs."""

    path, accepted, answer = "/jobs", (202,), "jobId"

    def body(self, key: str, chance: random.Random) -> dict[str, Any]:
        payload = {"seconds": chance.choice((0, 0.01, 0.3))}
        return {"jobType": "act", "payload": payload, "idempotencyKey": key}


@pytest.mark.req(
    "ORC-001", "ORC-003", "ORC-010", "ORC-145", "ORC-155", "ORC-156", "ORC-157", "ORC-072", "ORC-X12"
)
def test_whatever_is_killed_nothing_acknowledged_is_lost(shaken: Crew, own_server: EmbeddedPostgres) -> None:
    """Workers, the API and PostgreSQL die at random: every job ends, and is run again only for a reason."""
    print(f"CHARTER_SEED={SEED}")
    chance = random.Random(SEED)
    api = shaken.add("api", program=SERVE)
    shaken.work("a", "b", "c", WORKER_CONCURRENCY="3", LEASE_SECONDS="1", MAX_RETRIES="1000")
    clients = [Client(name, api.url, chance) for name in ("one", "another")]
    for client in clients:
        client.start()
    fate = RandomKills(shaken.nodes, "postgres", own_server, chance)
    try:
        fate.kill_all(VICTIMS, KILLS)
    finally:
        fate.revive()
        for client in clients:
            client.end()
        shaken.reconnect()
    acknowledged = {key: job for client in clients for key, job in client.acknowledged.items()}
    stored = {str(row["job_id"]): row["idempotency_key"] for row in shaken.sql.rows("SELECT * FROM jobs")}
    assert {key: job for job, key in stored.items()} == acknowledged, "one job for each key, and no other"
    assert shaken.ended() == {"SUCCESS": len(acknowledged)}
    wait_until(lambda: not shaken.states()["RUNNING"], "nothing runs")
    assert _alive(shaken.nodes)
    refused = sum(client.refused for client in clients)
    print(f"killed {dict(fate.killed)}, {refused} submits repeated: {verdict(shaken)}")


def _alive(nodes: list[Node]) -> bool:
    return all(node.running for node in nodes)
