"""Cancel: a waiting job for certain, a running one with best effort, and no job lost in between."""

from __future__ import annotations

import pytest

from generated.taskqueue.errors import JobNotFound
from generated.taskqueue.messages import (
    CANCELED,
    DONE,
    QUEUED,
    RUNNING,
    JobSpec,
    TransitionJobStatusRequest,
)
from runtime.model.text import sha256_hex
from tests.support.taskqueue.fault_plans import before, not_in_queue
from tests.support.taskqueue.stack import NO_WORKER, Stack, play

WITHDRAWAL = ["GetJobRecord", "RemoveJobIfPresent", "StoreResult", "TransitionJobStatus"]


async def list_cancel_steps(stack: Stack, job_id: str, reason: str = "") -> list[str]:
    before = len(stack.exchanges)
    await stack.cancel(job_id, reason)
    return stack.calls("gateway", before)


@pytest.mark.req("TQ-058", "TQ-086", "TQ-095", "TQ-060", "TQ-102", "CH-57", "CH-58", "CH-60", "TQ-120")
def test_a_waiting_job_is_withdrawn() -> None:
    """Out of the queue, then the envelope, then the state; the job never runs."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        before = len(stack.exchanges)
        answer = await stack.cancel(job_id)
        assert (answer.accepted, answer.current_status, answer.already_terminal) == (True, CANCELED, False)
        assert stack.calls("gateway", before) == WITHDRAWAL
        transition = stack.exchanges[-1].request
        assert isinstance(transition, TransitionJobStatusRequest)
        assert (transition.actor, transition.expected_from_status, transition.to_status) == (
            "gateway",
            QUEUED,
            CANCELED,
        )
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
    """The client's reason is stored with the record and is in the result."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        await stack.cancel(job_id, "found another way")
        assert (await stack.result(job_id)).output_summary == "found another way"
        assert (await stack.record(job_id)).cancel_reason == "found another way"

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-059", "TQ-096", "TQ-097", "TQ-100", "TQ-103")
def test_a_cancel_of_a_running_job_sets_a_flag() -> None:
    """The flag is set at once and stays, the slot stays busy to the end, and then the cancel wins."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_start(JobSpec(job_type="sleep", work_duration_ms=3000))
        behind = await stack.submit_job()
        for _ in range(2):
            assert await list_cancel_steps(stack, job_id) == ["GetJobRecord", "SetCancelRequested"]
            status = await stack.status(job_id)
            assert (status.status, status.cancel_requested) == (RUNNING, True)
        first, second = await stack.wait_until_terminal(job_id), await stack.wait_until_terminal(behind)
        assert first.status == CANCELED
        assert first.finished_at_ms - first.started_at_ms >= 3000
        assert second.started_at_ms >= first.finished_at_ms

    play(scenario, WORKER_SLOTS="1")


@pytest.mark.req("TQ-098", "CH-21", "CH-62")
def test_a_cancel_of_a_dequeued_job_sets_the_flag() -> None:
    """If the queue does not have the job, the flag is set and the true state returned, with a warning."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        stack.fail(not_in_queue)
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
    """A job that is being dispatched when it is canceled gets a warning in the log, and nothing worse."""

    async def scenario(stack: Stack) -> None:
        raced = 0
        while raced < 3:  # Some jobs are withdrawn, some run already; the race is the narrow rest.
            job_id = await stack.submit_job(JobSpec(job_type="sleep"), key=f"k{len(stack.exchanges)}")
            await stack.cancel(job_id)
            await stack.wait_until_terminal(job_id)
            raced = len(stack.log("cancel_race")) + len(stack.anomalies())
        assert {line["level"] for line in stack.log("cancel_race")} == {"WARNING"}
        assert stack.anomalies() == []

    play(scenario)


@pytest.mark.req("TQ-099", "TQ-155", "CH-60")
def test_a_terminal_job_is_not_changed_by_a_cancel() -> None:
    """Cancelling it again and again is OK, says so, and changes nothing."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        before = await stack.wait_until_terminal(job_id), await stack.result(job_id)
        for _ in range(2):
            assert await list_cancel_steps(stack, job_id) == ["GetJobRecord"]
            answer = await stack.cancel(job_id)
            assert (answer.accepted, answer.current_status, answer.already_terminal) == (True, DONE, True)
        assert (await stack.status(job_id), await stack.result(job_id)) == before

    play(scenario)


@pytest.mark.req("TQ-102")
def test_a_job_that_ends_during_the_cancel_is_not_reported_as_terminal_before() -> None:
    """The answer has the current state, and says that the job was not terminal before the cancel."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_fetch()
        end = TransitionJobStatusRequest(job_id=job_id, expected_from_status=RUNNING, to_status=DONE)
        stack.fail(before("SetCancelRequested", lambda: stack.call_at_once("transition_job_status", end)))
        answer = await stack.cancel(job_id)
        assert (answer.accepted, answer.current_status, answer.already_terminal) == (True, DONE, False)

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-101", "TQ-148")
def test_an_unknown_job_is_not_found() -> None:
    """An id that no job has is NOT_FOUND, and nothing is called but the record."""

    async def scenario(stack: Stack) -> None:
        with pytest.raises(JobNotFound):
            await stack.cancel("3f2b8c1e-9d4a-4e6b-8f10-2a7c5d9e0b13")
        assert stack.calls("gateway") == ["GetJobRecord"]

    play(scenario, without=NO_WORKER)
