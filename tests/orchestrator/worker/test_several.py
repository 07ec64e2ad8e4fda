"""Several slots and several workers: each has its own job, and none delays another."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.orchestrator.stack import wait_until
from tests.support.orchestrator.stage import BEGUN
from tests.support.orchestrator.worker_processes import LONG_LEASES, Crew


@pytest.mark.req("ORC-134")
def test_a_worker_runs_one_job_in_each_slot(fresh_crew: Crew) -> None:
    """With four slots four of ten jobs run, and the others wait until one of those has ended."""
    jobs = fresh_crew.insert_jobs(count=10, gate="ten")
    fresh_crew.start_workers("four", **LONG_LEASES, WORKER_CONCURRENCY="4")
    wait_until(lambda: len(fresh_crew.stage.runs(BEGUN)), "four have begun", lambda seen: seen == 4)
    assert fresh_crew.states(jobs) == {"RUNNING": 4, "QUEUED": 6}
    fresh_crew.stage.open("ten")
    assert fresh_crew.wait_until_ended(jobs) == {"SUCCESS": 10}
    assert sorted(run.job_id for run in fresh_crew.stage.runs(BEGUN)) == sorted(jobs)


@pytest.mark.req("ORC-126", "ORC-120", "ORC-014", "ORC-160", "ORC-161")
def test_workers_without_names_get_unique_ones(fresh_crew: Crew) -> None:
    """Four unnamed workers have four names, and four jobs run at once where one worker would run one."""
    jobs = fresh_crew.insert_jobs(count=8, gate="eight")
    nodes = fresh_crew.start_workers("", "", "", "", **LONG_LEASES)
    wait_until(lambda: len(fresh_crew.stage.runs(BEGUN)), "four have begun", lambda seen: seen == 4)
    text = "SELECT DISTINCT lease_owner FROM jobs WHERE state = 'RUNNING'"
    owners = {row["lease_owner"] for row in fresh_crew.sql.rows(text)}
    assert len(owners) == 4
    assert all(any(f"-{node.pid}-" in owner for owner in owners) for node in nodes)
    fresh_crew.stage.open("eight")
    assert fresh_crew.wait_until_ended(jobs) == {"SUCCESS": 8}
    sessions = "SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = current_database()"
    assert {row["application_name"] for row in fresh_crew.sql.rows(sessions)} == {"", "orchestrator worker"}


@pytest.mark.req("ORC-014", "ORC-006")
def test_a_job_is_bound_to_no_worker(fresh_crew: Crew) -> None:
    """A job that failed on one worker is claimed by another, with the same id and the next attempt."""
    job = fresh_crew.insert_job(fail=[1])
    (first,) = fresh_crew.start_workers(
        "first", **LONG_LEASES, BACKOFF_BASE_SECONDS="60", BACKOFF_MAX_SECONDS="60"
    )
    assert fresh_crew.wait_for_state(job, "RETRY")["retry_count"] == 1
    assert first.stop() == 0
    fresh_crew.sql.run("UPDATE jobs SET next_attempt_at = clock_timestamp()")
    fresh_crew.start_workers("second", **LONG_LEASES)
    fresh_crew.wait_for_state(job, "SUCCESS")
    runs = fresh_crew.stage.runs(BEGUN, [job])
    assert [(run.worker, run.attempt) for run in runs] == [("first", 1), ("second", 2)]


@pytest.mark.req("ORC-151", "ORC-150")
def test_a_lowered_limit_applies_to_waiting_jobs(fresh_crew: Crew) -> None:
    """A job that waits with two failures is dead under a limit of one, without another run."""
    over, within = fresh_crew.insert_jobs(count=2, state="CREATED")
    fresh_crew.transition(over, "QUEUED", "RUNNING", "RETRY", "QUEUED", "RUNNING", "RETRY", wait="1 hour")
    fresh_crew.transition(within, "QUEUED", "RUNNING", "RETRY", wait="1 hour")
    fresh_crew.sql.run("UPDATE jobs SET next_attempt_at = clock_timestamp()")
    fresh_crew.start_workers("strict", **LONG_LEASES, MAX_RETRIES="1")
    assert fresh_crew.wait_for_state(over, "DEAD")["retry_count"] == 2
    fresh_crew.wait_for_state(within, "SUCCESS")
    assert fresh_crew.stage.runs(BEGUN, [over]) == []
    assert [row["actor"] for row in fresh_crew.sql.history(over)][-1] == "scheduler"


@pytest.mark.req("ORC-149")
def test_without_retries_one_failure_is_final(fresh_crew: Crew) -> None:
    """A limit of 0 means one run."""
    job = fresh_crew.insert_job(fail=True)
    fresh_crew.start_workers("once", **LONG_LEASES, MAX_RETRIES="0")
    assert fresh_crew.wait_for_state(job, "DEAD")["retry_count"] == 1
    assert fresh_crew.stage.attempts(job) == [1]


def wait_for_failures(crew: Crew, job: str, count: int) -> dict[str, Any]:
    """The row of a job as it was when it began to wait after so many failures; it may be older than now."""

    def look() -> list[dict[str, Any]]:
        return [row for row in crew.versions(job) if (row["state"], row["retry_count"]) == ("RETRY", count)]

    return wait_until(look, f"it has failed {count} times")[0]


@pytest.mark.req("ORC-X01", "ORC-148", "ORC-150")
def test_a_job_type_may_have_a_retry_policy_of_its_own(fresh_crew: Crew) -> None:
    """SEND_EMAIL is tried five times more and waits from 10 s on, failed or lost, unlike others."""
    failing, other = fresh_crew.insert_job("SEND_EMAIL"), fresh_crew.insert_job("of no known type")
    (lost,) = fresh_crew.insert_jobs("SEND_EMAIL", state="CREATED")
    fresh_crew.transition(lost, "QUEUED", "RUNNING")
    fresh_crew.expire(lost)
    fresh_crew.start_workers("lenient", **LONG_LEASES, MAX_RETRIES="1", BACKOFF_MAX_SECONDS="60")
    assert fresh_crew.wait_for_state(other, "DEAD")["retry_count"] == 2
    for job in (failing, lost):
        for count in range(1, 6):
            row = wait_for_failures(fresh_crew, job, count)
            assert (row["next_attempt_at"] - row["updated_at"]).total_seconds() == min(
                60, 10 * 2 ** (count - 1)
            )
            fresh_crew.sql.run(
                "UPDATE jobs SET next_attempt_at = clock_timestamp()"
                f" WHERE job_id = '{job}' AND state = 'RETRY' AND retry_count = {count}"
            )
        assert fresh_crew.wait_for_state(job, "DEAD")["retry_count"] == 6
    assert fresh_crew.sql.job(failing)["attempt"] == 6
