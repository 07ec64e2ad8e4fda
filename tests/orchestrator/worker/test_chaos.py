"""Everything at once: many workers, and processes and the database that die at random moments."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.embedded.postgres import EmbeddedPostgres
from tests.orchestrator.conftest import make_database
from tests.support.chaos import Chaos
from tests.support.orchestrator.stack import SERVE, Node, wait_until
from tests.support.orchestrator.stage import BEGUN
from tests.support.orchestrator.verdict import verdict
from tests.support.orchestrator.worker_processes import CALM, Crew
from tests.support.random_kills import Fate
from tests.support.submitters import Submitter

JOBS = 300
VICTIMS = ["worker"] * 5 + ["api"] * 2 + ["postgres"] * 2


@pytest.fixture
def shaken(own_server: EmbeddedPostgres, tmp_path: Path) -> Iterator[Crew]:
    """A database on a server that may be stopped."""
    with Crew(make_database(own_server), tmp_path / "stage") as made:
        yield made


@pytest.mark.chaos
@pytest.mark.req("ORC-119", "ORC-156", "ORC-120", "ORC-003", "ORC-144", "ORC-160")
def test_when_nothing_fails_each_job_is_run_once(lone: Crew, server: EmbeddedPostgres, chaos: Chaos) -> None:
    """Many workers compete for many jobs: one run for each job, and that is its first attempt."""
    workers, jobs = chaos.size(4, 10), list[str]()
    logged = server.log.stat().st_size
    lone.work(*(f"worker-{number}" for number in range(workers)), **CALM, WORKER_CONCURRENCY="3")
    for _ in chaos.rounds(1):
        jobs += lone.put(count=JOBS, seconds=0.002)
        assert lone.ended() == {"SUCCESS": len(jobs)}
    runs = lone.stage.runs(BEGUN)
    assert sorted(run.job_id for run in runs) == sorted(jobs)
    assert {run.attempt for run in runs} == {1}
    count = verdict(lone)
    assert (count.runs, count.repeated, count.leases_lost) == (len(jobs), 0, 0)
    assert b"deadlock detected" not in server.log.read_bytes()[logged:]
    chaos.count(jobs=count.runs, workers=workers, run_twice=count.repeated)


class Client(Submitter):
    """Submits jobs."""

    path, accepted, answer = "/jobs", (202,), "jobId"

    def body(self, key: str, chance: random.Random) -> dict[str, Any]:
        payload = {"seconds": chance.choice((0, 0.01, 0.3))}
        return {"jobType": "act", "payload": payload, "idempotencyKey": key}


@pytest.mark.chaos
@pytest.mark.req(
    "ORC-001", "ORC-003", "ORC-010", "ORC-145", "ORC-155", "ORC-156", "ORC-157", "ORC-072", "ORC-X12"
)
def test_whatever_is_killed_nothing_acknowledged_is_lost(
    shaken: Crew, own_server: EmbeddedPostgres, chaos: Chaos
) -> None:
    """Workers, the API and PostgreSQL die at random: every job ends, and is run again only for a reason."""
    api = shaken.add("api", program=SERVE)
    shaken.work("a", "b", "c", WORKER_CONCURRENCY="3", LEASE_SECONDS="1", MAX_RETRIES="1000")
    clients = [Client(name, api.url, chaos.chance) for name in ("one", "another")]
    for client in clients:
        client.start()
    fate = Fate(shaken.nodes, "postgres", own_server)
    try:
        for chance in chaos.rounds(1):
            fate.strike_all(VICTIMS, chance)
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
    count = verdict(shaken)
    chaos.count(**{f"kills_of_{name}": number for name, number in sorted(fate.killed.items())})
    chaos.count(jobs=len(acknowledged), lost=0, submits_repeated=refused, run_twice=count.repeated)


def _alive(nodes: list[Node]) -> bool:
    return all(node.running for node in nodes)
