"""Submit: create, then enqueue; the compensation of a failed step, and repeated keys."""

from __future__ import annotations

import asyncio

import pytest

from generated.taskqueue.errors import SubmitNotAccepted
from generated.taskqueue.messages import (
    DONE,
    QUEUED,
    DeleteJobIfStatusRequest,
    DeleteJobIfStatusResponse,
    DequeueJobRequest,
    EnqueueJobResponse,
    JobSpec,
    JobStatus,
    SubmitJobRequest,
)
from runtime.call.conditions import Failure
from runtime.model.text import is_uuid4
from runtime.simulation import Exchange, Fault
from tests.support.taskqueue.fault_plans import fail_calls
from tests.support.taskqueue.stack import NO_WORKER, SPEC, Stack, play


async def expect_failure(stack: Stack, key: str = "") -> Failure:
    with pytest.raises(Failure) as refused:
        await stack.submit(key=key)
    return refused.value


@pytest.mark.req("TQ-067", "TQ-054", "TQ-003", "TQ-052", "CH-05", "CH-07")
def test_a_submit_creates_then_enqueues() -> None:
    """The record comes first and the queue second, and the answer has the fields of the record."""

    async def scenario(stack: Stack) -> None:
        answer = await stack.submit()
        assert stack.calls("gateway") == ["CreateJob", "EnqueueJob"]
        assert is_uuid4(answer.job_id)
        assert answer.initial_status == QUEUED
        assert answer.accepted_at_ms == (await stack.status(answer.job_id)).created_at_ms > 0

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-068", "CH-17", "CH-75")
@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER, Fault.TIMEOUT])
def test_a_failed_create_goes_no_further(fault: Fault) -> None:
    """Nothing is enqueued, a create without a key is not repeated, and a possible leak is logged."""

    async def scenario(stack: Stack) -> None:
        stack.fail(fail_calls("CreateJob", fault=fault))
        assert (await expect_failure(stack)).grpc == "UNAVAILABLE"
        assert stack.calls("gateway") == ["CreateJob"]
        (anomaly,) = stack.log("consistency_anomaly")
        assert "job_id" not in anomaly and "client_request_id" not in anomaly

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-17", "CH-75", "TQ-112")
def test_a_failed_create_under_a_key_is_repeated() -> None:
    """With a key the create is tried four times, and it is no anomaly: a repeat finds the record."""

    async def scenario(stack: Stack) -> None:
        stack.fail(fail_calls("CreateJob"))
        call = stack.call(seconds=2.9)
        with pytest.raises(Failure):
            await stack.public.submit_job(SubmitJobRequest(spec=SPEC, client_request_id="k"), call)
        assert set(stack.calls("gateway")) == {"CreateJob"}
        assert len(stack.calls("gateway")) >= 4
        assert stack.anomalies() == []

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-069", "TQ-070", "CH-18")
def test_a_failed_enqueue_deletes_the_record() -> None:
    """The record is deleted if it is still QUEUED, its entry in the queue is removed, and nothing remains."""

    async def scenario(stack: Stack) -> None:
        stack.fail(fail_calls("EnqueueJob"))
        failure = await expect_failure(stack)
        assert (failure.grpc, type(failure)) == ("UNAVAILABLE", SubmitNotAccepted)
        calls = [each for each in stack.exchanges if each.principal == "gateway"]
        names = [each.name for each in calls]
        assert names == ["CreateJob", *["EnqueueJob"] * 4, "DeleteJobIfStatus", "RemoveJobIfPresent"]
        deleted = calls[-2].request
        assert isinstance(deleted, DeleteJobIfStatusRequest)
        assert deleted.expected_status == QUEUED
        (error,) = [line for line in stack.log("rpc_error") if "SubmitJob" in line["method"]]
        assert error["job_id"] == deleted.job_id
        stack.heal()
        assert await stack.list() == []
        assert stack.anomalies() == []

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-19")
def test_a_refused_enqueue_is_a_failed_enqueue() -> None:
    """If the queue answers that it did not accept the job, the submit is compensated, too."""

    async def scenario(stack: Stack) -> None:
        stack.fail(lambda each: EnqueueJobResponse(accepted=False) if each.name == "EnqueueJob" else None)
        assert isinstance(await expect_failure(stack), SubmitNotAccepted)
        assert stack.calls("gateway")[-2:] == ["DeleteJobIfStatus", "RemoveJobIfPresent"]
        assert await stack.list() == []

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-071", "CH-14")
def test_a_failed_compensation_is_logged() -> None:
    """When the delete fails as well, the client gets the same error and the log has the job's id."""

    async def scenario(stack: Stack) -> None:
        stack.fail(fail_calls("EnqueueJob", "DeleteJobIfStatus"))
        assert isinstance(await expect_failure(stack), SubmitNotAccepted)
        stack.heal()
        (job,) = await stack.list()
        assert stack.anomalies(job.job_id) != []

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-14")
@pytest.mark.parametrize(
    ("status", "is_enqueued"),
    [(JobStatus.JOB_STATUS_UNSPECIFIED, False), (JobStatus.RUNNING, True), (DONE, True)],
)
def test_a_delete_that_did_not_apply(status: JobStatus.ValueType, is_enqueued: bool) -> None:
    """A missing job is as good as deleted; a job that runs or ended shows that the enqueue did apply."""

    def plan(exchange: Exchange) -> Fault | DeleteJobIfStatusResponse | None:
        if exchange.name == "DeleteJobIfStatus":
            return DeleteJobIfStatusResponse(deleted=False, current_status=status)
        return Fault.BEFORE if exchange.name == "EnqueueJob" else None

    async def scenario(stack: Stack) -> None:
        stack.fail(plan)
        assert isinstance(await expect_failure(stack), SubmitNotAccepted)
        assert ("RemoveJobIfPresent" in stack.calls("gateway")) != is_enqueued
        assert bool(stack.anomalies()) == is_enqueued

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-18", "TQ-070")
def test_an_enqueue_that_applied_without_an_answer_is_removed() -> None:
    """If the answer of the enqueue was lost, the id is removed from the queue again, and logged."""

    async def scenario(stack: Stack) -> None:
        stack.fail(fail_calls("EnqueueJob", fault=Fault.AFTER))
        await expect_failure(stack)
        (anomaly,) = stack.log("consistency_anomaly")
        assert anomaly["message"] == "a failed enqueue had taken effect; removed"
        assert is_uuid4(anomaly["job_id"])
        stack.heal()
        call = stack.call("coordinator")
        assert not (
            await stack.queue_of_coordinator.dequeue_job(DequeueJobRequest(worker_id="w"), call)
        ).found

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-73")
def test_a_compensation_does_not_end_with_the_client() -> None:
    """If a client gives up while the enqueue hangs, the submit is undone completely."""

    async def scenario(stack: Stack) -> None:
        stack.fail(fail_calls("EnqueueJob", fault=Fault.TIMEOUT))
        with pytest.raises(Failure):
            await stack.public.submit_job(SubmitJobRequest(spec=SPEC), stack.call(seconds=0.5))
        await stack.world.sleep(3)
        stack.heal()
        assert await stack.list() == []

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-105", "TQ-112", "CH-05", "CH-06", "CH-16")
def test_a_key_finds_its_job() -> None:
    """Twenty submits with one key, at once and later, are one job with one time of acceptance."""

    async def scenario(stack: Stack) -> None:
        answers = await asyncio.gather(*(stack.submit(key="k") for _ in range(20)))
        await stack.world.sleep(1)
        answers.append(await stack.submit(key="k"))
        assert len({(each.job_id, each.accepted_at_ms) for each in answers}) == 1
        assert len(await stack.list()) == 1

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-06", "CH-07")
def test_a_key_of_a_finished_job_does_not_enqueue_it_again() -> None:
    """Once the job is not QUEUED any more, a replay enqueues nothing and still has the time of acceptance."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job(key="k")
        await stack.wait_until_terminal(job_id)
        before = len(stack.exchanges)
        answer = await stack.submit(key="k")
        assert (answer.job_id, answer.initial_status) == (job_id, QUEUED)
        assert "EnqueueJob" not in stack.calls("gateway", before)

    play(scenario)


@pytest.mark.req("CH-06")
def test_a_replay_repairs_a_lost_enqueue() -> None:
    """If an earlier submit ended with the job outside the queue, its repeat enqueues it."""

    async def scenario(stack: Stack) -> None:
        stack.fail(fail_calls("EnqueueJob", "DeleteJobIfStatus"))
        await expect_failure(stack, "k")
        stack.heal()
        (job,) = await stack.list()
        assert (await stack.submit_job(key="k")) == job.job_id
        stack.deployment.start("worker")
        assert (await stack.wait_until_terminal(job.job_id)).status == DONE

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-06", "TQ-069")
def test_a_replay_never_deletes_an_accepted_job() -> None:
    """When the enqueue of a replay fails, the record stays and an anomaly is logged."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job(key="k")
        stack.fail(fail_calls("EnqueueJob"))
        assert (await expect_failure(stack, "k")).grpc == "UNAVAILABLE"
        assert "DeleteJobIfStatus" not in stack.calls("gateway")
        assert stack.anomalies(job_id) != []
        stack.heal()
        assert (await stack.status(job_id)).status == QUEUED

    play(scenario, without=NO_WORKER)


@pytest.mark.req("CH-15", "TQ-070", "TQ-105")
def test_the_key_of_a_compensated_submit_is_free() -> None:
    """After a submit was undone, its key creates a new job, also with another spec."""

    async def scenario(stack: Stack) -> None:
        stack.fail(fail_calls("EnqueueJob"))
        await expect_failure(stack, "k")
        stack.heal()
        job_id = await stack.submit_job(JobSpec(job_type="other"), "k")
        assert [job.job_id for job in await stack.list()] == [job_id]

    play(scenario, without=NO_WORKER)
