"""Metrics, logs and health of workers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.orchestrator.stack import Node, wait_until
from tests.support.orchestrator.worker_processes import (
    LONG_LEASES,
    Crew,
    lines,
    read_metric,
    wait_for_lines,
    wait_for_metric,
)

SECRET = "nobody-may-read-this"


@pytest.fixture(scope="module")
def node(crew: Crew) -> Iterator[Node]:
    """A worker that has run every kind of job, and lost one."""
    (node,) = crew.start_workers("watched", **LONG_LEASES, MAX_RETRIES="1", LOG_LEVEL="DEBUG")
    crew.wait_until_ended(
        [
            crew.insert_job(note=SECRET),
            crew.insert_job(fail=True, error=SECRET),
            crew.insert_job(fatal=True, error=SECRET),
        ]
    )
    lost = crew.insert_job(gate="watched", note=SECRET)
    crew.wait_for_run(lost)
    crew.expire(lost)
    crew.wait_for_state(lost, "RETRY", "QUEUED")
    crew.stage.open("watched")
    crew.wait_for_state(lost, "SUCCESS")
    crew.insert_jobs(count=2, state="CREATED")
    # Its metrics are complete by then, and all lines that it logged before.
    wait_for_lines(node, "transition", job_id=lost, transition="complete")
    wait_for_lines(node, "lease_lost", job_id=lost)
    yield node


@pytest.mark.req("ORC-X08")
def test_transitions_expiries_and_waits_are_counted(crew: Crew, node: Node) -> None:
    """Transitions, expiries, lost leases, dead jobs, and how long jobs waited until they were claimed."""
    claims = crew.sql.value("SELECT sum(attempt) FROM jobs")

    def expect_transitions(count: int, name: str, actor: str) -> None:
        wait_for_metric(node, count, "charter_transitions_total", entity="job", transition=name, actor=actor)

    assert claims == 6
    expect_transitions(claims, "acquire", "worker")
    expect_transitions(2, "complete", "worker")
    expect_transitions(3, "fail", "worker")
    expect_transitions(2, "bury", "worker")
    expect_transitions(1, "fail", "reaper")
    expect_transitions(2, "requeue", "scheduler")
    wait_for_metric(node, 1, "charter_leases_expired_total", entity="job")
    wait_for_metric(node, 2, "charter_given_up_total", entity="job")
    wait_until(lambda: read_metric(node, "charter_leases_lost_total", entity="job"), "the loss is counted")
    wait_for_metric(node, claims, "charter_acquisition_wait_seconds_count", entity="job")


@pytest.mark.req("ORC-X08")
def test_states_and_the_age_of_the_oldest_are_measured(crew: Crew, node: Node) -> None:
    """After a count each state has its number, also those that have none, and the oldest its age."""

    def count_jobs(state: str) -> float:
        return read_metric(node, "charter_entities", entity="job", state=state)

    wait_until(lambda: count_jobs("CREATED"), "the jobs are counted", lambda seen: seen == 2)
    assert {state: count_jobs(state) for state in ("QUEUED", "RUNNING", "RETRY", "SUCCESS", "DEAD")} == {
        "QUEUED": 0,
        "RUNNING": 0,
        "RETRY": 0,
        "SUCCESS": 2,
        "DEAD": 2,
    }
    assert read_metric(node, "charter_oldest_age_seconds", entity="job", state="CREATED") > 0


@pytest.mark.req("ORC-X10")
def test_each_transition_has_a_line_with_its_worker(crew: Crew, node: Node) -> None:
    """Job, attempt, worker, transition and states are in it; a lost lease has job, attempt and worker."""
    jobs = {str(row["job_id"]) for row in crew.sql.rows("SELECT job_id FROM jobs WHERE attempt > 0")}
    seen = lines(node, "transition")
    assert {line["job_id"] for line in seen} == jobs
    for line in seen:
        assert {"entity", "transition", "job_id", "from_status", "to_status", "caller"} <= line.keys()
    for line in [each for each in seen if each["caller"] == "worker"]:
        assert (line["lease_owner"], line["attempt"] > 0) == ("watched", True)
    lost = wait_for_lines(node, "lease_lost")[0]
    assert (lost["worker_id"], lost["attempt"], lost["job_id"] in jobs) == ("watched", 1, True)


@pytest.mark.req("ORC-X10")
def test_neither_payloads_nor_errors_are_logged(crew: Crew, node: Node) -> None:
    """The payload and the error of a job are in the database, and in no line, at the lowest level."""
    assert SECRET in str(crew.sql.rows("SELECT payload, last_error FROM jobs"))
    assert SECRET not in node.log.read_text() + node.errors.read_text()
    assert SECRET not in node.http.get("/metrics").text


@pytest.mark.req("ORC-X07", "ORC-163", "ORC-159")
def test_a_worker_serves_health_and_no_jobs(node: Node) -> None:
    """It serves its own pages alone: the API is another process."""
    assert node.http.get("/healthz").status_code == 200
    assert node.http.get("/readyz").status_code == 200
    assert node.http.get("/jobs").status_code == 404
    assert node.http.post("/jobs", json={}).status_code == 404


@pytest.mark.req("ORC-X12", "ORC-163")
def test_maintenance_may_run_on_its_own_node(fresh_crew: Crew) -> None:
    """A node without a worker reaps and requeues, and runs no jobs."""
    node = fresh_crew.add("maintenance", deployment="compose")
    (job,) = fresh_crew.insert_jobs(state="CREATED")
    fresh_crew.transition(job, "QUEUED", "RUNNING")
    fresh_crew.expire(job)
    row = fresh_crew.wait_for_state(job, "QUEUED")
    assert (row["retry_count"], row["attempt"]) == (1, 1)
    assert [each["actor"] for each in fresh_crew.sql.history(job)][-2:] == ["reaper", "scheduler"]
    wait_for_lines(node, "transition", job_id=job, transition="requeue")
    assert {line["service"] for line in lines(node, "transition")} == {"reaper", "scheduler"}
