"""Properties of all flows: the caller matrix, repeatable calls, and reads without side effects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from generated.taskqueue.messages import (
    CANCELED,
    DONE,
    FAILED,
    QUEUED,
    CancelJobRequest,
    DeleteJobIfStatusRequest,
    EnqueueJobRequest,
    JobSpec,
    JobStatus,
    RemoveJobIfPresentRequest,
    StoreResultRequest,
    SubmitJobRequest,
    TransitionJobStatusRequest,
)
from generated.taskqueue.system import SYSTEM
from runtime.simulation import Exchange, Fault
from tests.support.taskqueue.fault_plans import fail_calls, once
from tests.support.taskqueue.stack import Stack, play

REPEATABLE = [
    method.name
    for service in SYSTEM.services.values()
    for method in service.methods
    if method.policy.idempotency != "never"
]


async def play_everything(stack: Stack) -> None:
    """Play every kind of life that a job can have, with a failure that needs compensation."""
    ended = await stack.submit_job(key="k")
    failed = await stack.submit_job(JobSpec(job_type="fail", work_duration_ms=100))
    running = await stack.submit_job(JobSpec(job_type="sleep", work_duration_ms=2000))
    await stack.world.sleep(1.0)
    waiting = await stack.submit_job()
    await stack.cancel(waiting)
    await stack.cancel(running)
    for name in ("EnqueueJob", "StoreResult"):
        stack.fail(fail_calls(name, principal="gateway"))
        await asyncio.gather(stack.submit(), stack.cancel(failed), return_exceptions=True)
        stack.heal()
    await stack.wait_until_idle(20)
    stack.fail(once("TransitionJobStatus", Fault.BEFORE))
    rescued = await stack.submit_job()
    for job_id in (ended, failed, running, waiting, rescued):
        await stack.wait_until_terminal(job_id)
        assert (await stack.result(job_id)).result_ready
    await stack.list()


@pytest.mark.req("TQ-020", "TQ-021", "TQ-022", "TQ-023", "TQ-060", "CH-01", "CH-02")
def test_no_call_is_outside_the_caller_matrix() -> None:
    """Over every flow, each caller stays within its row of the matrix, and within its conditions."""
    stack = play(play_everything, WORKER_SLOTS="1")
    for each in stack.exchanges:
        permission = SYSTEM.matrix[each.method.path][each.principal]
        assert all(getattr(each.request, name) == value for name, value in permission.only.items())
    pairs = {(each.principal, each.name) for each in stack.exchanges}
    assert ("coordinator", "EnqueueJob") in pairs
    assert ("coordinator", "RemoveJobIfPresent") not in pairs
    assert not [line for line in stack.log("rpc_error") if line["grpc_code"] == "PERMISSION_DENIED"]


@pytest.mark.req("TQ-060", "TQ-086", "TQ-084", "TQ-055")
def test_the_gateway_makes_one_transition_only() -> None:
    """The gateway asks for QUEUED to CANCELED and stores CANCELED; all others are the coordinator's."""
    stack = play(play_everything, WORKER_SLOTS="1")
    transitions = {
        (each.principal, each.request.actor, each.request.expected_from_status, each.request.to_status)
        for each in stack.exchanges
        if isinstance(each.request, TransitionJobStatusRequest)
    }
    assert {each for each in transitions if each[0] == "gateway"} == {
        ("gateway", "gateway", QUEUED, CANCELED)
    }
    assert all(caller == actor for caller, actor, *_ in transitions)
    stored = {
        (each.principal, each.request.terminal_status)
        for each in stack.exchanges
        if isinstance(each.request, StoreResultRequest)
    }
    assert {status for caller, status in stored if caller == "gateway"} == {CANCELED}
    assert {status for caller, status in stored if caller == "coordinator"} >= {DONE, FAILED, CANCELED}


@pytest.mark.req("TQ-113", "TQ-114", "TQ-221", "TQ-116")
@pytest.mark.parametrize("name", REPEATABLE)
def test_a_repeatable_call_may_be_delivered_twice(name: str) -> None:
    """Each method that the spec calls repeatable is delivered twice throughout, without any difference."""

    def twice(exchange: Exchange) -> Fault | None:
        keyless = isinstance(exchange.request, SubmitJobRequest) and not exchange.request.client_request_id
        created = exchange.name == "CreateJob" and not getattr(exchange.request, "client_request_id", "")
        return Fault.TWICE if exchange.name == name and not keyless and not created else None

    async def scenario(stack: Stack) -> None:
        stack.fail(twice)
        jobs = [await stack.submit_job(key=f"k{number}") for number in range(4)]
        failing_job = await stack.submit_job(JobSpec(job_type="fail"), "f")
        await stack.cancel(jobs[3])
        ends = [(await stack.wait_until_terminal(job_id)).status for job_id in [*jobs, failing_job]]
        assert ends[:3] == [DONE, DONE, DONE]
        assert (ends[3] in (CANCELED, DONE), ends[4]) == (True, FAILED)
        await stack.world.sleep(2)
        assert len(await stack.list()) == 5
        for job_id in jobs:
            await stack.result(job_id)
        starts = [line["job_id"] for line in stack.log("transition") if line["transition"] == "dispatch"]
        assert len(starts) == len(set(starts))

    play(scenario, WORKER_SLOTS="1")


@pytest.mark.req("TQ-004", "TQ-005", "TQ-113")
def test_reads_change_nothing() -> None:
    """Two reads in a row, in any state of a job, are the same."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        statuses = set()
        while (status := await stack.status(job_id)).status != DONE:
            again = await stack.status(job_id)
            assert again == status or again.status != status.status
            statuses.add(status.status)
            await stack.world.sleep(0.05)
        assert JobStatus.RUNNING in statuses
        assert await stack.status(job_id) == status
        assert await stack.result(job_id) == await stack.result(job_id)
        assert await stack.list() == await stack.list()

    play(scenario)


@pytest.mark.req("TQ-012", "TQ-220")
def test_a_restarted_gateway_answers_like_before() -> None:
    """The gateway has no state: after a restart all jobs are there, with their keys and results."""

    async def scenario(stack: Stack) -> None:
        ended, waiting = await stack.submit_job(key="k"), await stack.submit_job()
        await stack.wait_until_terminal(ended)
        before = await stack.status(ended), await stack.result(ended)
        stack.deployment.crash("gateway")
        stack.deployment.start("gateway")
        assert (await stack.status(ended), await stack.result(ended)) == before
        assert await stack.submit_job(key="k") == ended
        assert (await stack.wait_until_terminal(waiting)).status == DONE

    play(scenario)


@pytest.mark.req("TQ-151", "TQ-153", "CH-77")
@pytest.mark.parametrize(("node", "unaffected"), [("job", set()), ("queue", {"status", "result", "list"})])
def test_a_component_that_is_down_is_unavailable(node: str, unaffected: set[str]) -> None:
    """Whatever needs the component is UNAVAILABLE, and whatever does not goes on."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        stack.deployment.crash(node)
        calls: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
            "submit": stack.submit,
            "status": lambda: stack.status(job_id),
            "result": lambda: stack.result(job_id),
            "cancel": lambda: stack.cancel(job_id),
            "list": stack.list,
        }
        for name, ask in calls.items():
            (outcome,) = await asyncio.gather(ask(), return_exceptions=True)
            code = getattr(outcome, "grpc", "OK")
            assert code == ("OK" if name in unaffected else "UNAVAILABLE"), name

    play(scenario, without=("worker",))


@pytest.mark.req("TQ-165", "TQ-163")
def test_every_refusal_is_logged_once_by_the_refusing_node() -> None:
    """Each answer that is not OK is in the log of the node that refused, once, with its code."""

    async def scenario(stack: Stack) -> None:
        await stack.submit(key="k")
        call = stack.call
        calls = [
            stack.submit(JobSpec()),
            stack.submit(JobSpec(job_type="other"), "k"),
            stack.status("nobody's"),
            stack.public.cancel_job(CancelJobRequest(), call()),
            stack.report("nobody's"),
            stack.queue.enqueue_job(EnqueueJobRequest(), call("gateway")),
            stack.queue.remove_job_if_present(RemoveJobIfPresentRequest(), call("gateway")),
            stack.jobs.delete_job_if_status(DeleteJobIfStatusRequest(), call("gateway")),
        ]
        outcomes = [await asyncio.gather(each, return_exceptions=True) for each in calls]
        codes = [getattr(outcome, "grpc", "OK") for (outcome,) in outcomes]
        assert "OK" not in codes
        answered = {str(each.method) for each in stack.exchanges if each.failure is not None}
        lines = stack.log("rpc_error")
        for method in answered:
            refused = [each for each in stack.exchanges if str(each.method) == method and each.failure]
            assert len([line for line in lines if line["method"] == method]) == len(refused), method

    play(scenario, without=("worker",))
