"""What holds of all flows together: who calls whom, what may be repeated, what reading changes."""

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
from tests.support.taskqueue.fault_plans import failing, once
from tests.support.taskqueue.stack import Stack, play

REPEATABLE = [
    method.name
    for service in SYSTEM.services.values()
    for method in service.methods
    if method.policy.idempotency != "never"
]


async def everything(stack: Stack) -> None:
    """Every kind of life a job can have, with a failure on the way that calls for compensation."""
    done = await stack.submitted(key="k")
    failed = await stack.submitted(JobSpec(job_type="fail", work_duration_ms=100))
    running = await stack.submitted(JobSpec(job_type="sleep", work_duration_ms=2000))
    await stack.world.sleep(1.0)
    waiting = await stack.submitted()
    await stack.cancel(waiting)
    await stack.cancel(running)
    for name in ("EnqueueJob", "StoreResult"):
        stack.fail(failing(name, principal="gateway"))
        await asyncio.gather(stack.submit(), stack.cancel(failed), return_exceptions=True)
        stack.heal()
    await stack.rest(20)
    stack.fail(once("TransitionJobStatus", Fault.BEFORE))
    rescued = await stack.submitted()
    for job_id in (done, failed, running, waiting, rescued):
        await stack.ended(job_id)
        assert (await stack.result(job_id)).result_ready
    await stack.list()


@pytest.mark.req("TQ-020", "TQ-021", "TQ-022", "TQ-023", "TQ-060", "CH-01", "CH-02")
def test_nobody_calls_outside_the_matrix() -> None:
    """Over every flow, each caller stays within its row, and within the conditions in it."""
    stack = play(everything, WORKER_SLOTS="1")
    for each in stack.exchanges:
        permission = SYSTEM.matrix[each.method.path][each.principal]
        assert all(getattr(each.request, name) == value for name, value in permission.only.items())
    pairs = {(each.principal, each.name) for each in stack.exchanges}
    assert ("coordinator", "EnqueueJob") in pairs
    assert ("coordinator", "RemoveJobIfPresent") not in pairs
    assert not [line for line in stack.log("rpc_error") if line["grpc_code"] == "PERMISSION_DENIED"]


@pytest.mark.req("TQ-060", "TQ-086", "TQ-084", "TQ-055")
def test_the_gateway_moves_jobs_in_one_way_only() -> None:
    """The gateway asks for QUEUED to CANCELED and stores CANCELED; everything else is the coordinator's."""
    stack = play(everything, WORKER_SLOTS="1")
    moves = {
        (each.principal, each.request.actor, each.request.expected_from_status, each.request.to_status)
        for each in stack.exchanges
        if isinstance(each.request, TransitionJobStatusRequest)
    }
    assert {move for move in moves if move[0] == "gateway"} == {("gateway", "gateway", QUEUED, CANCELED)}
    assert all(caller == actor for caller, actor, *_ in moves)
    stored = {
        (each.principal, each.request.terminal_status)
        for each in stack.exchanges
        if isinstance(each.request, StoreResultRequest)
    }
    assert {status for caller, status in stored if caller == "gateway"} == {CANCELED}
    assert {status for caller, status in stored if caller == "coordinator"} >= {DONE, FAILED, CANCELED}


@pytest.mark.req("TQ-113", "TQ-114", "TQ-221", "TQ-116")
@pytest.mark.parametrize("name", REPEATABLE)
def test_a_call_that_may_be_repeated_does_no_harm_twice(name: str) -> None:
    """Each method that the spec calls repeatable is delivered twice throughout, and nothing comes of it."""

    def twice(exchange: Exchange) -> Fault | None:
        keyless = isinstance(exchange.request, SubmitJobRequest) and not exchange.request.client_request_id
        created = exchange.name == "CreateJob" and not getattr(exchange.request, "client_request_id", "")
        return Fault.TWICE if exchange.name == name and not keyless and not created else None

    async def scenario(stack: Stack) -> None:
        stack.fail(twice)
        jobs = [await stack.submitted(key=f"k{number}") for number in range(4)]
        failing_job = await stack.submitted(JobSpec(job_type="fail"), "f")
        await stack.cancel(jobs[3])
        ends = [(await stack.ended(job_id)).status for job_id in [*jobs, failing_job]]
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
def test_reading_changes_nothing() -> None:
    """Two reads in a row, in any state of a job, are the same."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submitted()
        seen = set()
        while (status := await stack.status(job_id)).status != DONE:
            again = await stack.status(job_id)
            assert again == status or again.status != status.status
            seen.add(status.status)
            await stack.world.sleep(0.05)
        assert JobStatus.RUNNING in seen
        assert await stack.status(job_id) == status
        assert await stack.result(job_id) == await stack.result(job_id)
        assert await stack.list() == await stack.list()

    play(scenario)


@pytest.mark.req("TQ-012", "TQ-220")
def test_a_new_gateway_answers_like_the_old_one() -> None:
    """The gateway keeps nothing: after a restart all jobs are there, with their keys and results."""

    async def scenario(stack: Stack) -> None:
        done, waiting = await stack.submitted(key="k"), await stack.submitted()
        await stack.ended(done)
        before = await stack.status(done), await stack.result(done)
        stack.deployment.crash("gateway")
        stack.deployment.start("gateway")
        assert (await stack.status(done), await stack.result(done)) == before
        assert await stack.submitted(key="k") == done
        assert (await stack.ended(waiting)).status == DONE

    play(scenario)


@pytest.mark.req("TQ-151", "TQ-153", "CH-77")
@pytest.mark.parametrize(("node", "unaffected"), [("job", set()), ("queue", {"status", "result", "list"})])
def test_a_component_that_is_down_is_unavailable(node: str, unaffected: set[str]) -> None:
    """Whatever needs the component is UNAVAILABLE, and whatever does not goes on."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submitted()
        stack.deployment.crash(node)
        asked: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
            "submit": stack.submit,
            "status": lambda: stack.status(job_id),
            "result": lambda: stack.result(job_id),
            "cancel": lambda: stack.cancel(job_id),
            "list": stack.list,
        }
        for name, ask in asked.items():
            (outcome,) = await asyncio.gather(ask(), return_exceptions=True)
            code = getattr(outcome, "grpc", "OK")
            assert code == ("OK" if name in unaffected else "UNAVAILABLE"), name

    play(scenario, without=("worker",))


@pytest.mark.req("TQ-165", "TQ-163")
def test_every_refusal_leaves_one_line_where_it_was_made() -> None:
    """Each answer that is not OK is in the log of the one who gave it, once, with its code."""

    async def scenario(stack: Stack) -> None:
        await stack.submit(key="k")
        call = stack.call
        asked = [
            stack.submit(JobSpec()),
            stack.submit(JobSpec(job_type="other"), "k"),
            stack.status("nobody's"),
            stack.public.cancel_job(CancelJobRequest(), call()),
            stack.report("nobody's"),
            stack.queue.enqueue_job(EnqueueJobRequest(), call("gateway")),
            stack.queue.remove_job_if_present(RemoveJobIfPresentRequest(), call("gateway")),
            stack.jobs.delete_job_if_status(DeleteJobIfStatusRequest(), call("gateway")),
        ]
        outcomes = [await asyncio.gather(each, return_exceptions=True) for each in asked]
        codes = [getattr(outcome, "grpc", "OK") for (outcome,) in outcomes]
        assert "OK" not in codes
        answered = {str(each.method) for each in stack.exchanges if each.failure is not None}
        lines = stack.log("rpc_error")
        for method in answered:
            refused = [each for each in stack.exchanges if str(each.method) == method and each.failure]
            assert len([line for line in lines if line["method"] == method]) == len(refused), method

    play(scenario, without=("worker",))
