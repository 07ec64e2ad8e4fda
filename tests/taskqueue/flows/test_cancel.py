"""Cancelling: a waiting job for certain, a running one at best effort, and nothing lost on the way."""

from __future__ import annotations

import pytest

from generated.taskqueue.errors import JobNotFound
from generated.taskqueue.messages import (
    CANCELED,
    DONE,
    QUEUED,
    RUNNING,
    JobSpec,
    RemoveJobIfPresentResponse,
    TransitionJobStatusRequest,
)
from runtime.model.text import sha256_hex
from runtime.simulation import Exchange
from tests.support.taskqueue.fault_plans import before
from tests.support.taskqueue.stack import NO_WORKER, Stack, play

WITHDRAWAL = ["GetJobRecord", "RemoveJobIfPresent", "StoreResult", "TransitionJobStatus"]


def not_in_queue(exchange: Exchange) -> RemoveJobIfPresentResponse | None:
    """The queue says that it does not have the job."""
    return RemoveJobIfPresentResponse(removed=False) if exchange.name == "RemoveJobIfPresent" else None


async def steps_of_cancel(stack: Stack, job_id: str, reason: str = "") -> list[str]:
    before = len(stack.exchanges)
    await stack.cancel(job_id, reason)
    return stack.calls("gateway", before)


@pytest.mark.req("TQ-058", "TQ-086", "TQ-095", "TQ-060", "TQ-102", "CH-57", "CH-58", "CH-60", "TQ-120")
def test_a_waiting_job_is_withdrawn() -> None:
    """Out of the queue, then the envelope, then the state; the job never runs."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submitted()
        before = len(stack.exchanges)
        answer = await stack.cancel(job_id)
        assert (answer.accepted, answer.current_status, answer.already_terminal) == (True, CANCELED, False)
        assert stack.calls("gateway", before) == WITHDRAWAL
        moved = stack.exchanges[-1].request
        assert isinstance(moved, TransitionJobStatusRequest)
        assert (moved.actor, moved.expected_from_status, moved.to_status) == ("gateway", QUEUED, CANCELED)
        status, result = await stack.status(job_id), await stack.result(job_id)
        assert (status.started_at_ms, status.cancel_requested, status.failure_reason) == (0, True, "")
        assert (result.terminal_status, result.output_summary) == (CANCELED, "canceled while queued")
        assert (result.output_bytes, result.runtime_ms, result.checksum) == (b"", 0, sha256_hex(b""))
        stack.deployment.start("worker")
        await stack.world.sleep(1)
        assert (await stack.status(job_id)).started_at_ms == 0

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-104", "CH-08")
def test_the_reason_is_in_the_envelope() -> None:
    """What the client says is kept with the record and shown in the result."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submitted()
        await stack.cancel(job_id, "found another way")
        assert (await stack.result(job_id)).output_summary == "found another way"
        assert (await stack.record(job_id)).cancel_reason == "found another way"

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-059", "TQ-096", "TQ-097", "TQ-100", "TQ-103")
def test_a_running_job_is_only_asked_to_stop() -> None:
    """The flag goes up at once and stays, the slot stays busy to the end, and then the cancel wins."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.started(JobSpec(job_type="sleep", work_duration_ms=3000))
        behind = await stack.submitted()
        for _ in range(2):
            assert await steps_of_cancel(stack, job_id) == ["GetJobRecord", "SetCancelRequested"]
            status = await stack.status(job_id)
            assert (status.status, status.cancel_requested) == (RUNNING, True)
        first, second = await stack.ended(job_id), await stack.ended(behind)
        assert first.status == CANCELED
        assert first.finished_at_ms - first.started_at_ms >= 3000
        assert second.started_at_ms >= first.finished_at_ms

    play(scenario, WORKER_SLOTS="1")


@pytest.mark.req("TQ-098", "CH-21", "CH-62")
def test_a_job_that_left_the_queue_is_flagged() -> None:
    """If the queue does not have it, the flag is set and the true state returned, with a line."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submitted()
        stack.fail(
            lambda each: (
                RemoveJobIfPresentResponse(removed=False) if each.name == "RemoveJobIfPresent" else None
            )
        )
        before = len(stack.exchanges)
        answer = await stack.cancel(job_id, "why")
        assert stack.calls("gateway", before) == ["GetJobRecord", "RemoveJobIfPresent", "SetCancelRequested"]
        assert (answer.accepted, answer.current_status, answer.already_terminal) == (True, QUEUED, False)
        record = await stack.record(job_id)
        assert (record.summary.cancel_requested, record.cancel_reason) == (True, "why")
        (line,) = stack.log("cancel_race")
        assert (line["level"], line["job_id"], stack.anomalies()) == ("WARNING", job_id, [])

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-62", "TQ-166")
def test_a_cancel_right_after_the_submit_is_no_anomaly() -> None:
    """A job that is on its way to a worker when it is canceled leaves a warning, and nothing worse."""

    async def scenario(stack: Stack) -> None:
        raced = 0
        while raced < 3:  # Some jobs are withdrawn, some run already; the race is the narrow rest.
            job_id = await stack.submitted(JobSpec(job_type="sleep"), key=f"k{len(stack.exchanges)}")
            await stack.cancel(job_id)
            await stack.ended(job_id)
            raced = len(stack.log("cancel_race")) + len(stack.anomalies())
        assert {line["level"] for line in stack.log("cancel_race")} == {"WARNING"}
        assert stack.anomalies() == []

    play(scenario)


@pytest.mark.req("TQ-099", "TQ-155", "CH-60")
def test_a_job_that_is_over_stays_as_it_is() -> None:
    """Cancelling it again and again is OK, says so, and changes nothing."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submitted()
        before = await stack.ended(job_id), await stack.result(job_id)
        for _ in range(2):
            assert await steps_of_cancel(stack, job_id) == ["GetJobRecord"]
            answer = await stack.cancel(job_id)
            assert (answer.accepted, answer.current_status, answer.already_terminal) == (True, DONE, True)
        assert (await stack.status(job_id), await stack.result(job_id)) == before

    play(scenario)


@pytest.mark.req("TQ-102")
def test_a_job_that_ends_during_the_cancel_was_not_over_before() -> None:
    """The answer has the state of the moment, and says that it was another before."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.running()
        end = TransitionJobStatusRequest(job_id=job_id, expected_from_status=RUNNING, to_status=DONE)
        stack.fail(before("SetCancelRequested", lambda: stack.slip_in("transition_job_status", end)))
        answer = await stack.cancel(job_id)
        assert (answer.accepted, answer.current_status, answer.already_terminal) == (True, DONE, False)

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-101", "TQ-148")
def test_nobody_s_job_is_not_found() -> None:
    """An id that no job has is NOT_FOUND, and nothing is called but the record."""

    async def scenario(stack: Stack) -> None:
        with pytest.raises(JobNotFound):
            await stack.cancel("3f2b8c1e-9d4a-4e6b-8f10-2a7c5d9e0b13")
        assert stack.calls("gateway") == ["GetJobRecord"]

    play(scenario, without=NO_WORKER)
