"""Everything at once: many workers, and processes and the database that die at random moments.

A run is had again, as far as chance allows, by its seed: `CHARTER_SEED=… pytest tests/orchestrator/worker`.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from runtime.embedded.postgres import EmbeddedPostgres
from tests.orchestrator.conftest import make_database
from tests.orchestrator.processes import CALM, DEEP, Crew
from tests.orchestrator.stack import Node, post, wait_until
from tests.orchestrator.worker.stage import BEGUN
from tests.orchestrator.worker.verdict import verdict

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
    lone.work(*(f"worker-{number}" for number in range(WORKERS)), **CALM, WORKER_CONCURRENCY="3")
    jobs = lone.put(count=JOBS, seconds=0.002)
    assert lone.ended() == {"SUCCESS": JOBS}
    runs = lone.stage.runs(BEGUN)
    assert sorted(run.job_id for run in runs) == sorted(jobs)
    assert {run.attempt for run in runs} == {1}
    count = verdict(lone)
    assert (count.runs, count.repeated, count.leases_lost) == (JOBS, 0, 0)
    assert "deadlock detected" not in server.log.read_text(errors="replace")
    print(f"{WORKERS} workers, {len({run.worker for run in runs})} of which ran something: {count}")


class Client(threading.Thread):
    """Submits jobs one after the other, each as often as it takes until it is acknowledged."""

    def __init__(self, name: str, url: str, chance: random.Random) -> None:
        super().__init__(name=name, daemon=True)
        self.acknowledged: dict[str, str] = {}
        self.refused = 0
        self.over = threading.Event()
        self._http = httpx.Client(base_url=url, timeout=5)
        self._chance = chance

    def run(self) -> None:
        """Goes on until it is told that it is over; the job in hand is still submitted."""
        with self._http:
            number = 0
            while not self.over.is_set():
                key, payload = f"{self.name}-{number}", {"seconds": self._chance.choice((0, 0.01, 0.3))}
                number += 1
                while (job := self._submitted(payload, key)) is None:
                    self.refused += 1
                    time.sleep(0.05)
                self.acknowledged[key] = job
                time.sleep(0.02)

    def _submitted(self, payload: object, key: str) -> str | None:
        try:
            answer = post(self._http, "act", payload, key)
        except httpx.TransportError:
            return None
        assert answer.status_code in (202, 503), answer.text
        return str(answer.json()["jobId"]) if answer.status_code == 202 else None


class Fate:
    """Kills at random moments, and brings back to life."""

    def __init__(self, crew: Crew, server: EmbeddedPostgres, chance: random.Random) -> None:
        self.killed = {"api": 0, "worker": 0, "postgres": 0}
        self._crew = crew
        self._server = server
        self._chance = chance

    def strike(self, kind: str) -> None:
        """One kill. Whoever is dead comes back after a while, and maybe not before the next kill."""
        time.sleep(self._chance.uniform(0, 0.6))
        self.killed[kind] += 1
        if kind == "postgres":
            self._server.stop(immediate=True)
            time.sleep(self._chance.choice((0, 0.5, 1.5)))
            self._server.spawn()
            self._server.wait()
        else:
            alive = [node for node in self._crew.nodes if node.name == kind and node.running]
            if alive:
                self._chance.choice(alive).kill()
        for node in self._crew.nodes:
            if not node.running and self._chance.random() < 0.7:
                node.begin()

    def revive(self) -> None:
        """Brings everybody back."""
        for node in self._crew.nodes:
            if not node.running:
                node.begin()
            node.wait()


@pytest.mark.req(
    "ORC-001", "ORC-003", "ORC-010", "ORC-145", "ORC-155", "ORC-156", "ORC-157", "ORC-072", "ORC-X12"
)
def test_whatever_is_killed_nothing_acknowledged_is_lost(shaken: Crew, own_server: EmbeddedPostgres) -> None:
    """Workers, the API and PostgreSQL die at random: every job ends, and is run again only for a reason."""
    print(f"CHARTER_SEED={SEED}")
    chance = random.Random(SEED)
    api = shaken.add("api")
    shaken.work("a", "b", "c", WORKER_CONCURRENCY="3", MAX_RETRIES="1000")
    clients = [Client(name, api.url, chance) for name in ("one", "another")]
    for client in clients:
        client.start()
    fate = Fate(shaken, own_server, chance)
    try:
        for kind in chance.sample(VICTIMS, len(VICTIMS)) * (KILLS // len(VICTIMS)):
            fate.strike(kind)
    finally:
        fate.revive()
        for client in clients:
            client.over.set()
            client.join()
        shaken.reconnect()
    acknowledged = {key: job for client in clients for key, job in client.acknowledged.items()}
    stored = {str(row["job_id"]): row["idempotency_key"] for row in shaken.sql.rows("SELECT * FROM jobs")}
    assert {key: job for job, key in stored.items()} == acknowledged, "one job for each key, and no other"
    assert shaken.ended() == {"SUCCESS": len(acknowledged)}
    wait_until(lambda: not shaken.states()["RUNNING"], "nothing runs")
    assert _alive(shaken.nodes)
    refused = sum(client.refused for client in clients)
    print(f"killed {fate.killed}, {refused} submits repeated: {verdict(shaken)}")


def _alive(nodes: list[Node]) -> bool:
    return all(node.running for node in nodes)
