"""Cancel: certain for a job that waits, best effort for one that runs, without effect for one that ended."""

from __future__ import annotations

import pytest

from generated.taskqueue.lifecycle import JOB
from generated.taskqueue.messages import CANCELED, DONE, RUNNING, CancelJobResponse
from tests.support.taskqueue.api import Api, expect_code, new_key

pytestmark = pytest.mark.asyncio(loop_scope="session")

WORK_MS = 100


@pytest.mark.req("TQ-095", "TQ-058", "TQ-006", "CH-58", "TQ-065")
async def test_a_job_that_waits_never_runs_after_its_cancel(api: Api) -> None:
    """It is canceled at once and still is when jobs that were submitted after it have run."""
    async with api.occupy_slots():
        job_id = (await api.submit()).job_id
        later = (await api.submit()).job_id
        assert await api.cancel(job_id) == CancelJobResponse(
            job_id=job_id, accepted=True, current_status=CANCELED, already_terminal=False
        )
        canceled = await api.status(job_id)
    await api.wait_until_terminal(later)
    assert await api.status(job_id) == canceled
    assert (canceled.status, canceled.started_at_ms, canceled.failure_reason) == (CANCELED, 0, "")
    assert canceled.cancel_requested
    assert canceled.finished_at_ms >= canceled.created_at_ms


@pytest.mark.req("TQ-104", "TQ-120", "TQ-091", "CH-57")
@pytest.mark.parametrize(
    ("reason", "summary"), [("changed my mind", "changed my mind"), ("", "canceled while queued")]
)
async def test_the_result_of_a_canceled_waiting_job_has_the_reason(
    api: Api, reason: str, summary: str
) -> None:
    """The reason of the client, or a default text; no output and no runtime."""
    job_id = await api.submit_canceled(reason)
    result = await api.result(job_id)
    assert (result.result_ready, result.terminal_status) == (True, CANCELED)
    assert (result.output_bytes, result.runtime_ms, result.output_summary) == (b"", 0, summary)


@pytest.mark.req("TQ-096", "TQ-059", "TQ-097", "TQ-100", "TQ-104", "TQ-120", "TQ-006", "TQ-155", "CH-46")
async def test_a_running_job_runs_on_and_ends_as_canceled(api: Api) -> None:
    """The flag shows at once while the job runs, a repeat changes nothing, and the first reason stays."""
    async with api.run_job(ms=WORK_MS) as job_id:
        answer = CancelJobResponse(job_id=job_id, accepted=True, current_status=RUNNING)
        assert await api.cancel(job_id, "too slow") == answer
        flagged = await api.status(job_id)
        assert (flagged.status, flagged.cancel_requested) == (RUNNING, True)
        assert await api.cancel(job_id, "once more") == answer
    ended = await api.wait_until_terminal(job_id)
    assert (ended.status, ended.cancel_requested, ended.failure_reason) == (CANCELED, True, "")
    assert ended.finished_at_ms - ended.started_at_ms >= WORK_MS
    result = await api.result(job_id)
    assert (result.terminal_status, result.output_summary) == (CANCELED, "too slow")
    assert result.runtime_ms >= WORK_MS


@pytest.mark.req("TQ-099", "TQ-102", "TQ-113", "TQ-155", "CH-60")
@pytest.mark.parametrize("kind", ["sleep", "fail", "canceled"])
async def test_a_job_that_has_ended_stays_as_it_is(api: Api, kind: str) -> None:
    """The answer is that it was terminal already, each time, and neither status nor result change."""
    job_id = await api.submit_canceled() if kind == "canceled" else (await api.submit(kind)).job_id
    ended = await api.wait_until_terminal(job_id)
    result = await api.result(job_id)
    for _ in range(2):
        assert await api.cancel(job_id, "too late") == CancelJobResponse(
            job_id=job_id, accepted=True, current_status=ended.status, already_terminal=True
        )
    assert await api.status(job_id) == ended
    assert await api.result(job_id) == result


@pytest.mark.req("TQ-096")
async def test_a_cancel_after_the_end_of_a_job_has_no_effect(api: Api) -> None:
    """A job without work may be done before its cancel; in both cases its terminal state stays."""
    job_id = (await api.submit()).job_id
    answer = await api.cancel(job_id)
    ended = await api.wait_until_terminal(job_id)
    assert answer.accepted
    assert ended.status in (CANCELED, DONE)
    if answer.current_status in JOB.terminal:
        assert ended.status == answer.current_status


@pytest.mark.req("TQ-101", "TQ-148")
async def test_an_unknown_job_cannot_be_canceled(api: Api) -> None:
    """An id that no job has is not found."""
    with expect_code("NOT_FOUND"):
        await api.cancel(new_key())


@pytest.mark.req("TQ-105", "CH-07")
async def test_a_key_outlives_the_cancel_of_its_job(api: Api) -> None:
    """A repeat of the submit finds the canceled job and does not start it."""
    key = new_key()
    job_id = await api.submit_canceled(key=key)
    assert (await api.submit("waits", key=key)).job_id == job_id
    assert (await api.status(job_id)).status == CANCELED
