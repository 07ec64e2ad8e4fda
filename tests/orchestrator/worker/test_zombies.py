"""Workers that lose their leases: stopped ones that resume, ones with wrong clocks, slow ones."""

from __future__ import annotations

import signal

import pytest

from tests.support.chaos import Chaos
from tests.support.orchestrator.stack import submit, wait_until
from tests.support.orchestrator.stage import BEGUN, ENDED, STOPPED
from tests.support.orchestrator.staged_node import CLOCK_OFFSET
from tests.support.orchestrator.worker_processes import (
    Crew,
    lines,
    read_metric,
    start_all,
    wait_for_lines,
    wait_for_metric,
)


@pytest.mark.chaos
@pytest.mark.req("ORC-123", "ORC-153", "ORC-155", "ORC-106", "ORC-108")
def test_a_worker_that_was_stopped_past_its_lease_writes_nothing(fresh_crew: Crew, chaos: Chaos) -> None:
    """Another has run its jobs meanwhile. Whether its own runs ended or not, no outcome of them is stored."""
    (zombie,) = fresh_crew.start_workers("zombie", WORKER_CONCURRENCY="2")
    (other,) = fresh_crew.start_workers("other", WORKER_CONCURRENCY="2")
    lost = 0
    for number, _ in enumerate(chaos.rounds(2)):
        other.signal(signal.SIGSTOP)
        jobs = fresh_crew.insert_jobs(count=2, gate=f"round {number}")
        for job in jobs:
            assert fresh_crew.wait_for_run(job).worker == "zombie"
        zombie.signal(signal.SIGSTOP)
        for job in jobs:
            fresh_crew.expire(job)
        other.signal(signal.SIGCONT)
        fresh_crew.stage.open(f"round {number}")
        assert fresh_crew.wait_until_ended(jobs) == {"SUCCESS": 2}
        before = [fresh_crew.sql.job(job) for job in jobs]
        zombie.signal(signal.SIGCONT)
        for job in jobs:
            wait_for_lines(zombie, "lease_lost", job_id=job, attempt=1, worker_id="zombie")
        assert [fresh_crew.sql.job(job) for job in jobs] == before
        for job, row in zip(jobs, before, strict=True):
            assert fresh_crew.path(job) == [
                "CREATED",
                "QUEUED",
                "RUNNING",
                "RETRY",
                "QUEUED",
                "RUNNING",
                "SUCCESS",
            ]
            assert row["result"]["attempt"] == 2
            assert [run.worker for run in fresh_crew.stage.runs(BEGUN, [job])] == ["zombie", "other"]
        lost += len(jobs)
    wait_until(
        lambda: read_metric(zombie, "charter_leases_lost_total", entity="job"),
        "all losses are counted",
        lambda seen: seen >= lost,
    )
    wait_for_metric(other, lost, "charter_leases_expired_total", entity="job")
    chaos.count(leases_lost=lost, written_without_lease=0)


@pytest.mark.req("ORC-136", "ORC-016", "ORC-017", "ORC-X10")
def test_a_worker_that_has_lost_a_lease_stops_the_run(fresh_crew: Crew) -> None:
    """The function is canceled, the lost lease is logged, and the outcome of the next run counts."""
    (node,) = fresh_crew.start_workers("careful")
    job, stubborn = fresh_crew.insert_job(gate="lost"), ""
    fresh_crew.wait_for_run(job)
    fresh_crew.expire(job)
    wait_until(
        lambda: fresh_crew.stage.attempts(job, STOPPED), "the run is stopped", lambda seen: seen == [1]
    )
    wait_for_lines(node, "lease_lost", job_id=job, attempt=1, worker_id="careful")
    fresh_crew.stage.open("lost")
    assert fresh_crew.wait_for_state(job, "SUCCESS")["attempt"] == 2
    assert [row["actor"] for row in fresh_crew.sql.history(job)][3:5] == ["reaper", "scheduler"]
    assert fresh_crew.stage.attempts(job, ENDED) == [2]
    stubborn = fresh_crew.insert_job("stubborn", gate="no end")
    fresh_crew.wait_for_run(stubborn)
    fresh_crew.expire(stubborn)
    wait_until(lambda: fresh_crew.stage.attempts(stubborn, STOPPED), "it was canceled")
    assert fresh_crew.wait_for_state(stubborn, "RETRY", "QUEUED")["retry_count"] == 1
    fresh_crew.stage.open("no end")
    assert fresh_crew.wait_for_state(stubborn, "SUCCESS")["attempt"] == 2
    assert fresh_crew.stage.attempts(stubborn, ENDED) == [1, 2], (
        "it came to its end, and its outcome was dropped"
    )
    wait_for_lines(node, "lease_lost", job_id=stubborn, attempt=1)


@pytest.mark.req("ORC-121", "ORC-034")
def test_the_lease_of_a_long_run_is_renewed(fresh_crew: Crew) -> None:
    """It is renewed beyond its first expiry; the row has no other change, and it is run once."""
    fresh_crew.start_workers("patient", LEASE_SECONDS="6")
    job = fresh_crew.insert_job(gate="long")
    fresh_crew.wait_for_run(job)
    past = "SELECT clock_timestamp() > min(lease_expiry) + interval '0.5 s' FROM versions WHERE job_id = "
    wait_until(lambda: fresh_crew.sql.value(f"{past}'{job}'"), "the first lease would be over")
    assert fresh_crew.sql.job(job)["state"] == "RUNNING"
    fresh_crew.stage.open("long")
    fresh_crew.wait_for_state(job, "SUCCESS")
    running = [row for row in fresh_crew.versions(job) if row["state"] == "RUNNING"]
    assert len(running) > 3 and len({row["updated_at"] for row in running}) == 1
    assert [row["lease_expiry"] for row in running] == sorted({row["lease_expiry"] for row in running})
    assert fresh_crew.stage.attempts(job) == [1]


@pytest.mark.req("ORC-017", "ORC-140", "ORC-138")
def test_an_expired_lease_is_claimed_again(fresh_crew: Crew) -> None:
    """A worker that died between claim and run has not released its lease: the job is run by another."""
    (job,) = fresh_crew.insert_jobs(state="CREATED")
    fresh_crew.transition(job, "QUEUED", "RUNNING")
    (node,) = fresh_crew.start_workers("heir")
    assert fresh_crew.wait_for_state(job, "RUNNING")["lease_owner"] == "nobody"
    fresh_crew.expire(job)
    row = fresh_crew.wait_for_state(job, "SUCCESS")
    assert (row["retry_count"], row["last_error"]) == (1, "LEASE_EXPIRED")
    assert fresh_crew.stage.attempts(job) == [2]
    (waits,) = [each for each in fresh_crew.versions(job) if each["state"] == "RETRY"]
    assert (waits["next_attempt_at"] - waits["updated_at"]).total_seconds() == 0.05
    wait_for_metric(node, 1, "charter_leases_expired_total", entity="job")


@pytest.mark.req("ORC-107")
def test_wrong_clocks_change_nothing(fresh_crew: Crew) -> None:
    """An API and workers hours ahead and behind: one run a job, renewed leases, times of the database."""
    api = fresh_crew.add("api", program="tests.support.orchestrator.staged_node", **{CLOCK_OFFSET: "18000"})
    ahead, behind = (
        fresh_crew.make_worker("ahead", **{CLOCK_OFFSET: "10800"}),
        fresh_crew.make_worker("behind", **{CLOCK_OFFSET: "-10800"}),
    )
    start_all([ahead, behind])
    before = fresh_crew.sql.value("SELECT clock_timestamp()")
    jobs = [submit(api.http, "act", {"gate": "clocks"}) for _ in range(2)]
    after = fresh_crew.sql.value("SELECT clock_timestamp()")
    for job in jobs:
        fresh_crew.wait_for_run(job)
    assert all(before < fresh_crew.sql.job(job)["created_at"] < after for job in jobs)
    assert {run.worker for run in fresh_crew.stage.runs(BEGUN)} == {"ahead", "behind"}
    # A lease of 60 s ends so late only because it was renewed.
    renewed = "SELECT bool_and(lease_expiry > updated_at + interval '61.5 s') FROM jobs"
    wait_until(lambda: fresh_crew.sql.value(renewed), "both leases were renewed again and again")
    assert fresh_crew.states() == {"RUNNING": 2}
    fresh_crew.stage.open("clocks")
    more = [submit(api.http, "act", {"fail": [1]}) for _ in range(6)]
    assert fresh_crew.wait_until_ended() == {"SUCCESS": 8}
    assert all(fresh_crew.stage.attempts(job) == [1] for job in jobs)
    assert all(fresh_crew.stage.attempts(job) == [1, 2] for job in more)
    now = fresh_crew.sql.value("SELECT extract(epoch FROM clock_timestamp())")
    (by_one,), (by_other,) = (fresh_crew.stage.runs(BEGUN, [job]) for job in jobs)
    jobs_by_worker = {by_one.worker: jobs[0], by_other.worker: jobs[1]}
    for node, name, skew in ((ahead, "ahead", 10800), (behind, "behind", -10800)):
        completions = wait_for_lines(node, "transition", job_id=jobs_by_worker[name], transition="complete")
        assert lines(node, "lease_lost") == []
        written = completions[-1]["ts_ms"] / 1000
        assert abs(written - skew - float(now)) < 600, "the clock of the process was wrong indeed"
