"""Dispatch: pop, read, swap, assign; and how a job is rescued when one of these steps fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from generated.taskqueue.messages import (
    CANCELED,
    DONE,
    FAILED,
    QUEUED,
    RUNNING,
    EnqueueJobResponse,
    JobStatus,
    TransitionJobStatusResponse,
)
from runtime.simulation import Exchange, Fault
from tests.support.taskqueue.fault_plans import fail_calls, once
from tests.support.taskqueue.stack import NO_WORKER, SPEC, Stack, play


def refused_as(status: JobStatus.ValueType) -> TransitionJobStatusResponse:
    return TransitionJobStatusResponse(applied=False, current_status=status)


def list_steps(stack: Stack) -> list[str]:
    return stack.calls("coordinator")


@pytest.mark.req("TQ-073", "TQ-142", "TQ-055", "CH-03", "CH-04", "CH-30")
def test_a_job_is_popped_read_swapped_and_assigned() -> None:
    """In that order, and with the spec as it was submitted."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        await stack.beat()
        work = await stack.fetch()
        assert list_steps(stack) == ["DequeueJob", "GetJobRecord", "TransitionJobStatus"]
        assert (work.assigned, work.job_id, work.spec, work.retry_after_ms) == (True, job_id, SPEC, 0)
        assert (await stack.status(job_id)).status == RUNNING

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-145", "TQ-083", "CH-33")
def test_every_fetch_gets_another_job() -> None:
    """Many concurrent fetches get different jobs."""

    async def scenario(stack: Stack) -> None:
        submitted = {await stack.submit_job() for _ in range(12)}
        await stack.beat()
        fetched = [work.job_id for work in await asyncio.gather(*(stack.fetch() for _ in range(12)))]
        assert sorted(fetched) == sorted(submitted)

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-140", "CH-43", "TQ-175")
@pytest.mark.parametrize(
    ("hint", "clamped"), [("0", 50), ("10", 50), ("200", 200), ("5000", 1000), ("", 200)]
)
def test_an_idle_answer_has_a_retry_hint(hint: str, clamped: int) -> None:
    """Without work the answer says when to ask again, within 50 and 1000 ms whatever is configured."""

    async def scenario(stack: Stack) -> None:
        await stack.beat()
        work = await stack.fetch()
        assert (work.assigned, work.retry_after_ms, work.job_id) == (False, clamped, "")

    play(scenario, without=NO_WORKER, FETCH_RETRY_AFTER_MS=hint)


def test_an_idle_worker_starts_at_once() -> None:
    """A fetch that waits is answered as soon as a job is submitted, not at its next hint."""

    async def scenario(stack: Stack) -> None:
        await stack.beat()
        waiting = asyncio.create_task(stack.fetch())
        await stack.world.sleep(0.2)
        job_id = await stack.submit_job()
        assert (await waiting).job_id == job_id
        status = await stack.status(job_id)
        assert status.started_at_ms - status.created_at_ms < 15

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-074", "TQ-075", "TQ-077", "TQ-167", "CH-30")
@pytest.mark.parametrize("status", [RUNNING, DONE, FAILED, CANCELED])
def test_a_lost_race_neither_assigns_nor_requeues(status: JobStatus.ValueType) -> None:
    """A job that is not QUEUED any more is read again and not changed; the log has a race, not an error."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        await stack.transition(job_id, QUEUED, RUNNING)
        if status == CANCELED:
            await stack.transition(job_id, RUNNING, CANCELED)
        elif status != RUNNING:
            await stack.transition(job_id, RUNNING, status)
        before = len(stack.exchanges)
        await stack.beat()
        work = await stack.fetch()
        assert (work.assigned, work.retry_after_ms) == (False, 50)
        assert stack.calls("coordinator", before) == [
            *("DequeueJob", "GetJobRecord", "TransitionJobStatus", "GetJobRecord")
        ]
        (race,) = stack.log("dispatch_race")
        assert (race["job_id"], race["level"]) == (job_id, "INFO")
        assert (race["expected_status"], race["current_status"]) == ("QUEUED", JobStatus.Name(status))
        assert stack.log("dispatch_rescue") == []
        anomalies = ["is RUNNING and no worker runs it"] if status == RUNNING else []
        assert stack.anomalies(job_id) == anomalies

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-076", "TQ-078", "TQ-167", "CH-01", "CH-26", "CH-30")
@pytest.mark.parametrize("fate", [refused_as(QUEUED), Fault.BEFORE], ids=["answered", "unanswered"])
def test_a_queued_job_is_requeued_once_after_a_failed_swap(fate: Any) -> None:
    """A job that is still QUEUED after a failed swap goes back into the queue, and runs later."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        await stack.beat()
        stack.fail(once("TransitionJobStatus", fate))
        work = await stack.fetch()
        assert (work.assigned, work.retry_after_ms) == (False, 50)
        assert list_steps(stack) == [
            *("DequeueJob", "GetJobRecord", "TransitionJobStatus", "GetJobRecord", "EnqueueJob")
        ]
        (rescue,) = stack.log("dispatch_rescue")
        assert rescue["job_id"] == job_id
        assert len(stack.log("dispatch_race")) == 1
        assert (await stack.fetch()).job_id == job_id

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-04", "TQ-078")
def test_a_failed_read_requeues_the_job() -> None:
    """Without the record there is no transition; the job is requeued at once, without another read."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        await stack.beat()
        stack.fail(fail_calls("GetJobRecord", principal="coordinator"))
        assert not (await stack.fetch()).assigned
        assert "TransitionJobStatus" not in list_steps(stack)
        assert list_steps(stack)[-1] == "EnqueueJob"
        stack.heal()
        assert (await stack.fetch()).job_id == job_id
        assert len(stack.log("dispatch_rescue")) == 1

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-26")
def test_a_job_whose_state_cannot_be_read_is_requeued_all_the_same() -> None:
    """If the read after a failed swap fails, too, it is logged, and the job is requeued."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        await stack.beat()
        lost = fail_calls("TransitionJobStatus", principal="coordinator")

        def plan(exchange: Exchange) -> Any:
            swapped = any(each.name == "TransitionJobStatus" for each in stack.exchanges[:-1])
            return lost(exchange) or (Fault.BEFORE if exchange.name == "GetJobRecord" and swapped else None)

        stack.fail(plan)
        await stack.fetch()
        assert list_steps(stack)[-1] == "EnqueueJob"
        assert stack.anomalies(job_id) == ["its state cannot be read: JobInternalService cannot be reached"]
        stack.heal()
        assert (await stack.fetch()).job_id == job_id

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-27", "TQ-082", "TQ-166")
@pytest.mark.parametrize("fate", [Fault.BEFORE, EnqueueJobResponse(accepted=False)], ids=["fails", "refused"])
def test_a_failed_requeue_is_logged_and_not_repeated(fate: Any) -> None:
    """There is one attempt to requeue a job; if that fails, the job is QUEUED, stranded, and logged."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        await stack.beat()
        swap, requeue = (
            fail_calls("TransitionJobStatus", principal="coordinator"),
            once("EnqueueJob", fate, times=9),
        )
        stack.fail(lambda exchange: swap(exchange) or requeue(exchange))
        await stack.fetch()
        assert list_steps(stack).count("EnqueueJob") == 1
        (message,) = stack.anomalies(job_id)
        assert "put back" in message or "take it back" in message
        stack.heal()
        await stack.world.sleep(5)
        assert (await stack.status(job_id)).status == QUEUED

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-28", "TQ-077", "CH-75")
def test_a_swap_that_applied_without_an_answer_is_logged_and_not_undone() -> None:
    """The job is RUNNING without a worker: it is neither assigned nor requeued, and an anomaly is logged."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        await stack.beat()
        stack.fail(once("TransitionJobStatus", Fault.AFTER))
        assert not (await stack.fetch()).assigned
        assert (list_steps(stack).count("TransitionJobStatus"), list_steps(stack).count("EnqueueJob")) == (
            1,
            0,
        )
        assert stack.anomalies(job_id) == ["is RUNNING and no worker runs it"]

    play(scenario, without=NO_WORKER)
