"""Several slots and several workers: each has its own job, and nobody gets in another's way."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.orchestrator.stack import wait_until
from tests.support.orchestrator.stage import BEGUN
from tests.support.orchestrator.worker_processes import CALM, Crew


@pytest.mark.req("ORC-134")
def test_a_worker_holds_one_job_in_each_slot(lone: Crew) -> None:
    """With four slots four of ten jobs run, and the others wait until one of those has ended."""
    jobs = lone.put(count=10, gate="ten")
    lone.work("four", **CALM, WORKER_CONCURRENCY="4")
    wait_until(lambda: len(lone.stage.runs(BEGUN)), "four have begun", lambda seen: seen == 4)
    assert lone.states(jobs) == {"RUNNING": 4, "QUEUED": 6}
    lone.stage.open("ten")
    assert lone.ended(jobs) == {"SUCCESS": 10}
    assert sorted(run.job_id for run in lone.stage.runs(BEGUN)) == sorted(jobs)


@pytest.mark.req("ORC-126", "ORC-120", "ORC-014", "ORC-160", "ORC-161")
def test_workers_need_no_names_to_work_side_by_side(lone: Crew) -> None:
    """Four that nobody named have four names, and four jobs run at once where one worker would run one."""
    jobs = lone.put(count=8, gate="eight")
    nodes = lone.work("", "", "", "", **CALM)
    wait_until(lambda: len(lone.stage.runs(BEGUN)), "four have begun", lambda seen: seen == 4)
    text = "SELECT DISTINCT lease_owner FROM jobs WHERE state = 'RUNNING'"
    owners = {row["lease_owner"] for row in lone.sql.rows(text)}
    assert len(owners) == 4
    assert all(any(f"-{node.pid}-" in owner for owner in owners) for node in nodes)
    lone.stage.open("eight")
    assert lone.ended(jobs) == {"SUCCESS": 8}
    sessions = "SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = current_database()"
    assert {row["application_name"] for row in lone.sql.rows(sessions)} == {"", "orchestrator worker"}


@pytest.mark.req("ORC-014", "ORC-006")
def test_a_job_is_bound_to_no_worker(lone: Crew) -> None:
    """What failed with one worker is taken by another, with the same id and the next attempt."""
    job = lone.one(fail=[1])
    (first,) = lone.work("first", **CALM, BACKOFF_BASE_SECONDS="60", BACKOFF_MAX_SECONDS="60")
    assert lone.until(job, "RETRY")["retry_count"] == 1
    assert first.stop() == 0
    lone.sql.run("UPDATE jobs SET next_attempt_at = clock_timestamp()")
    lone.work("second", **CALM)
    lone.until(job, "SUCCESS")
    runs = lone.stage.runs(BEGUN, [job])
    assert [(run.worker, run.attempt) for run in runs] == [("first", 1), ("second", 2)]


@pytest.mark.req("ORC-151", "ORC-150")
def test_a_lowered_limit_holds_for_those_that_wait(lone: Crew) -> None:
    """A job that waits with two failures is dead under a limit of one, without another run."""
    over, within = lone.put(count=2, state="CREATED")
    lone.bring(over, "QUEUED", "RUNNING", "RETRY", "QUEUED", "RUNNING", "RETRY", wait="1 hour")
    lone.bring(within, "QUEUED", "RUNNING", "RETRY", wait="1 hour")
    lone.sql.run("UPDATE jobs SET next_attempt_at = clock_timestamp()")
    lone.work("strict", **CALM, MAX_RETRIES="1")
    assert lone.until(over, "DEAD")["retry_count"] == 2
    lone.until(within, "SUCCESS")
    assert lone.stage.runs(BEGUN, [over]) == []
    assert [row["actor"] for row in lone.sql.history(over)][-1] == "scheduler"


@pytest.mark.req("ORC-149")
def test_without_retries_one_failure_is_the_end(lone: Crew) -> None:
    """A limit of 0 means one run."""
    job = lone.one(fail=True)
    lone.work("once", **CALM, MAX_RETRIES="0")
    assert lone.until(job, "DEAD")["retry_count"] == 1
    assert lone.stage.attempts(job) == [1]


def failed(crew: Crew, job: str, count: int) -> dict[str, Any]:
    """The row of a job as it was when it began to wait for having failed so often; it may have gone on."""

    def look() -> list[dict[str, Any]]:
        return [row for row in crew.versions(job) if (row["state"], row["retry_count"]) == ("RETRY", count)]

    return wait_until(look, f"it has failed {count} times")[0]


@pytest.mark.req("ORC-X01", "ORC-148", "ORC-150")
def test_a_job_type_may_have_a_policy_of_its_own(lone: Crew) -> None:
    """SEND_EMAIL is tried five times more and waits from 10 s on, failed or lost, unlike others."""
    failing, other = lone.one("SEND_EMAIL"), lone.one("of no known type")
    (lost,) = lone.put("SEND_EMAIL", state="CREATED")
    lone.bring(lost, "QUEUED", "RUNNING")
    lone.expire(lost)
    lone.work("lenient", **CALM, MAX_RETRIES="1", BACKOFF_MAX_SECONDS="60")
    assert lone.until(other, "DEAD")["retry_count"] == 2
    for job in (failing, lost):
        for count in range(1, 6):
            row = failed(lone, job, count)
            assert (row["next_attempt_at"] - row["updated_at"]).total_seconds() == min(
                60, 10 * 2 ** (count - 1)
            )
            lone.sql.run(
                "UPDATE jobs SET next_attempt_at = clock_timestamp()"
                f" WHERE job_id = '{job}' AND state = 'RETRY' AND retry_count = {count}"
            )
        assert lone.until(job, "DEAD")["retry_count"] == 6
    assert lone.sql.job(failing)["attempt"] == 6
