"""A job's life as its client sees it: the states it goes through, and the times it shows."""

from __future__ import annotations

import asyncio

import pytest

from generated.taskqueue.messages import DONE, FAILED, QUEUED, RUNNING
from tests.support.taskqueue.api import SLOTS, Api, new_key
from tests.support.taskqueue.gates import GATED, gate

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.req("TQ-004", "TQ-053", "TQ-056", "TQ-065")
async def test_a_job_is_queued_running_and_done(api: Api) -> None:
    """All states of a life, in their order, each with its times."""
    with gate() as labels:
        async with api.occupy_slots():
            accepted = await api.submit(GATED, labels=labels)
            statuses = [await api.status(accepted.job_id)]
        statuses.append(await api.wait_until_running(accepted.job_id))
    statuses.append(await api.wait_until_terminal(accepted.job_id))
    assert [each.status for each in statuses] == [QUEUED, RUNNING, DONE]
    for each in statuses:
        assert each.job_id == accepted.job_id
        assert each.created_at_ms == accepted.accepted_at_ms
        assert (each.started_at_ms == 0) == (each.status == QUEUED)
        assert (each.finished_at_ms == 0) == (each.status != DONE)
        assert (each.failure_reason, each.cancel_requested) == ("", False)
    assert statuses[-1].created_at_ms <= statuses[-1].started_at_ms <= statuses[-1].finished_at_ms


@pytest.mark.req("TQ-004", "TQ-113")
async def test_reads_change_nothing(api: Api) -> None:
    """Two reads of a job that has ended are equal."""
    job_id = (await api.submit()).job_id
    ended = await api.wait_until_terminal(job_id)
    assert await api.status(job_id) == ended


@pytest.mark.req("TQ-057", "TQ-119", "TQ-123", "CH-37")
async def test_a_failed_job_has_its_reason(api: Api) -> None:
    """A job of the type that fails ends as failed, with its reason."""
    ended = await api.wait_until_terminal((await api.submit("fail", ms=5)).job_id)
    assert (ended.status, ended.failure_reason) == (FAILED, "SIMULATED_FAILURE")
    assert ended.created_at_ms <= ended.started_at_ms <= ended.finished_at_ms


@pytest.mark.req("TQ-135", "TQ-081", "CH-44")
async def test_all_slots_are_used_and_no_more(api: Api) -> None:
    """Of three times as many jobs as slots, as many as slots run at a time, and every one of them ends."""
    async with api.occupy_slots() as first:
        answers = await asyncio.gather(*(api.submit("slot", ms=50) for _ in range(2 * SLOTS)))
        jobs = [*first, *(answer.job_id for answer in answers)]
    ended = [await api.wait_until_terminal(job_id) for job_id in jobs]
    assert {each.status for each in ended} == {DONE}
    # Where one ends in the millisecond in which another starts, the slot was free already.
    changes = sorted(
        change for each in ended for change in ((each.started_at_ms, 1), (each.finished_at_ms, -1))
    )
    running, most = 0, 0
    for _, change in changes:
        running += change
        most = max(most, running)
    assert most == SLOTS


@pytest.mark.req("TQ-081")
async def test_no_job_of_a_hundred_is_lost(api: Api) -> None:
    """Every one of a hundred small jobs, keyed and unkeyed, good and bad, reaches an end."""
    kinds = ["sleep", "fail", "any"]
    answers = await asyncio.gather(
        *(api.submit(kinds[n % 3], size=n, key=new_key() if n % 2 else "") for n in range(100))
    )
    ended = [await api.wait_until_terminal(answer.job_id) for answer in answers]
    assert [each.status for each in ended] == [FAILED if n % 3 == 1 else DONE for n in range(100)]
