"""Results: nothing before the end, and afterwards an envelope that fits the state."""

from __future__ import annotations

import hashlib

import pytest

from generated.taskqueue.lifecycle import JOB
from generated.taskqueue.messages import (
    CANCELED,
    DONE,
    FAILED,
    JOB_STATUS_UNSPECIFIED,
    QUEUED,
    RUNNING,
    GetJobResultResponse,
)
from tests.support.taskqueue.api import Api

pytestmark = pytest.mark.asyncio(loop_scope="session")

CAP = 262144
OF_NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.req("TQ-117", "TQ-005", "TQ-155", "TQ-146", "CH-56")
async def test_before_the_end_there_is_no_result_and_no_error(api: Api) -> None:
    """A waiting and a running job answer that the result is not ready, with nothing else set, each time."""
    async with api.occupy_slots() as running:
        waits = (await api.submit()).job_id
        for job_id, status in ((waits, QUEUED), (running[0], RUNNING)):
            for _ in range(2):
                answer = await api.result(job_id)
                assert answer == GetJobResultResponse(job_id=job_id)
                assert answer.terminal_status == JOB_STATUS_UNSPECIFIED
            assert (await api.status(job_id)).status == status


@pytest.mark.req("TQ-118", "TQ-005", "TQ-091", "TQ-092", "TQ-113")
async def test_a_finished_job_has_its_output(api: Api) -> None:
    """The output has its checksum and its runtime, the same on every read."""
    job_id = (await api.submit(ms=30, size=1000)).job_id
    await api.wait_until_terminal(job_id)
    result = await api.result(job_id)
    assert (result.result_ready, result.terminal_status) == (True, DONE)
    assert len(result.output_bytes) == 1000
    assert result.checksum == hashlib.sha256(result.output_bytes).hexdigest()
    assert result.runtime_ms >= 30
    assert await api.result(job_id) == result


@pytest.mark.req("TQ-092")
async def test_an_empty_output_has_a_checksum(api: Api) -> None:
    """A job without output has the checksum of no bytes."""
    job_id = (await api.submit(size=0)).job_id
    await api.wait_until_terminal(job_id)
    result = await api.result(job_id)
    assert (result.output_bytes, result.checksum) == (b"", OF_NOTHING)


@pytest.mark.req("TQ-093", "TQ-056")
async def test_an_output_may_be_as_large_as_the_cap(api: Api) -> None:
    """Exactly the cap is done, with every byte."""
    job_id = (await api.submit(size=CAP)).job_id
    assert (await api.wait_until_terminal(job_id)).status == DONE
    result = await api.result(job_id)
    assert len(result.output_bytes) == CAP
    assert result.checksum == hashlib.sha256(result.output_bytes).hexdigest()


@pytest.mark.req("TQ-093", "TQ-057", "TQ-119", "TQ-091", "CH-53")
@pytest.mark.parametrize("size", [CAP + 1, 4294967295])
async def test_an_output_beyond_the_cap_fails_the_job(api: Api, size: int) -> None:
    """One byte more fails, and only the reason is kept."""
    job_id = (await api.submit(size=size)).job_id
    ended = await api.wait_until_terminal(job_id)
    assert (ended.status, ended.failure_reason) == (FAILED, "OUTPUT_TOO_LARGE")
    result = await api.result(job_id)
    assert (result.result_ready, result.terminal_status) == (True, FAILED)
    assert result.output_summary.startswith("OUTPUT_TOO_LARGE")
    assert (result.output_bytes, result.checksum) == (b"", OF_NOTHING)


@pytest.mark.req("TQ-119", "TQ-091")
async def test_the_result_of_a_failed_job_has_the_reason(api: Api) -> None:
    """The summary of the result has the reason of the status."""
    job_id = (await api.submit("fail", ms=10)).job_id
    ended = await api.wait_until_terminal(job_id)
    result = await api.result(job_id)
    assert (result.result_ready, result.terminal_status) == (True, FAILED)
    assert ended.failure_reason in result.output_summary
    assert result.runtime_ms >= 10


@pytest.mark.req("TQ-087", "TQ-092", "TQ-123", "TQ-053", "TQ-091")
async def test_every_job_that_ended_has_a_result_of_its_state(api: Api) -> None:
    """Each job that ended so far, in this test and before, has a result that fits its state and checksum."""
    await api.submit_canceled()
    for kind in ("sleep", "fail"):
        await api.wait_until_terminal((await api.submit(kind)).job_id)
    ended = await api.list_all(DONE, FAILED, CANCELED)
    assert {each.status for each in ended} <= JOB.terminal
    for each in ended[:60]:
        status, result = await api.status(each.job_id), await api.result(each.job_id)
        assert (result.result_ready, result.terminal_status) == (True, each.status)
        assert result.checksum == hashlib.sha256(result.output_bytes).hexdigest()
        assert bool(status.failure_reason) == (each.status == FAILED)
        assert result.output_summary or each.status == DONE
        assert status.cancel_requested or each.status != CANCELED
