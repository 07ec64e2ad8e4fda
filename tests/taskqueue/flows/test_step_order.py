"""No flow of the taskqueue can omit a step that its transition comes after, in either design."""

from __future__ import annotations

from typing import Any

import pytest

from generated.taskqueue.messages import (
    CANCELED,
    DONE,
    QUEUED,
    StoreResultRequest,
    StoreResultResponse,
    TransitionJobStatusRequest,
)
from generated.taskqueue.system import SYSTEM
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.simulation import SimulatedDeployment, SimulatedWorld, simulate
from tests.support.taskqueue.stack import NO_WORKER, Stack, play


class Forgetful:
    """Claims to have stored an envelope, and calls no component for it."""

    async def store_result(self, request: StoreResultRequest, _call: Call) -> StoreResultResponse:
        return StoreResultResponse(stored=True, current_terminal_status=request.terminal_status)


@pytest.mark.req("TQ-058", "TQ-060", "TQ-086")
def test_a_queued_cancel_without_its_envelope_is_refused() -> None:
    """A gateway that omits the envelope cannot cancel: the job is requeued and runs."""

    async def scenario(stack: Stack) -> None:
        job_id = await stack.submit_job()
        gateway: Any = stack.deployment.nodes["gateway"].handlers["gateway"]
        gateway._results = Forgetful()
        with pytest.raises(Failure) as refused:
            await stack.cancel(job_id)
        assert refused.value.grpc == "UNAVAILABLE"
        denied = stack.log("call_denied")
        assert {line["service"] for line in denied} == {"gateway"}
        assert all(
            "'withdraw' comes after ResultInternalService.StoreResult" in line["message"] for line in denied
        )
        assert "TransitionJobStatus" not in stack.calls("gateway")
        stack.deployment.start("worker")
        assert (await stack.wait_until_terminal(job_id)).status == DONE

    play(scenario, without=NO_WORKER)


@pytest.mark.req("TQ-066", "CH-89", "TQ-060")
def test_the_order_holds_within_a_process_as_well() -> None:
    """The components of a monolith node have the same order, although no call crosses a process boundary."""

    async def run(world: SimulatedWorld) -> None:
        deployment = SimulatedDeployment(SYSTEM, "monolith", world)
        node = next(iter(deployment.nodes.values()))
        gateway: Any = node.handlers["gateway"]
        call = Call(world=world, log=node.log, caller="client", component="gateway")
        request = TransitionJobStatusRequest(job_id="j", expected_from_status=QUEUED, to_status=CANCELED)
        with pytest.raises(Failure, match="'withdraw' comes after") as refused:
            await gateway._jobs.transition_job_status(request, call)
        assert refused.value.grpc == "PERMISSION_DENIED"
        await deployment.stop()

    simulate(run)
