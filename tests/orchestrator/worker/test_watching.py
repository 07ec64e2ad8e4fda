"""What people see of workers: metrics, logs and health."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.orchestrator.stack import Node, wait_until
from tests.support.orchestrator.worker_processes import CALM, Crew, counted, lines, measured, told

MARK = "nobody-may-read-this"


@pytest.fixture(scope="module")
def node(crew: Crew) -> Iterator[Node]:
    """A worker that has had every kind of job, and lost one."""
    (made,) = crew.work("watched", **CALM, MAX_RETRIES="1", LOG_LEVEL="DEBUG")
    crew.ended([crew.one(note=MARK), crew.one(fail=True, error=MARK), crew.one(fatal=True, error=MARK)])
    lost = crew.one(gate="watched", note=MARK)
    crew.begun(lost)
    crew.expire(lost)
    crew.until(lost, "RETRY", "QUEUED")
    crew.stage.open("watched")
    crew.until(lost, "SUCCESS")
    crew.put(count=2, state="CREATED")
    # What it has done is also told by then, and all that it told before.
    told(made, "transition", job_id=lost, transition="complete")
    told(made, "lease_lost", job_id=lost)
    yield made


@pytest.mark.req("ORC-X08")
def test_everything_that_matters_is_counted(crew: Crew, node: Node) -> None:
    """Transitions, expiries, losses, ends for good, and how long jobs waited until they were taken."""
    taken = crew.sql.value("SELECT sum(attempt) FROM jobs")

    def moved(count: int, name: str, actor: str) -> None:
        counted(node, count, "charter_transitions_total", entity="job", transition=name, actor=actor)

    assert taken == 6
    moved(taken, "acquire", "worker")
    moved(2, "complete", "worker")
    moved(3, "fail", "worker")
    moved(2, "bury", "worker")
    moved(1, "fail", "reaper")
    moved(2, "requeue", "scheduler")
    counted(node, 1, "charter_leases_expired_total", entity="job")
    counted(node, 2, "charter_given_up_total", entity="job")
    wait_until(lambda: measured(node, "charter_leases_lost_total", entity="job"), "the loss is counted")
    counted(node, taken, "charter_acquisition_wait_seconds_count", entity="job")


@pytest.mark.req("ORC-X08")
def test_states_and_the_age_of_the_oldest_are_shown(crew: Crew, node: Node) -> None:
    """After a count each state has its number, also those that have none, and the oldest its age."""

    def held(state: str) -> float:
        return measured(node, "charter_entities", entity="job", state=state)

    wait_until(lambda: held("CREATED"), "the jobs are counted", lambda seen: seen == 2)
    assert {state: held(state) for state in ("QUEUED", "RUNNING", "RETRY", "SUCCESS", "DEAD")} == {
        "QUEUED": 0,
        "RUNNING": 0,
        "RETRY": 0,
        "SUCCESS": 2,
        "DEAD": 2,
    }
    assert measured(node, "charter_oldest_age_seconds", entity="job", state="CREATED") > 0


@pytest.mark.req("ORC-X10")
def test_each_transition_has_a_line_that_says_whose(crew: Crew, node: Node) -> None:
    """Job, attempt, worker, transition and states are in it; a lost lease has job, attempt and worker."""
    jobs = {str(row["job_id"]) for row in crew.sql.rows("SELECT job_id FROM jobs WHERE attempt > 0")}
    seen = lines(node, "transition")
    assert {line["job_id"] for line in seen} == jobs
    for line in seen:
        assert {"entity", "transition", "job_id", "from_status", "to_status", "caller"} <= line.keys()
    for line in [each for each in seen if each["caller"] == "worker"]:
        assert (line["lease_owner"], line["attempt"] > 0) == ("watched", True)
    lost = told(node, "lease_lost")[0]
    assert (lost["worker_id"], lost["attempt"], lost["job_id"] in jobs) == ("watched", 1, True)


@pytest.mark.req("ORC-X10")
def test_neither_payloads_nor_errors_are_logged(crew: Crew, node: Node) -> None:
    """What a job carries or failed with is in the database, and in no line, at the most talkative level."""
    assert MARK in str(crew.sql.rows("SELECT payload, last_error FROM jobs"))
    assert MARK not in node.log.read_text() + node.errors.read_text()
    assert MARK not in node.http.get("/metrics").text


@pytest.mark.req("ORC-X07", "ORC-163", "ORC-159")
def test_a_worker_has_health_and_no_jobs_to_show(node: Node) -> None:
    """It answers for itself alone: the API is another process."""
    assert node.http.get("/healthz").status_code == 200
    assert node.http.get("/readyz").status_code == 200
    assert node.http.get("/jobs").status_code == 404
    assert node.http.post("/jobs", json={}).status_code == 404


@pytest.mark.req("ORC-X12", "ORC-163")
def test_maintenance_may_stand_apart(lone: Crew) -> None:
    """A node without a worker reaps and requeues, and leaves the running to others."""
    node = lone.add("maintenance", deployment="compose")
    (job,) = lone.put(state="CREATED")
    lone.bring(job, "QUEUED", "RUNNING")
    lone.expire(job)
    row = lone.until(job, "QUEUED")
    assert (row["retry_count"], row["attempt"]) == (1, 1)
    assert [each["actor"] for each in lone.sql.history(job)][-2:] == ["reaper", "scheduler"]
    told(node, "transition", job_id=job, transition="requeue")
    assert {line["service"] for line in lines(node, "transition")} == {"reaper", "scheduler"}
