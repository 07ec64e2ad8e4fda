"""Cancel when a step fails or another call comes between: the job is put back, flagged, or logged."""

from __future__ import annotations

from typing import Any

import pytest

from generated.taskqueue.errors import CancelNotCompleted, JobNotFound
from generated.taskqueue.messages import (
    CANCELED,
    DONE,
    QUEUED,
    RUNNING,
    DeleteJobIfStatusRequest,
    EnqueueJobRequest,
    EnqueueJobResponse,
    TransitionJobStatusRequest,
)
from runtime.call.conditions import Failure
from runtime.simulation import Fault
from tests.support.taskqueue.fault_plans import before, fail_calls, not_in_queue
from tests.support.taskqueue.stack import NO_WORKER, Stack, play


@pytest.mark.req("CH-48", "TQ-086", "TQ-082", "CH-75")
@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER, Fault.TIMEOUT])
@pytest.mark.parametrize("name", ["RemoveJobIfPresent", "StoreResult"])
def test_an_interrupted_cancel_requeues_the_job(name: str, fault: Fault) -> None:
    """The job is in the queue again, an anomaly is logged, and the client's next attempt succeeds."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        stack.fail(fail_calls(name, fault=fault, principal="gateway"))
        before = len(stack.exchanges)
        with pytest.raises(Failure) as failed:
            await stack.cancel(job_id)
        assert isinstance(failed.value, CancelNotCompleted) or fault is Fault.TIMEOUT
        assert failed.value.grpc in ("UNAVAILABLE", "DEADLINE_EXCEEDED")
        await stack.world.sleep(2)
        calls = stack.calls("gateway", before)
        assert calls.count("EnqueueJob") == calls.count("RemoveJobIfPresent")
        assert (await stack.status(job_id)).status == QUEUED
        assert stack.anomalies(job_id) != []
        stack.heal()
        assert (await stack.cancel(job_id)).current_status == CANCELED

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-48", "CH-36")
@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER])
def test_a_cancel_whose_swap_fails_requeues_the_job_too(fault: Fault) -> None:
    """If the swap did apply, the client's next attempt finds the job canceled; if not, it cancels it."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        tries = iter([fault])
        stack.fail(lambda each: next(tries, None) if each.name == "TransitionJobStatus" else None)
        assert (await stack.cancel(job_id)).current_status == CANCELED
        assert "EnqueueJob" in stack.calls("gateway")[2:]
        assert (await stack.result(job_id)).terminal_status == CANCELED

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-48", "CH-62", "TQ-082", "TQ-166")
@pytest.mark.parametrize(
    "requeue", [Fault.BEFORE, EnqueueJobResponse(accepted=False)], ids=["fails", "refused"]
)
def test_a_failed_requeue_is_logged(requeue: Any) -> None:
    """There is one attempt; its failure is logged, and the client's next cancel finds the job stranded."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        fates = {"StoreResult": Fault.BEFORE, "EnqueueJob": requeue}
        stack.fail(lambda each: fates.get(each.name))
        answer = await stack.cancel(job_id)
        assert stack.calls("gateway").count("EnqueueJob") == 2  # that of the submit, and one
        broke_off, not_back = stack.anomalies(job_id)
        assert "a cancel broke off" in broke_off
        assert "could not be put back" in not_back or "did not take" in not_back
        (not_there,) = stack.log("cancel_race")
        assert (answer.current_status, not_there["job_id"]) == (QUEUED, job_id)

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-49", "CH-50")
def test_a_cancel_that_loses_its_race_sets_the_flag() -> None:
    """A job that starts while it is withdrawn is canceled like one that runs."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        start = TransitionJobStatusRequest(job_id=job_id, expected_from_status=QUEUED, to_status=RUNNING)
        stack.fail(before("TransitionJobStatus", lambda: stack.call_at_once("transition_job_status", start)))
        answer = await stack.cancel(job_id)
        assert (answer.accepted, answer.current_status) == (True, RUNNING)
        assert (await stack.record(job_id)).summary.cancel_requested
        assert "a cancel lost its race after its envelope was stored" in stack.anomalies(job_id)
        await stack.report(job_id)
        assert (await stack.result(job_id)).terminal_status == CANCELED

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-50")
def test_a_cancel_that_meets_another_envelope_is_lost() -> None:
    """An envelope that says DONE is not overruled; the job goes back into the queue, flagged."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        await stack.store(job_id, DONE, output_bytes=b"x")
        answer = await stack.cancel(job_id)
        assert answer.current_status == QUEUED
        assert "TransitionJobStatus" not in stack.calls("gateway")
        await stack.beat()
        await stack.fetch()
        assert (await stack.result(job_id)).terminal_status == DONE

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-16", "CH-66")
def test_a_job_that_is_deleted_during_the_cancel_is_not_found() -> None:
    """If the submit is compensated during the cancel, there is no job to put back."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        delete = DeleteJobIfStatusRequest(job_id=job_id, expected_status=QUEUED)
        stack.fail(
            before(
                "TransitionJobStatus", lambda: stack.call_at_once("delete_job_if_status", delete, "gateway")
            )
        )
        with pytest.raises(JobNotFound):
            await stack.cancel(job_id)
        assert "EnqueueJob" not in stack.calls("gateway")[2:]

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-08")
def test_the_first_reason_stays() -> None:
    """A cancel after a flag has the reason that came first."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        stack.fail(not_in_queue)
        await stack.cancel(job_id, "first")
        stack.heal()
        enqueue = EnqueueJobRequest(job_id=job_id)
        await stack.queue.enqueue_job(enqueue, stack.call("gateway"))
        assert (await stack.cancel(job_id, "second")).current_status == CANCELED
        assert (await stack.result(job_id)).output_summary == "first"

    play(scenario, without=NO_WORKER)
