"""Job functions that take more than they should: time that is over, and the loop of all others."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.orchestrator.stack import wait_until
from tests.support.orchestrator.worker_processes import Crew, lines


@pytest.mark.req("ORC-X05", "ORC-155")
def test_no_two_runs_of_a_plain_function_go_on_at_a_time(lone: Crew) -> None:
    """Each is over before the next attempt can begin, and the last one before the job is dead."""
    lone.work(
        "limited", MAX_RETRIES="2", BACKOFF_BASE_SECONDS="0", WORKER_CONCURRENCY="4", LEASE_SECONDS="60"
    )
    job = lone.one("endless")
    row = lone.until(job, "DEAD")
    assert row["last_error"].startswith("TIMED_OUT")
    assert row["attempt"] == 3
    assert not (lone.stage.folder / "two at a time").exists()


@pytest.mark.req("ORC-121", "ORC-015")
def test_a_function_that_blocks_costs_its_neighbours_no_lease(lone: Crew) -> None:
    """Both leases are renewed again and again, the log names the function, and both jobs end well."""
    blocking, neighbour = lone.one("block", gate="unblock"), lone.one(gate="unblock")
    (node,) = lone.work(
        "blocked",
        WORKER_CONCURRENCY="2",
        LEASE_RENEW_SECONDS="0.5",
        JOB_TIMEOUT_SECONDS="600",
    )
    lone.begun(blocking)

    def named() -> list[str]:
        """What is told of it; where the machine gave the loop no time, that was told before."""
        messages = [line["message"] for line in lines(node, "job_loop_blocked")]
        return [message for message in messages if message.startswith("block (")]

    (message,) = wait_until(named, "the log names the function")
    assert "tests.support.orchestrator.staged_node" in message or "__main__.block" in message
    for job in (blocking, neighbour):
        first = lone.until(job, "RUNNING")["lease_expiry"]
        wait_until(
            lambda job=job: lone.until(job, "RUNNING"),  # type: ignore[misc]
            "its lease was renewed several times since the loop is blocked",
            lambda row, first=first: row["lease_expiry"] > first + timedelta(seconds=2),  # type: ignore[misc]
        )
    lone.stage.open("unblock")
    for job in (blocking, neighbour):
        row = lone.until(job, "SUCCESS")
        assert (row["attempt"], row["retry_count"]) == (1, 0)
    assert lines(node, "lease_lost") == []
