"""Dispatch when something is lost: ids without a record, lost answers of pops, and lost workers."""

from __future__ import annotations

import asyncio

import pytest

from generated.taskqueue.messages import (
    CANCELED,
    DONE,
    FAILED,
    QUEUED,
    RUNNING,
    DeleteJobIfStatusRequest,
    DequeueJobRequest,
    EnqueueJobRequest,
    RemoveJobIfPresentRequest,
)
from runtime.call.conditions import Failure
from runtime.model.text import sha256_hex
from runtime.simulation import Fault
from tests.support.taskqueue.fault_plans import before, fail_calls, notify_at, once
from tests.support.taskqueue.stack import NO_WORKER, Stack, play


async def enqueue(stack: Stack, job_id: str) -> None:
    await stack.queue.enqueue_job(EnqueueJobRequest(job_id=job_id), stack.call("gateway"))


async def drain_queue(stack: Stack) -> list[str]:
    """Dequeue every job and return their ids."""
    found: list[str] = []
    while True:
        request = DequeueJobRequest(worker_id="test")
        answer = await stack.queue_of_coordinator.dequeue_job(request, stack.call("coordinator"))
        if not answer.found:
            return found
        found.append(answer.job_id)


@pytest.mark.req("CH-04", "CH-16", "CH-18", "CH-30")
def test_an_id_without_a_record_is_dropped_and_logged() -> None:
    """An id in the queue that has no record is neither assigned nor requeued."""

    async def scenario(stack: Stack) -> None:
        await enqueue(stack, "a ghost")
        await stack.beat()
        work = await stack.fetch()
        assert (work.assigned, work.retry_after_ms) == (False, 50)
        assert stack.anomalies("a ghost") == ["a job in the queue has no record; dropped"]
        assert stack.log("dispatch_rescue") == []
        assert await drain_queue(stack) == []

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-16", "CH-18", "CH-26")
def test_a_job_that_is_deleted_during_dispatch_is_dropped() -> None:
    """A record that is deleted between read and swap is treated like an id without a record."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        await stack.beat()
        delete = DeleteJobIfStatusRequest(job_id=job_id, expected_status=QUEUED)
        stack.fail(
            before(
                "TransitionJobStatus", lambda: stack.call_at_once("delete_job_if_status", delete, "gateway")
            )
        )
        assert not (await stack.fetch()).assigned
        assert stack.anomalies(job_id) == ["a job in the queue has no record; dropped"]
        assert await drain_queue(stack) == []

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-29", "CH-30", "CH-75", "TQ-079", "TQ-081")
@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER, Fault.TIMEOUT])
def test_a_pop_without_an_answer_is_not_repeated(fault: Fault) -> None:
    """The worker gets UNAVAILABLE, and the two log lines of the loss name worker and job."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        await stack.beat()
        stack.fail(fail_calls("DequeueJob", fault=fault))
        with pytest.raises(Failure) as failed:
            await stack.fetch()
        assert failed.value.grpc == "UNAVAILABLE"
        assert stack.calls("coordinator") == ["DequeueJob"]
        (anomaly,) = stack.log("consistency_anomaly")
        assert anomaly["worker_id"] == "w1"
        popped = [(line["job_id"], line["worker_id"]) for line in stack.log("job_dequeued")]
        assert popped == ([] if fault is Fault.BEFORE else [(job_id, "w1")])

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-29", "CH-33", "TQ-081")
@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.TIMEOUT])
def test_an_outage_of_the_queue_is_logged_at_its_beginning_and_end(fault: Fault) -> None:
    """However many slots ask meanwhile, and however often; the last line says how many pops had no answer."""

    async def scenario(stack: Stack) -> None:
        await stack.world.sleep(2)
        before = len(stack.exchanges)
        stack.fail(fail_calls("DequeueJob", fault=fault))
        await stack.world.sleep(30)
        lost = stack.calls("coordinator", before).count("DequeueJob")
        assert lost > 20
        (began,), (failed,) = stack.log("consistency_anomaly"), stack.log("fetch_failed")
        assert began["message"].startswith("a job may have left the queue unseen: ")
        assert (began["worker_id"], failed["worker_id"]) == ("w1", "w1")
        assert failed["grpc_code"] == "UNAVAILABLE"
        stack.heal()
        await stack.world.sleep(5)
        assert len(stack.log("consistency_anomaly")) == len(stack.log("fetch_failed")) == 2
        over = f"the queue answers again; pops without an answer: {lost}"
        assert stack.anomalies()[1] == f"a job may have left the queue unseen: {over}"
        over = f"there are answers again; requests without an answer: {lost}"
        assert stack.log("fetch_failed")[1]["message"] == over
        assert (await stack.wait_until_terminal(await stack.submit_job())).status == DONE

    play(scenario, WORKER_SLOTS="4")


@pytest.mark.req("CH-46", "CH-57", "TQ-059", "TQ-120")
def test_a_cancel_before_dispatch_is_honoured_at_dispatch() -> None:
    """A flag that the first read shows ends the job as CANCELED, in the order start, envelope, end."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        removal = RemoveJobIfPresentRequest(job_id=job_id)
        await stack.queue.remove_job_if_present(removal, stack.call("gateway"))
        assert (await stack.cancel(job_id, "too late")).current_status == QUEUED
        await enqueue(stack, job_id)
        await stack.beat()
        work = await stack.fetch()
        assert (work.assigned, work.retry_after_ms) == (False, 50)
        assert stack.calls("coordinator") == [
            *("DequeueJob", "GetJobRecord", "TransitionJobStatus", "StoreResult", "TransitionJobStatus")
        ]
        result = await stack.result(job_id)
        assert (result.terminal_status, result.output_summary) == (CANCELED, "too late")
        assert (result.runtime_ms, result.output_bytes, result.checksum) == (0, b"", sha256_hex(b""))

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-46")
def test_an_interrupted_cancel_at_dispatch_is_ended_by_the_sweep() -> None:
    """If the envelope cannot be stored, an anomaly is logged, and the job ends when it can."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        removal = RemoveJobIfPresentRequest(job_id=job_id)
        await stack.queue.remove_job_if_present(removal, stack.call("gateway"))
        await stack.cancel(job_id)
        await enqueue(stack, job_id)
        await stack.beat()
        stack.fail(fail_calls("StoreResult", principal="coordinator"))
        await stack.fetch()
        assert (await stack.status(job_id)).status == RUNNING
        assert any("could not be ended" in message for message in stack.anomalies(job_id))
        stack.heal()
        await stack.world.sleep(1.5)
        assert (await stack.result(job_id)).output_summary == "canceled while queued"

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-221", "TQ-077")
def test_a_duplicate_entry_in_the_queue_is_ignored() -> None:
    """A running job that is in the queue once more is not assigned again, and no anomaly is logged."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_and_fetch()
        await enqueue(stack, job_id)
        assert not (await stack.fetch()).assigned
        assert len(stack.log("dispatch_race")) == 1
        assert stack.anomalies() == []
        await stack.report(job_id)
        assert await drain_queue(stack) == []

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-082")
def test_a_late_swap_is_detected() -> None:
    """A job that was requeued and then started by a late swap is popped again, and an anomaly is logged."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        await stack.beat()
        stack.fail(once("TransitionJobStatus", Fault.LATE))
        assert not (await stack.fetch()).assigned
        await stack.world.sleep(2)
        await stack.beat()
        assert not (await stack.fetch()).assigned
        assert (await stack.status(job_id)).status == RUNNING
        assert stack.anomalies(job_id) == ["is RUNNING and no worker runs it"]

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-081")
def test_a_job_for_a_worker_that_disconnected_is_requeued() -> None:
    """A worker that disconnects while its fetch waits does not get the job that comes next."""

    async def scenario(stack: Stack) -> None:
        await stack.beat()
        fetching = asyncio.create_task(stack.fetch())
        await stack.world.sleep(0.1)
        fetching.cancel()
        await asyncio.wait([fetching])
        job_id = await stack.submit_job()
        await stack.world.sleep(1)
        (rescue,) = stack.log("dispatch_rescue")
        assert (rescue["job_id"], rescue["message"]) == (
            job_id,
            "put back into the queue: its worker is gone",
        )
        assert await drain_queue(stack) == [job_id]

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-33", "TQ-081")
def test_a_job_whose_worker_is_lost_during_dispatch_fails() -> None:
    """If the worker is lost once the job is RUNNING, the job ends as WORKER_LOST instead of never."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        await stack.beat()
        swapping, plan = notify_at("TransitionJobStatus")
        stack.fail(plan)
        fetching = asyncio.create_task(stack.fetch())
        await swapping.wait()
        fetching.cancel()
        await asyncio.wait([fetching])
        status = await stack.wait_until_terminal(job_id)
        assert (status.status, status.failure_reason) == (FAILED, "WORKER_LOST")
        assert stack.anomalies(job_id) == ["its worker did not wait for it"]

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-33", "TQ-145", "CH-38")
@pytest.mark.parametrize("slots", [1, 3])
def test_an_assignment_that_never_arrived_is_detected(slots: int) -> None:
    """A worker does not run a job that its heartbeats do not name; that job fails."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        await stack.beat(slots=slots)
        stack.fail(once("FetchWork", Fault.AFTER, principal="worker", times=slots))
        stack.deployment.start("worker")
        status = await stack.wait_until_terminal(job_id, seconds=10)
        assert (status.status, status.failure_reason) == (FAILED, "WORKER_LOST")
        assert stack.anomalies(job_id) == ["its worker does not run it"]
        assert (await stack.wait_until_terminal(await stack.submit_job())).status == DONE

    play(scenario, without=NO_WORKER, WORKER_SLOTS=str(slots))


@pytest.mark.req("CH-38")
def test_a_worker_that_does_not_say_how_many_slots_it_has_is_not_suspected() -> None:
    """Dispatch ignores the capacity hint: without one, any number of jobs is assigned and stays assigned."""

    async def scenario(stack: Stack) -> None:
        jobs = [await stack.submit_job() for _ in range(3)]
        await stack.beat(slots=0)
        assert [(await stack.fetch()).job_id for _ in jobs] == jobs
        for _ in range(8):
            await stack.world.sleep(1)
            await stack.beat(slots=0)
            await stack.fetch()
        assert stack.anomalies() == []
        for job_id in jobs:
            assert (await stack.report(job_id)).accepted

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-38", "TQ-145")
def test_more_jobs_than_slots_are_assigned_all_the_same() -> None:
    """A worker may fetch more jobs than it has slots; they are logged, and not ended before the timeout."""

    async def scenario(stack: Stack) -> None:
        jobs = [await stack.submit_job() for _ in range(3)]
        await stack.beat(slots=2)
        assert [(await stack.fetch()).job_id for _ in jobs] == jobs
        assert stack.anomalies(jobs[0]) == ["its worker asks for work as if it had none"]
        assert stack.anomalies(jobs[2]) == []
        for job_id in jobs:
            assert (await stack.report(job_id)).accepted
            assert (await stack.status(job_id)).failure_reason == ""

    play(scenario, without=NO_WORKER)
