"""A database that goes away while workers are in the middle of something."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import le
from pathlib import Path

import pytest

from runtime.embedded.postgres import EmbeddedPostgres
from tests.orchestrator.conftest import make_database
from tests.support.orchestrator.stack import wait_until
from tests.support.orchestrator.stage import BEGUN, ENDED, STOPPED
from tests.support.orchestrator.worker_processes import BRIEF, CALM, Crew, lines, measured, told


@pytest.fixture
def shaken(own_server: EmbeddedPostgres, tmp_path: Path) -> Iterator[Crew]:
    """A database on a server that may be stopped."""
    with Crew(make_database(own_server), tmp_path / "stage") as made:
        yield made


def back(crew: Crew, server: EmbeddedPostgres) -> None:
    """Starts the server once more."""
    server.spawn()
    server.wait()
    crew.reconnect()


@pytest.mark.req("ORC-146")
def test_an_outcome_outlasts_an_outage(shaken: Crew, own_server: EmbeddedPostgres) -> None:
    """The database is away when the run ends: its worker tries again and again, and it is a success, once."""
    (node,) = shaken.work("persistent", LEASE_SECONDS="600")
    job = shaken.one(gate="outage")
    shaken.begun(job)
    own_server.stop(immediate=True)
    shaken.stage.open("outage")
    wait_until(lambda: shaken.stage.attempts(job, ENDED), "the run has come to its end")
    assert node.http.get("/readyz").status_code == 503
    assert node.http.get("/healthz").status_code == 200
    back(shaken, own_server)
    assert shaken.until(job, "SUCCESS")["attempt"] == 1
    assert shaken.stage.attempts(job) == [1]
    another = shaken.one()
    shaken.until(another, "SUCCESS")
    told(node, "transition", job_id=another, transition="complete")
    assert lines(node, "lease_lost") == []
    assert node.running


@pytest.mark.req("ORC-146", "ORC-010", "ORC-145")
def test_beyond_the_lease_an_outcome_is_dropped(shaken: Crew, own_server: EmbeddedPostgres) -> None:
    """A run that goes on is stopped with its lease, one that has ended gives up; both are run again."""
    (node,) = shaken.work("cut-off", **BRIEF, WORKER_CONCURRENCY="2")
    goes_on, over = shaken.one(gate="never"), shaken.one(gate="over")
    for job in (goes_on, over):
        shaken.begun(job)
    own_server.stop(immediate=True)
    shaken.stage.open("over")

    def are_lost() -> bool:
        """Whether the last run of each is over, and was told to be lost: nothing new is taken any more."""
        last = {job: shaken.stage.attempts(job)[-1] for job in (goes_on, over)}
        lost = {(line["job_id"], line["attempt"]) for line in lines(node, "lease_lost")}
        return (
            last[goes_on] in shaken.stage.attempts(goes_on, STOPPED)
            and last[over] in shaken.stage.attempts(over, ENDED)
            and last.items() <= lost
        )

    wait_until(are_lost, "the run is stopped, and both are lost")
    dropped = {job: shaken.stage.attempts(job)[-1] for job in (goes_on, over)}
    shaken.stage.open("never")
    back(shaken, own_server)
    for job in (goes_on, over):
        row = shaken.until(job, "SUCCESS")
        assert row["attempt"] == row["result"]["attempt"] > dropped[job], "no outcome of before counts"
        assert (row["retry_count"], row["last_error"]) == (row["attempt"] - 1, "LEASE_EXPIRED")
        lost = ["RUNNING", "RETRY", "QUEUED"] * row["retry_count"]
        assert shaken.path(job)[2:] == [*lost, "RUNNING", "SUCCESS"]
    assert node.running


@pytest.mark.req("ORC-145", "ORC-003", "ORC-157")
def test_a_restart_of_the_database_loses_nothing(shaken: Crew, own_server: EmbeddedPostgres) -> None:
    """Restarted twice in the middle of 60 jobs: workers come back by themselves, and every job ends."""
    nodes = shaken.work("a", "b", **BRIEF, WORKER_CONCURRENCY="4")
    jobs = shaken.put(count=60, seconds=0.05)
    for share in (10, 30):
        enough = partial(le, share)
        wait_until(lambda: len(shaken.stage.runs(ENDED)), f"{share} have ended", enough)
        own_server.stop(immediate=True)
        back(shaken, own_server)
    assert shaken.ended() == {"SUCCESS": 60}
    assert all(node.running for node in nodes)
    rerun = len(shaken.stage.runs(BEGUN, jobs)) - 60
    counted = shaken.sql.value("SELECT sum(retry_count) FROM jobs")
    assert rerun <= counted
    print(f"60 jobs, 2 restarts: {rerun} runs repeated, {counted} leases lost")


@pytest.mark.req("ORC-010", "ORC-145")
def test_a_worker_waits_for_a_database_that_is_not_there_yet(
    shaken: Crew, own_server: EmbeddedPostgres
) -> None:
    """Started during an outage it is alive and not ready; when the database comes it works, unasked."""
    own_server.stop(immediate=True)
    node = shaken.hand("early").begin()
    told(node, "store_unavailable")
    told(node, "worker_started")
    assert node.http.get("/readyz").status_code == 503
    back(shaken, own_server)
    shaken.until(shaken.one(), "SUCCESS")
    assert node.http.get("/readyz").status_code == 200
    assert measured(node, "charter_leases_lost_total") == 0


@pytest.mark.req("ORC-145", "ORC-133")
def test_news_come_again_after_a_restart(shaken: Crew, own_server: EmbeddedPostgres) -> None:
    """A worker that hardly ever looks is woken by each job, also after the database was away."""
    (node,) = shaken.work("sleepy", **CALM, POLL_INTERVAL_MS="3600000")
    shaken.until(shaken.one(), "SUCCESS")
    own_server.stop(immediate=True)
    back(shaken, own_server)
    for _ in range(2):
        shaken.until(shaken.one(), "SUCCESS")
    assert node.stop() == 0, "nor does it keep a stop waiting"
    assert [line["message"] for line in lines(node, "service_stopping")] == ["draining for at most 25 s"]
