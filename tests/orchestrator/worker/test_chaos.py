"""Random failures: many workers, and processes and the database that are killed at random moments."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.launch.embedded.postgres import EmbeddedPostgres
from tests.orchestrator.conftest import make_database
from tests.support.chaos import Chaos
from tests.support.orchestrator.stack import SERVE, Node, wait_until
from tests.support.orchestrator.stage import BEGUN
from tests.support.orchestrator.verdict import verify
from tests.support.orchestrator.worker_processes import LONG_LEASES, Crew
from tests.support.random_kills import RandomKills
from tests.support.submitters import Submitter

JOBS = 300
VICTIMS = ["worker"] * 5 + ["api"] * 2 + ["postgres"] * 2


@pytest.fixture
def crew_on_own_server(own_server: EmbeddedPostgres, tmp_path: Path) -> Iterator[Crew]:
    """A database on a server that may be stopped."""
    with Crew(make_database(own_server), tmp_path / "stage") as crew:
        yield crew


@pytest.mark.chaos
@pytest.mark.req("ORC-119", "ORC-156", "ORC-120", "ORC-003", "ORC-144", "ORC-160")
def test_without_failures_each_job_is_run_once(
    fresh_crew: Crew, server: EmbeddedPostgres, chaos: Chaos
) -> None:
    """Many workers compete for many jobs: one run for each job, and that is its first attempt."""
    workers, jobs = chaos.size(4, 10), list[str]()
    logged = server.log.stat().st_size
    fresh_crew.start_workers(
        *(f"worker-{number}" for number in range(workers)), **LONG_LEASES, WORKER_CONCURRENCY="3"
    )
    for _ in chaos.rounds(1):
        jobs += fresh_crew.insert_jobs(count=JOBS, seconds=0.002)
        assert fresh_crew.wait_until_ended() == {"SUCCESS": len(jobs)}
    runs = fresh_crew.stage.runs(BEGUN)
    assert sorted(run.job_id for run in runs) == sorted(jobs)
    assert {run.attempt for run in runs} == {1}
    count = verify(fresh_crew)
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
def test_no_acknowledged_job_is_lost_whatever_is_killed(
    crew_on_own_server: Crew, own_server: EmbeddedPostgres, chaos: Chaos
) -> None:
    """Workers, the API and PostgreSQL die at random: every job ends, and is run again only for a reason."""
    api = crew_on_own_server.add("api", program=SERVE)
    crew_on_own_server.start_workers(
        "a", "b", "c", WORKER_CONCURRENCY="3", LEASE_SECONDS="1", MAX_RETRIES="1000"
    )
    clients = [Client(name, api.url, chaos.chance) for name in ("one", "another")]
    for client in clients:
        client.start()
    fate = RandomKills(crew_on_own_server.nodes, "postgres", own_server)
    try:
        for chance in chaos.rounds(1):
            fate.kill_all(VICTIMS, chance)
    finally:
        fate.revive()
        for client in clients:
            client.end()
        crew_on_own_server.reconnect()
    acknowledged = {key: job for client in clients for key, job in client.acknowledged.items()}
    stored = {
        str(row["job_id"]): row["idempotency_key"]
        for row in crew_on_own_server.sql.rows("SELECT * FROM jobs")
    }
    assert {key: job for job, key in stored.items()} == acknowledged, "one job for each key, and no other"
    assert crew_on_own_server.wait_until_ended() == {"SUCCESS": len(acknowledged)}
    wait_until(lambda: not crew_on_own_server.states()["RUNNING"], "nothing runs")
    assert _are_alive(crew_on_own_server.nodes)
    refused = sum(client.refused for client in clients)
    count = verify(crew_on_own_server)
    chaos.count(**{f"kills_of_{name}": number for name, number in sorted(fate.killed.items())})
    chaos.count(jobs=len(acknowledged), lost=0, submits_repeated=refused, run_twice=count.repeated)


def _are_alive(nodes: list[Node]) -> bool:
    return all(node.running for node in nodes)
