"""Job functions that exceed their time or block the event loop."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.orchestrator.stack import wait_until
from tests.support.orchestrator.worker_processes import Crew, lines


@pytest.mark.req("ORC-X05", "ORC-155")
def test_runs_of_a_plain_function_do_not_overlap(fresh_crew: Crew) -> None:
    """Each is over before the next attempt can begin, and the last one before the job is dead."""
    fresh_crew.start_workers(
        "limited", MAX_RETRIES="2", BACKOFF_BASE_SECONDS="0", WORKER_CONCURRENCY="4", LEASE_SECONDS="60"
    )
    job = fresh_crew.insert_job("endless")
    row = fresh_crew.wait_for_state(job, "DEAD")
    assert row["last_error"].startswith("TIMED_OUT")
    assert row["attempt"] == 3
    assert not (fresh_crew.stage.folder / "two at a time").exists()


@pytest.mark.req("ORC-121", "ORC-015")
def test_a_blocking_function_costs_other_jobs_no_lease(fresh_crew: Crew) -> None:
    """Both leases are renewed again and again, the log names the function, and both jobs end well."""
    blocking, neighbour = (
        fresh_crew.insert_job("block", gate="unblock"),
        fresh_crew.insert_job(gate="unblock"),
    )
    (node,) = fresh_crew.start_workers(
        "blocked",
        WORKER_CONCURRENCY="2",
        LEASE_RENEW_SECONDS="0.2",
        JOB_TIMEOUT_SECONDS="600",
    )
    fresh_crew.wait_for_run(blocking)

    def list_blocked_lines() -> list[str]:
        """The log lines that name it; a line of a busy machine may come before."""
        messages = [line["message"] for line in lines(node, "job_loop_blocked")]
        return [message for message in messages if message.startswith("block (")]

    (message,) = wait_until(list_blocked_lines, "the log names the function")
    assert "tests.support.orchestrator.staged_node" in message or "__main__.block" in message
    for job in (blocking, neighbour):
        first = fresh_crew.wait_for_state(job, "RUNNING")["lease_expiry"]
        wait_until(
            lambda job=job: fresh_crew.wait_for_state(job, "RUNNING"),  # type: ignore[misc]
            "its lease was renewed several times since the loop is blocked",
            lambda row, first=first: row["lease_expiry"] > first + timedelta(seconds=0.7),  # type: ignore[misc]
        )
    fresh_crew.stage.open("unblock")
    for job in (blocking, neighbour):
        row = fresh_crew.wait_for_state(job, "SUCCESS")
        assert (row["attempt"], row["retry_count"]) == (1, 0)
    assert lines(node, "lease_lost") == []
