"""A database that goes down while workers run jobs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import le
from pathlib import Path

import pytest

from runtime.launch.embedded.postgres import EmbeddedPostgres
from tests.orchestrator.conftest import make_database
from tests.support.orchestrator.stack import wait_until
from tests.support.orchestrator.stage import BEGUN, ENDED, STOPPED
from tests.support.orchestrator.worker_processes import (
    BRIEF,
    LONG_LEASES,
    Crew,
    lines,
    read_metric,
    wait_for_lines,
)


@pytest.fixture
def crew_on_own_server(own_server: EmbeddedPostgres, tmp_path: Path) -> Iterator[Crew]:
    """A database on a server that may be stopped."""
    with Crew(make_database(own_server), tmp_path / "stage") as crew:
        yield crew


def restart_server(crew: Crew, server: EmbeddedPostgres) -> None:
    """Starts the server once more."""
    server.spawn()
    server.wait()
    crew.reconnect()


@pytest.mark.req("ORC-146")
def test_an_outcome_is_written_after_an_outage(
    crew_on_own_server: Crew, own_server: EmbeddedPostgres
) -> None:
    """The database is down when the run ends: its worker retries until the outcome is written, once."""
    (node,) = crew_on_own_server.start_workers("persistent", LEASE_SECONDS="600")
    job = crew_on_own_server.insert_job(gate="outage")
    crew_on_own_server.wait_for_run(job)
    own_server.stop(immediate=True)
    crew_on_own_server.stage.open("outage")
    wait_until(lambda: crew_on_own_server.stage.attempts(job, ENDED), "the run has come to its end")
    assert node.http.get("/readyz").status_code == 503
    assert node.http.get("/healthz").status_code == 200
    restart_server(crew_on_own_server, own_server)
    assert crew_on_own_server.wait_for_state(job, "SUCCESS")["attempt"] == 1
    assert crew_on_own_server.stage.attempts(job) == [1]
    another = crew_on_own_server.insert_job()
    crew_on_own_server.wait_for_state(another, "SUCCESS")
    wait_for_lines(node, "transition", job_id=another, transition="complete")
    assert lines(node, "lease_lost") == []
    assert node.running


@pytest.mark.req("ORC-146", "ORC-010", "ORC-145")
def test_an_outcome_is_dropped_after_the_lease(
    crew_on_own_server: Crew, own_server: EmbeddedPostgres
) -> None:
    """A run that lasts is stopped with its lease, one that has ended gives up; both are run again."""
    (node,) = crew_on_own_server.start_workers("cut-off", **BRIEF, WORKER_CONCURRENCY="2")
    goes_on, over = crew_on_own_server.insert_job(gate="never"), crew_on_own_server.insert_job(gate="over")
    for job in (goes_on, over):
        crew_on_own_server.wait_for_run(job)
    own_server.stop(immediate=True)
    crew_on_own_server.stage.open("over")

    def are_lost() -> bool:
        """Whether the last run of each is over and logged as lost: nothing new is claimed any more."""
        last = {job: crew_on_own_server.stage.attempts(job)[-1] for job in (goes_on, over)}
        lost = {(line["job_id"], line["attempt"]) for line in lines(node, "lease_lost")}
        return (
            last[goes_on] in crew_on_own_server.stage.attempts(goes_on, STOPPED)
            and last[over] in crew_on_own_server.stage.attempts(over, ENDED)
            and last.items() <= lost
        )

    wait_until(are_lost, "the run is stopped, and both are lost")
    dropped = {job: crew_on_own_server.stage.attempts(job)[-1] for job in (goes_on, over)}
    crew_on_own_server.stage.open("never")
    restart_server(crew_on_own_server, own_server)
    for job in (goes_on, over):
        row = crew_on_own_server.wait_for_state(job, "SUCCESS")
        assert row["attempt"] == row["result"]["attempt"] > dropped[job], "no outcome of before counts"
        assert (row["retry_count"], row["last_error"]) == (row["attempt"] - 1, "LEASE_EXPIRED")
        lost = ["RUNNING", "RETRY", "QUEUED"] * row["retry_count"]
        assert crew_on_own_server.path(job)[2:] == [*lost, "RUNNING", "SUCCESS"]
    assert node.running


@pytest.mark.req("ORC-145", "ORC-003", "ORC-157")
def test_a_restart_of_the_database_loses_nothing(
    crew_on_own_server: Crew, own_server: EmbeddedPostgres
) -> None:
    """Restarted twice during 60 jobs: workers reconnect by themselves, and every job ends."""
    nodes = crew_on_own_server.start_workers("a", "b", **BRIEF, WORKER_CONCURRENCY="4")
    jobs = crew_on_own_server.insert_jobs(count=60, seconds=0.05)
    for threshold in (10, 30):
        enough = partial(le, threshold)
        wait_until(lambda: len(crew_on_own_server.stage.runs(ENDED)), f"{threshold} have ended", enough)
        own_server.stop(immediate=True)
        restart_server(crew_on_own_server, own_server)
    assert crew_on_own_server.wait_until_ended() == {"SUCCESS": 60}
    assert all(node.running for node in nodes)
    rerun = len(crew_on_own_server.stage.runs(BEGUN, jobs)) - 60
    counted = crew_on_own_server.sql.value("SELECT sum(retry_count) FROM jobs")
    assert rerun <= counted
    print(f"60 jobs, 2 restarts: {rerun} runs repeated, {counted} leases lost")


@pytest.mark.req("ORC-010", "ORC-145")
def test_a_worker_waits_for_its_database(crew_on_own_server: Crew, own_server: EmbeddedPostgres) -> None:
    """Started during an outage it is alive and not ready; when the database is up it works."""
    own_server.stop(immediate=True)
    node = crew_on_own_server.make_worker("early").begin()
    wait_for_lines(node, "store_unavailable")
    wait_for_lines(node, "worker_started")
    assert node.http.get("/readyz").status_code == 503
    restart_server(crew_on_own_server, own_server)
    crew_on_own_server.wait_for_state(crew_on_own_server.insert_job(), "SUCCESS")
    assert node.http.get("/readyz").status_code == 200
    assert read_metric(node, "charter_leases_lost_total") == 0


@pytest.mark.req("ORC-145", "ORC-133")
def test_notifications_work_after_a_restart(crew_on_own_server: Crew, own_server: EmbeddedPostgres) -> None:
    """A worker with a long polling interval is woken up by each job, also after the database was down."""
    (node,) = crew_on_own_server.start_workers("sleepy", **LONG_LEASES, POLL_INTERVAL_MS="3600000")
    crew_on_own_server.wait_for_state(crew_on_own_server.insert_job(), "SUCCESS")
    own_server.stop(immediate=True)
    restart_server(crew_on_own_server, own_server)
    for _ in range(2):
        crew_on_own_server.wait_for_state(crew_on_own_server.insert_job(), "SUCCESS")
    assert node.stop() == 0, "nor does it keep a stop waiting"
    assert [line["message"] for line in lines(node, "service_stopping")] == ["draining for at most 25 s"]
