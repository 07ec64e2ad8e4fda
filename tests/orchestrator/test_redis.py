"""Jobs in Redis: workers that are killed, stopped and raced, and a server that is killed, on a real one."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from redis import Redis

from runtime.launch.embedded.redis import EmbeddedRedis
from tests.support.chaos import Chaos
from tests.support.orchestrator.stack import Node, Stack, get, submit, wait_until, wait_until_final
from tests.support.orchestrator.stage import BEGUN, VARIABLE, Stage
from tests.support.orchestrator.worker_processes import BRISK, STAGED, start_all, wait_for_lines

BRIEF = {"LEASE_SECONDS": "1", "LEASE_RENEW_SECONDS": "0.3", "MAX_RETRIES": "1000"}
"""Leases that end while a test waits."""
TOKEN = "operator-token"
LOST = ["", "accept", "acquire", "fail", "requeue", "acquire", "complete"]
"""The edges of a job whose first worker was lost."""


class Place(Stack):
    """An API and workers with the functions of a stage, around a Redis of their own."""

    def __init__(self, folder: Path) -> None:
        # What is acknowledged is on disk.
        self.server = EmbeddedRedis(folder / "redis", settings={"appendfsync": "always"})
        self.server.start()
        super().__init__("", folder / "logs", "redis", REDIS_URL=self.server.url)
        self.stage = Stage(folder)

    def worker_of(self, name: str, **settings: str) -> Node:
        """A worker, not started yet."""
        variables = {VARIABLE: str(self.stage.folder), **BRISK, "WORKER_ID": name, **settings}
        return self.node("worker", program=STAGED, **variables)

    def begun(self, count: int, *jobs: str) -> None:
        """Wait until so many runs have begun."""
        wait_until(lambda: len(self.stage.runs(BEGUN, jobs)), "runs have begun", lambda seen: seen >= count)

    def edges(self, job: str) -> list[str]:
        """The history of a job, as an operator sees it."""
        proof = {"authorization": f"Bearer {TOKEN}"}
        answer = self.api.http.get(f"/operator/jobs/{job}/history", headers=proof)
        assert answer.status_code == 200, answer.text
        return [each.get("transition", "") for each in answer.json()["transitions"]]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """An empty Redis with an API."""
    made = Place(tmp_path)
    try:
        with made:
            made.add("api", ACCEPTED_TOKENS=f"operator={sha256(TOKEN.encode()).hexdigest()}")
            yield made
    finally:
        made.server.remove()


@pytest.mark.chaos
def test_a_killed_worker_loses_no_job(place: Place, chaos: Chaos) -> None:
    """Its leases end, and another runs what it had, under a higher fence."""
    heir = place.worker_of("heir", WORKER_CONCURRENCY="4").start()
    lost = 0
    for number, _ in enumerate(chaos.rounds(2)):
        heir.signal(signal.SIGSTOP)
        victim = place.worker_of("victim", WORKER_CONCURRENCY="2", **BRIEF).start()
        jobs = [submit(place.api.http, "act", {"gate": f"round {number}"}) for _ in range(4)]
        place.begun(2, *jobs)
        victim.kill()
        taken = [run.job_id for run in place.stage.runs(BEGUN, jobs)]
        place.stage.open(f"round {number}")
        heir.signal(signal.SIGCONT)
        assert [wait_until_final(place.api.http, job) for job in jobs] == ["COMPLETED"] * 4
        assert all(place.edges(job) == LOST for job in taken)
        lost += len(taken)
    chaos.count(leases_lost=lost)


def test_a_worker_that_was_stopped_past_its_lease_writes_nothing(place: Place) -> None:
    """Another has run its job meanwhile; what the first says of it is refused."""
    zombie = place.worker_of("zombie", **BRIEF).start()
    job = submit(place.api.http, "act", {"gate": "late"})
    place.begun(1, job)
    zombie.signal(signal.SIGSTOP)
    place.worker_of("other").start()
    place.begun(2, job)
    place.stage.open("late")
    assert wait_until_final(place.api.http, job) == "COMPLETED"
    before = get(place.api.http, job)
    zombie.signal(signal.SIGCONT)
    wait_for_lines(zombie, "lease_lost", job_id=job, attempt=1)
    assert get(place.api.http, job) == before
    assert place.edges(job) == LOST


def test_a_job_type_may_have_a_retry_policy_of_its_own(place: Place) -> None:
    """The variables apply to all others: no retry there, where the job type of the spec waits ten seconds."""
    # Nothing is queued again, so that a failed job stays as it is while it is read.
    place.worker_of(
        "strict", MAX_RETRIES="0", BACKOFF_MAX_SECONDS="300", SCHEDULER_INTERVAL_SECONDS="3600"
    ).start()
    stated, other = submit(place.api.http, "SEND_EMAIL"), submit(place.api.http, "unknown")
    assert wait_until_final(place.api.http, other) == "FAILED"
    wait_until(lambda: place.edges(stated), "it failed", lambda seen: seen[-1] == "fail")
    with Redis.from_url(place.server.url, decode_responses=True) as client:
        row: dict[str, str] = client.hgetall(f"orchestrator:job:record:{stated}")
    assert row["state"] == "RETRY"
    assert int(row["next_attempt_at"]) - int(row["updated_at"]) == 10_000_000


def test_racing_workers_run_each_job_once(place: Place) -> None:
    workers = start_all(place.worker_of(f"racer {number}", WORKER_CONCURRENCY="4") for number in range(3))
    jobs = [submit(place.api.http, "act") for _ in range(40)]
    assert {wait_until_final(place.api.http, job) for job in jobs} == {"COMPLETED"}
    assert Counter(run.job_id for run in place.stage.runs(BEGUN)) == Counter(jobs)
    assert len(workers) == 3


def test_accepted_jobs_outlive_everything_that_is_killed(place: Place) -> None:
    """API, worker and Redis are killed while jobs wait and run; what was accepted comes to its end."""
    worker = place.worker_of("worker", WORKER_CONCURRENCY="2", **BRIEF).start()
    jobs = [submit(place.api.http, "act", {"gate": "all"}, key=f"key {number}") for number in range(8)]
    place.begun(2)
    for node in place.nodes:
        node.kill()
    place.server.kill()
    place.server.start()
    place.stage.open("all")
    start_all([place.api, worker])
    assert [submit(place.api.http, "act", {"gate": "all"}, key="key 3")] == [jobs[3]]
    assert {wait_until_final(place.api.http, job) for job in jobs} == {"COMPLETED"}
