"""Processes that die at the worst moment. What is in the database is all that the others need."""

from __future__ import annotations

import signal

import pytest

from tests.support.orchestrator.stack import final, submit, wait_until
from tests.support.orchestrator.stage import BEGUN, ENDED, STOPPED
from tests.support.orchestrator.worker_processes import BRIEF, CALM, Crew, gone, measured, ready, told


@pytest.mark.req("ORC-139", "ORC-108", "ORC-004", "ORC-158", "ORC-138", "ORC-152", "ORC-156")
@pytest.mark.parametrize(("moment", "ended"), [("die", [2]), ("die_late", [1, 2])])
def test_the_job_of_a_worker_that_died_is_run_again(lone: Crew, moment: str, ended: list[int]) -> None:
    """Killed in mid-run or just before it wrote: the job has a second run elsewhere, and succeeds."""
    (victim,) = lone.work("victim")
    job = lone.one(**{moment: [1]})
    gone(victim)
    assert lone.sql.job(job)["state"] == "RUNNING", "a crash tells nobody"
    lone.expire(job)
    lone.work("heir")
    row = lone.until(job, "SUCCESS")
    assert (row["attempt"], row["retry_count"], row["last_error"]) == (2, 1, "LEASE_EXPIRED")
    assert [run.worker for run in lone.stage.runs(BEGUN, [job])] == ["victim", "heir"]
    assert lone.stage.attempts(job, ENDED) == ended


@pytest.mark.req("ORC-141", "ORC-026")
def test_a_job_that_kills_every_worker_dies_out(lone: Crew) -> None:
    """Each loss counts as a failure, so it is dead after the limit, and the next worker lives."""
    (node,) = lone.work("unlucky", MAX_RETRIES="1")
    job = lone.one(die=True)
    for _ in range(2):
        gone(node)
        lone.expire(job)
        node.begin()
    row = lone.until(job, "DEAD")
    assert (row["retry_count"], row["attempt"]) == (2, 2)
    assert lone.stage.attempts(job) == [1, 2]
    assert lone.path(job)[-3:] == ["RUNNING", "RETRY", "DEAD"]
    *_, last, end = lone.sql.history(job)
    assert (last["actor"], end["actor"], last["txid"] == end["txid"]) == ("reaper", "reaper", True)
    lone.until(lone.one(), "SUCCESS")
    assert node.running


@pytest.mark.req("ORC-007")
def test_one_loss_disturbs_nobody_else(lone: Crew) -> None:
    """Of three busy workers one is killed: the runs of the others go on, and one of them takes its job."""
    jobs = lone.put(count=3, gate="three")
    victim, *_ = lone.work("a", "b", "c")
    runs = {lone.begun(job).worker: job for job in jobs}
    lost = runs.pop("a")
    victim.kill()
    lone.expire(lost)
    assert lone.until(lost, "RETRY", "QUEUED")["retry_count"] == 1
    assert lone.states([*runs.values()]) == {"RUNNING": 2}
    lone.stage.open("three")
    assert lone.ended() == {"SUCCESS": 3}
    for job in runs.values():
        assert (lone.stage.attempts(job), lone.stage.attempts(job, STOPPED)) == ([1], [])
    assert [run.worker for run in lone.stage.runs(BEGUN, [lost])][1:] in (["b"], ["c"])


@pytest.mark.req("ORC-001", "ORC-003", "ORC-009", "ORC-013", "ORC-163", "ORC-157", "ORC-012")
def test_everything_is_in_the_database(lone: Crew) -> None:
    """All processes are killed over 50 jobs in hand; new ones end every one of them, and none is gone."""
    api = lone.add("api", CREATED_GRACE_SECONDS="0.1")
    jobs = [submit(api.http, "act", {"gate": "fifty"}) for _ in range(50)]
    assert lone.states() == {"QUEUED": 50}, "an answer waits for no worker"
    workers = lone.work("a", "b", **BRIEF, WORKER_CONCURRENCY="5")
    wait_until(lambda: len(lone.stage.runs(BEGUN)), "ten have begun", lambda seen: seen >= 10)
    for node in (api, *workers):
        node.kill()
    left = lone.put(state="CREATED")[0]
    kept = {str(row["job_id"]) for row in lone.sql.rows("SELECT job_id FROM jobs")}
    assert kept == {*jobs, left}
    lone.stage.open("fifty")
    ready(workers)
    assert lone.ended(jobs) == {"SUCCESS": 50}
    assert lone.sql.job(left)["state"] == "CREATED", "only the API moves it"
    assert submit(api.start().http, "act", {}, key=left) == left
    assert final(api.http, left) == "COMPLETED"
    assert lone.sql.count() == 51


@pytest.mark.req("ORC-002", "ORC-018", "ORC-020")
def test_states_survive_a_redeploy(lone: Crew) -> None:
    """With rows in all six states everything is stopped and started: ids stay, and each goes on legally."""
    created, queued, running, retry, dead, done = lone.put(count=6, state="CREATED")
    lone.bring(queued, "QUEUED")
    lone.bring(running, "QUEUED", "RUNNING")
    lone.bring(retry, "QUEUED", "RUNNING", "RETRY", wait="1 hour")
    lone.bring(dead, "QUEUED", "RUNNING", "RETRY", "DEAD")
    lone.bring(done, "QUEUED", "RUNNING", "SUCCESS")
    kept = (created, running, retry, dead, done)
    before = [lone.sql.job(job) for job in kept]
    (node,) = lone.work("old", **CALM)
    lone.until(queued, "SUCCESS")
    assert node.stop() == 0
    node.start()
    lone.until(lone.one(), "SUCCESS")
    assert [lone.sql.job(job) for job in kept] == before
    lone.expire(running)
    lone.sql.run("UPDATE jobs SET next_attempt_at = clock_timestamp() WHERE state = 'RETRY'")
    lone.add("api", CREATED_GRACE_SECONDS="0.1")
    assert lone.ended() == {"SUCCESS": 6, "DEAD": 1}
    assert lone.sql.job(dead)["state"] == "DEAD"
    assert lone.stage.runs(BEGUN, [dead, done]) == []


@pytest.mark.req("ORC-X06", "ORC-127")
def test_a_worker_that_is_asked_to_stop_finishes_what_it_has(lone: Crew) -> None:
    """The run comes to its end, its outcome is written, nothing else is taken, and the exit code is 0."""
    job = lone.one(gate="orderly")
    (node,) = lone.work("orderly", SHUTDOWN_GRACE_SECONDS="20")
    lone.begun(job)
    waits = lone.one()
    node.signal(signal.SIGTERM)
    told(node, "service_stopping")
    lone.stage.open("orderly")
    assert gone(node) == 0
    assert lone.sql.job(job)["state"] == "SUCCESS"
    assert lone.sql.job(waits)["state"] == "QUEUED"
    assert node.lines()[-1]["event"] == "service_stopped"


@pytest.mark.req("ORC-X06", "ORC-038", "ORC-046")
def test_more_stops_than_retries_end_no_job(lone: Crew) -> None:
    """Being stopped is no failure: nothing counts, the history has every stop, and the job ends well."""
    job, stops = lone.one(gate="deployed"), 4
    (node,) = lone.work("deployed", SHUTDOWN_GRACE_SECONDS="0", MAX_RETRIES="1", LEASE_SECONDS="600")
    for attempt in range(1, stops + 1):
        lone.begun(job, attempt)
        assert node.stop() == 0
        row = lone.sql.job(job)
        # The node has a scheduler too, which may have queued it again before it ended.
        assert row["state"] in ("RETRY", "QUEUED") and (row["retry_count"], row["attempt"]) == (0, attempt)
        node.begin()
    lone.begun(job, stops + 1)
    lone.stage.open("deployed")
    row = lone.until(job, "SUCCESS")
    assert (row["retry_count"], row["attempt"]) == (0, stops + 1)
    edges = [each["edge"] for each in lone.sql.history(job)]
    assert edges[2:] == [*["acquire", "release", "requeue"] * stops, "acquire", "complete"]


@pytest.mark.req("ORC-X06")
@pytest.mark.parametrize("grace", ["0", "0.3"])
def test_what_does_not_end_within_the_grace_is_given_back(lone: Crew, grace: str) -> None:
    """It is stopped and waits in RETRY, at once and not after its lease; another worker runs it."""
    jobs = lone.put(count=2, gate="given back")
    (node,) = lone.work(
        "hurried",
        SHUTDOWN_GRACE_SECONDS=grace,
        WORKER_CONCURRENCY="2",
        # Its own scheduler would queue them again, maybe before it has ended.
        SCHEDULER_INTERVAL_SECONDS="3600",
    )
    wait_until(
        lambda: measured(node, "charter_sweep_last_run_seconds", entity="job", change="requeue"),
        "the scheduler has looked for the first time, and will not look again",
    )
    for job in jobs:
        lone.begun(job)
    assert node.stop() == 0
    for job in jobs:
        row = lone.sql.job(job)
        assert (row["state"], row["retry_count"], row["last_error"]) == ("RETRY", 0, "GIVEN_BACK")
        assert lone.stage.attempts(job, STOPPED) == [1]
    told(node, "service_stopped")
    lone.stage.open("given back")
    lone.work("heir")
    assert lone.ended() == {"SUCCESS": 2}
