"""Processes that die at the worst moment: the database has all that the others need."""

from __future__ import annotations

import signal

import pytest

from tests.support.orchestrator.stack import submit, wait_until, wait_until_final
from tests.support.orchestrator.stage import BEGUN, ENDED, STOPPED
from tests.support.orchestrator.worker_processes import (
    BRIEF,
    LONG_LEASES,
    Crew,
    read_metric,
    start_all,
    wait_for_exit,
    wait_for_lines,
)


@pytest.mark.req("ORC-139", "ORC-108", "ORC-004", "ORC-158", "ORC-138", "ORC-152", "ORC-156")
@pytest.mark.parametrize(("moment", "ended"), [("die", [2]), ("die_late", [1, 2])])
def test_the_job_of_a_dead_worker_is_run_again(fresh_crew: Crew, moment: str, ended: list[int]) -> None:
    """Killed during the run or just before the write: the job has a second run elsewhere, and succeeds."""
    (victim,) = fresh_crew.start_workers("victim")
    job = fresh_crew.insert_job(**{moment: [1]})
    wait_for_exit(victim)
    assert fresh_crew.sql.job(job)["state"] == "RUNNING", "a crash is not reported"
    fresh_crew.expire(job)
    fresh_crew.start_workers("heir")
    row = fresh_crew.wait_for_state(job, "SUCCESS")
    assert (row["attempt"], row["retry_count"], row["last_error"]) == (2, 1, "LEASE_EXPIRED")
    assert [run.worker for run in fresh_crew.stage.runs(BEGUN, [job])] == ["victim", "heir"]
    assert fresh_crew.stage.attempts(job, ENDED) == ended


@pytest.mark.req("ORC-141", "ORC-026")
def test_a_job_that_kills_every_worker_is_dead_after_max_retries(fresh_crew: Crew) -> None:
    """Each loss counts as a failure, so it is dead after the limit, and the next worker lives."""
    (node,) = fresh_crew.start_workers("unlucky", MAX_RETRIES="1")
    job = fresh_crew.insert_job(die=True)
    for _ in range(2):
        wait_for_exit(node)
        fresh_crew.expire(job)
        node.begin()
    row = fresh_crew.wait_for_state(job, "DEAD")
    assert (row["retry_count"], row["attempt"]) == (2, 2)
    assert fresh_crew.stage.attempts(job) == [1, 2]
    assert fresh_crew.path(job)[-3:] == ["RUNNING", "RETRY", "DEAD"]
    *_, last, end = fresh_crew.sql.history(job)
    assert (last["actor"], end["actor"], last["txid"] == end["txid"]) == ("reaper", "reaper", True)
    fresh_crew.wait_for_state(fresh_crew.insert_job(), "SUCCESS")
    assert node.running


@pytest.mark.req("ORC-007")
def test_the_loss_of_one_worker_affects_no_other(fresh_crew: Crew) -> None:
    """Of three busy workers one is killed: the others run on, and one of them claims its job."""
    jobs = fresh_crew.insert_jobs(count=3, gate="three")
    victim, *_ = fresh_crew.start_workers("a", "b", "c")
    runs = {fresh_crew.wait_for_run(job).worker: job for job in jobs}
    lost = runs.pop("a")
    victim.kill()
    fresh_crew.expire(lost)
    assert fresh_crew.wait_for_state(lost, "RETRY", "QUEUED")["retry_count"] == 1
    assert fresh_crew.states([*runs.values()]) == {"RUNNING": 2}
    fresh_crew.stage.open("three")
    assert fresh_crew.wait_until_ended() == {"SUCCESS": 3}
    for job in runs.values():
        assert (fresh_crew.stage.attempts(job), fresh_crew.stage.attempts(job, STOPPED)) == ([1], [])
    assert [run.worker for run in fresh_crew.stage.runs(BEGUN, [lost])][1:] in (["b"], ["c"])


@pytest.mark.req("ORC-001", "ORC-003", "ORC-009", "ORC-013", "ORC-163", "ORC-157", "ORC-012")
def test_all_state_is_in_the_database(fresh_crew: Crew) -> None:
    """All processes are killed during 50 jobs; new ones end every one of them, and none is lost."""
    api = fresh_crew.add("api", CREATED_GRACE_SECONDS="0.1")
    jobs = [submit(api.http, "act", {"gate": "fifty"}) for _ in range(50)]
    assert fresh_crew.states() == {"QUEUED": 50}, "an answer waits for no worker"
    workers = fresh_crew.start_workers("a", "b", **BRIEF, WORKER_CONCURRENCY="5")
    wait_until(lambda: len(fresh_crew.stage.runs(BEGUN)), "ten have begun", lambda seen: seen >= 10)
    for node in (api, *workers):
        node.kill()
    created = fresh_crew.insert_jobs(state="CREATED")[0]
    stored = {str(row["job_id"]) for row in fresh_crew.sql.rows("SELECT job_id FROM jobs")}
    assert stored == {*jobs, created}
    fresh_crew.stage.open("fifty")
    start_all(workers)
    assert fresh_crew.wait_until_ended(jobs) == {"SUCCESS": 50}
    assert fresh_crew.sql.job(created)["state"] == "CREATED", "only the API queues it"
    assert submit(api.start().http, "act", {}, key=created) == created
    assert wait_until_final(api.http, created) == "COMPLETED"
    assert fresh_crew.sql.count() == 51


@pytest.mark.req("ORC-002", "ORC-018", "ORC-020")
def test_states_survive_a_redeploy(fresh_crew: Crew) -> None:
    """With rows in all six states everything is restarted: ids stay, and each continues by legal edges."""
    created, queued, running, retry, dead, ended_job = fresh_crew.insert_jobs(count=6, state="CREATED")
    fresh_crew.transition(queued, "QUEUED")
    fresh_crew.transition(running, "QUEUED", "RUNNING")
    fresh_crew.transition(retry, "QUEUED", "RUNNING", "RETRY", wait="1 hour")
    fresh_crew.transition(dead, "QUEUED", "RUNNING", "RETRY", "DEAD")
    fresh_crew.transition(ended_job, "QUEUED", "RUNNING", "SUCCESS")
    unchanged = (created, running, retry, dead, ended_job)
    before = [fresh_crew.sql.job(job) for job in unchanged]
    (node,) = fresh_crew.start_workers("old", **LONG_LEASES)
    fresh_crew.wait_for_state(queued, "SUCCESS")
    assert node.stop() == 0
    node.start()
    fresh_crew.wait_for_state(fresh_crew.insert_job(), "SUCCESS")
    assert [fresh_crew.sql.job(job) for job in unchanged] == before
    fresh_crew.expire(running)
    fresh_crew.sql.run("UPDATE jobs SET next_attempt_at = clock_timestamp() WHERE state = 'RETRY'")
    fresh_crew.add("api", CREATED_GRACE_SECONDS="0.1")
    assert fresh_crew.wait_until_ended() == {"SUCCESS": 6, "DEAD": 1}
    assert fresh_crew.sql.job(dead)["state"] == "DEAD"
    assert fresh_crew.stage.runs(BEGUN, [dead, ended_job]) == []


@pytest.mark.req("ORC-X06", "ORC-127")
def test_a_worker_that_is_stopped_finishes_its_job(fresh_crew: Crew) -> None:
    """The run ends, its outcome is written, nothing else is claimed, and the exit code is 0."""
    job = fresh_crew.insert_job(gate="orderly")
    (node,) = fresh_crew.start_workers("orderly", SHUTDOWN_GRACE_SECONDS="20")
    fresh_crew.wait_for_run(job)
    waits = fresh_crew.insert_job()
    node.signal(signal.SIGTERM)
    wait_for_lines(node, "service_stopping")
    fresh_crew.stage.open("orderly")
    assert wait_for_exit(node) == 0
    assert fresh_crew.sql.job(job)["state"] == "SUCCESS"
    assert fresh_crew.sql.job(waits)["state"] == "QUEUED"
    assert node.lines()[-1]["event"] == "service_stopped"


@pytest.mark.req("ORC-X06", "ORC-038", "ORC-046")
def test_a_shutdown_does_not_count_as_a_failure(fresh_crew: Crew) -> None:
    """No retry is counted, the history has every stop, and the job succeeds in the end."""
    job, stops = fresh_crew.insert_job(gate="deployed"), 4
    (node,) = fresh_crew.start_workers(
        "deployed", SHUTDOWN_GRACE_SECONDS="0", MAX_RETRIES="1", LEASE_SECONDS="600"
    )
    for attempt in range(1, stops + 1):
        fresh_crew.wait_for_run(job, attempt)
        assert node.stop() == 0
        row = fresh_crew.sql.job(job)
        # The node has a scheduler too, which may have queued it again before it ended.
        assert row["state"] in ("RETRY", "QUEUED") and (row["retry_count"], row["attempt"]) == (0, attempt)
        node.begin()
    fresh_crew.wait_for_run(job, stops + 1)
    fresh_crew.stage.open("deployed")
    row = fresh_crew.wait_for_state(job, "SUCCESS")
    assert (row["retry_count"], row["attempt"]) == (0, stops + 1)
    edges = [each["edge"] for each in fresh_crew.sql.history(job)]
    assert edges[2:] == [*["acquire", "release", "requeue"] * stops, "acquire", "complete"]


@pytest.mark.req("ORC-X06")
@pytest.mark.parametrize("grace", ["0", "0.3"])
def test_a_job_that_outlasts_the_grace_is_released(fresh_crew: Crew, grace: str) -> None:
    """It is stopped and waits in RETRY, at once and not after its lease; another worker runs it."""
    jobs = fresh_crew.insert_jobs(count=2, gate="given back")
    (node,) = fresh_crew.start_workers(
        "hurried",
        SHUTDOWN_GRACE_SECONDS=grace,
        WORKER_CONCURRENCY="2",
        # Its own scheduler would queue them again, maybe before it has ended.
        SCHEDULER_INTERVAL_SECONDS="3600",
    )
    wait_until(
        lambda: read_metric(node, "charter_sweep_last_run_seconds", entity="job", change="requeue"),
        "the scheduler has looked for the first time, and will not look again",
    )
    for job in jobs:
        fresh_crew.wait_for_run(job)
    assert node.stop() == 0
    for job in jobs:
        row = fresh_crew.sql.job(job)
        assert (row["state"], row["retry_count"], row["last_error"]) == ("RETRY", 0, "GIVEN_BACK")
        assert fresh_crew.stage.attempts(job, STOPPED) == [1]
    wait_for_lines(node, "service_stopped")
    fresh_crew.stage.open("given back")
    fresh_crew.start_workers("heir")
    assert fresh_crew.wait_until_ended() == {"SUCCESS": 2}
