"""Retry policies that the spec states for one job type."""

from __future__ import annotations

import pytest

from tests.support.orchestrator.stack import Stack, submit, wait_until

STATED = "SEND_EMAIL"
"""The job type for which lifecycle.yaml states its own policy."""


@pytest.mark.req("ORC-X01")
def test_a_job_type_may_have_a_retry_policy_of_its_own(fresh: Stack) -> None:
    """The variables apply to all others: no retry there, where the job type of the spec waits ten seconds."""
    api = fresh.add("api")
    # Nothing is queued again, so that a failed job stays as it is while it is read.
    fresh.add("worker", MAX_RETRIES="0", BACKOFF_MAX_SECONDS="300", SCHEDULER_INTERVAL_SECONDS="3600")
    stated = submit(api.http, STATED)
    other = submit(api.http, "unknown")

    wait_until(lambda: fresh.sql.job(other)["state"], "it is dead", lambda state: state == "DEAD")
    row = wait_until(lambda: fresh.sql.job(stated), "it failed", lambda seen: seen["state"] == "RETRY")
    assert (row["next_attempt_at"] - row["updated_at"]).total_seconds() == 10
    assert row["retry_count"] == fresh.sql.job(other)["retry_count"] == 1
