"""The smoke set: each public method once, with the answer that a client hopes for."""

from __future__ import annotations

import pytest

from generated.taskqueue.messages import CANCELED, DONE, QUEUED, RUNNING
from tests.support.taskqueue.api import Api

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.smoke,
]


@pytest.mark.req("TQ-215", "TQ-054")
async def test_a_job_is_accepted_and_run_and_has_a_result(api: Api) -> None:
    """Submit, status and result of a job that succeeds."""
    accepted = await api.submit("sleep", ms=20, size=10)
    assert accepted.initial_status == QUEUED
    assert (await api.status(accepted.job_id)).status in (QUEUED, RUNNING, DONE)
    assert (await api.wait_until_terminal(accepted.job_id)).status == DONE
    result = await api.result(accepted.job_id)
    assert (result.result_ready, len(result.output_bytes)) == (True, 10)


@pytest.mark.req("TQ-215", "TQ-006")
async def test_a_job_that_waits_is_canceled(api: Api) -> None:
    """Cancel withdraws a job for which no slot is free yet."""
    async with api.occupy_slots():
        job_id = (await api.submit()).job_id
        assert (await api.cancel(job_id)).current_status == CANCELED
    assert (await api.status(job_id)).status == CANCELED


@pytest.mark.req("TQ-215", "TQ-007")
async def test_jobs_are_listed(api: Api) -> None:
    """A listing has summaries of jobs."""
    await api.submit("listed")
    listed = (await api.list()).jobs
    assert all(each.job_id and each.job_type and each.created_at_ms for each in listed)
    assert listed
