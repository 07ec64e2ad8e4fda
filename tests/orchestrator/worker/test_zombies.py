"""Workers that lose their leases: stopped ones that come back, ones with wrong clocks, ones that are slow."""

from __future__ import annotations

import signal

import pytest

from tests.support.chaos import Chaos
from tests.support.orchestrator.stack import submit, wait_until
from tests.support.orchestrator.stage import BEGUN, ENDED, STOPPED
from tests.support.orchestrator.staged_node import SHIFT
from tests.support.orchestrator.worker_processes import Crew, counted, lines, measured, ready, told


@pytest.mark.chaos
@pytest.mark.req("ORC-123", "ORC-153", "ORC-155", "ORC-106", "ORC-108")
def test_a_worker_that_was_stopped_past_its_lease_writes_nothing(lone: Crew, chaos: Chaos) -> None:
    """Another has run its jobs meanwhile. Whether its own runs ended or not, nothing of theirs is stored."""
    (zombie,) = lone.work("zombie", WORKER_CONCURRENCY="2")
    (other,) = lone.work("other", WORKER_CONCURRENCY="2")
    lost = 0
    for number, _ in enumerate(chaos.rounds(2)):
        other.signal(signal.SIGSTOP)
        jobs = lone.put(count=2, gate=f"round {number}")
        for job in jobs:
            assert lone.begun(job).worker == "zombie"
        zombie.signal(signal.SIGSTOP)
        for job in jobs:
            lone.expire(job)
        other.signal(signal.SIGCONT)
        lone.stage.open(f"round {number}")
        assert lone.ended(jobs) == {"SUCCESS": 2}
        before = [lone.sql.job(job) for job in jobs]
        zombie.signal(signal.SIGCONT)
        for job in jobs:
            told(zombie, "lease_lost", job_id=job, attempt=1, worker_id="zombie")
        assert [lone.sql.job(job) for job in jobs] == before
        for job, row in zip(jobs, before, strict=True):
            assert lone.path(job) == ["CREATED", "QUEUED", "RUNNING", "RETRY", "QUEUED", "RUNNING", "SUCCESS"]
            assert row["result"]["attempt"] == 2
            assert [run.worker for run in lone.stage.runs(BEGUN, [job])] == ["zombie", "other"]
        lost += len(jobs)
    wait_until(
        lambda: measured(zombie, "charter_leases_lost_total", entity="job"),
        "all losses are counted",
        lambda seen: seen >= lost,
    )
    counted(other, lost, "charter_leases_expired_total", entity="job")
    chaos.count(leases_lost=lost, written_without_lease=0)


@pytest.mark.req("ORC-136", "ORC-016", "ORC-017", "ORC-X10")
def test_a_worker_that_has_lost_a_lease_stops_the_run(lone: Crew) -> None:
    """The function is told to stop, the log tells of the loss, and the next run has the word."""
    (node,) = lone.work("careful")
    job, stubborn = lone.one(gate="lost"), ""
    lone.begun(job)
    lone.expire(job)
    wait_until(lambda: lone.stage.attempts(job, STOPPED), "the run is stopped", lambda seen: seen == [1])
    told(node, "lease_lost", job_id=job, attempt=1, worker_id="careful")
    lone.stage.open("lost")
    assert lone.until(job, "SUCCESS")["attempt"] == 2
    assert [row["actor"] for row in lone.sql.history(job)][3:5] == ["reaper", "scheduler"]
    assert lone.stage.attempts(job, ENDED) == [2]
    stubborn = lone.one("stubborn", gate="no end")
    lone.begun(stubborn)
    lone.expire(stubborn)
    wait_until(lambda: lone.stage.attempts(stubborn, STOPPED), "it was told to stop")
    assert lone.until(stubborn, "RETRY", "QUEUED")["retry_count"] == 1
    lone.stage.open("no end")
    assert lone.until(stubborn, "SUCCESS")["attempt"] == 2
    assert lone.stage.attempts(stubborn, ENDED) == [1, 2], "it came to its end, and nobody believed it"
    told(node, "lease_lost", job_id=stubborn, attempt=1)


@pytest.mark.req("ORC-121", "ORC-034")
def test_a_long_run_keeps_its_lease(lone: Crew) -> None:
    """It is renewed beyond its first lease; the row shows no other sign of change, and it is run once."""
    lone.work("patient", LEASE_SECONDS="15")
    job = lone.one(gate="long")
    lone.begun(job)
    past = "SELECT clock_timestamp() > min(lease_expiry) + interval '0.5 s' FROM versions WHERE job_id = "
    wait_until(lambda: lone.sql.value(f"{past}'{job}'"), "the first lease would be over")
    assert lone.sql.job(job)["state"] == "RUNNING"
    lone.stage.open("long")
    lone.until(job, "SUCCESS")
    running = [row for row in lone.versions(job) if row["state"] == "RUNNING"]
    assert len(running) > 3 and len({row["updated_at"] for row in running}) == 1
    assert [row["lease_expiry"] for row in running] == sorted({row["lease_expiry"] for row in running})
    assert lone.stage.attempts(job) == [1]


@pytest.mark.req("ORC-017", "ORC-140", "ORC-138")
def test_a_lease_that_nobody_keeps_is_taken_back(lone: Crew) -> None:
    """A worker that died before it began to run has left a lease behind: the job is run by another."""
    (job,) = lone.put(state="CREATED")
    lone.bring(job, "QUEUED", "RUNNING")
    (node,) = lone.work("heir")
    assert lone.until(job, "RUNNING")["lease_owner"] == "nobody"
    lone.expire(job)
    row = lone.until(job, "SUCCESS")
    assert (row["retry_count"], row["last_error"]) == (1, "LEASE_EXPIRED")
    assert lone.stage.attempts(job) == [2]
    (waits,) = [each for each in lone.versions(job) if each["state"] == "RETRY"]
    assert (waits["next_attempt_at"] - waits["updated_at"]).total_seconds() == 0.05
    counted(node, 1, "charter_leases_expired_total", entity="job")


@pytest.mark.req("ORC-107")
def test_wrong_clocks_change_nothing(lone: Crew) -> None:
    """An API and workers hours ahead and behind: one run a job, kept leases, times of the database."""
    api = lone.add("api", program="tests.support.orchestrator.staged_node", **{SHIFT: "18000"})
    ahead, behind = (
        lone.hand("ahead", **{SHIFT: "10800"}),
        lone.hand("behind", **{SHIFT: "-10800"}),
    )
    ready([ahead, behind])
    before = lone.sql.value("SELECT clock_timestamp()")
    jobs = [submit(api.http, "act", {"gate": "clocks"}) for _ in range(2)]
    after = lone.sql.value("SELECT clock_timestamp()")
    for job in jobs:
        lone.begun(job)
    assert all(before < lone.sql.job(job)["created_at"] < after for job in jobs)
    assert {run.worker for run in lone.stage.runs(BEGUN)} == {"ahead", "behind"}
    # A lease of 60 s ends so late only because it was renewed.
    kept = "SELECT bool_and(lease_expiry > updated_at + interval '64 s') FROM jobs"
    wait_until(lambda: lone.sql.value(kept), "both leases were renewed again and again")
    assert lone.states() == {"RUNNING": 2}
    lone.stage.open("clocks")
    more = [submit(api.http, "act", {"fail": [1]}) for _ in range(6)]
    assert lone.ended() == {"SUCCESS": 8}
    assert all(lone.stage.attempts(job) == [1] for job in jobs)
    assert all(lone.stage.attempts(job) == [1, 2] for job in more)
    now = lone.sql.value("SELECT extract(epoch FROM clock_timestamp())")
    (by_one,), (by_other,) = (lone.stage.runs(BEGUN, [job]) for job in jobs)
    held = {by_one.worker: jobs[0], by_other.worker: jobs[1]}
    for node, name, shift in ((ahead, "ahead", 10800), (behind, "behind", -10800)):
        done = told(node, "transition", job_id=held[name], transition="complete")
        assert lines(node, "lease_lost") == []
        written = done[-1]["ts_ms"] / 1000
        assert abs(written - shift - float(now)) < 600, "the clock of the process was wrong indeed"
