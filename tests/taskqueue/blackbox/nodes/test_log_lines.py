"""What the log tells of calls that failed, and what health tells of a node that stops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import grpc
import grpc.aio
import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from generated.taskqueue.messages import (
    CancelJobRequest,
    GetJobRecordRequest,
    GetJobStatusRequest,
    JobSpec,
    SubmitJobRequest,
)
from runtime.launch import Launched
from tests.support.taskqueue.api import Api, new_key
from tests.support.taskqueue.callers import Shown, caller, principal
from tests.support.taskqueue.logs import Line, lines, told
from tests.support.taskqueue.matrix_oracle import METHODS, Called
from tests.support.taskqueue.single_node import exit_code, terminate

pytestmark = pytest.mark.asyncio(loop_scope="session")

BY_NAME: Mapping[str, Called] = {each.method: each for each in METHODS}
HealthStatus = health_pb2.HealthCheckResponse
REFUSALS = [
    ("SubmitJob", SubmitJobRequest(), "INVALID_ARGUMENT"),
    ("GetJobStatus", GetJobStatusRequest(job_id="nobody"), "NOT_FOUND"),
    ("CancelJob", CancelJobRequest(job_id="nobody"), "NOT_FOUND"),
]


@pytest.mark.req("TQ-165", "TQ-163", "CH-84")
@pytest.mark.parametrize(
    ("method", "request_", "code"), REFUSALS, ids=[f"{each[0]} {each[2]}" for each in REFUSALS]
)
async def test_a_refused_request_leaves_one_line(
    whole: Launched, method: str, request_: Any, code: str
) -> None:
    """It has method, code, caller and message, and the job if the request names one."""
    line = await only_line(whole, Shown("client"), method, request_, code)
    assert line["caller"] == "client"
    assert line.get("job_id", "") == getattr(request_, "job_id", "")
    assert line["message"]


@pytest.mark.req("TQ-165", "TQ-149")
async def test_a_reused_key_leaves_one_line(whole: Launched, tried: Api) -> None:
    """The gateway tells of the precondition that its client broke."""
    key = new_key()
    await tried.submit("first", key=key)
    request = SubmitJobRequest(spec=JobSpec(job_type="second"), client_request_id=key)
    assert await only_line(whole, Shown("client"), "SubmitJob", request, "FAILED_PRECONDITION")


@pytest.mark.req("TQ-165", "CH-65")
async def test_a_denied_caller_leaves_one_line(whole: Launched) -> None:
    """Both kinds of denial are told by the node that was called, with the caller if it is known."""
    request = GetJobRecordRequest(job_id="nobody")
    line = await only_line(whole, principal(whole, "worker"), "GetJobRecord", request, "PERMISSION_DENIED")
    assert (line["caller"], line["job_id"]) == ("worker", "nobody")
    bad = Shown(None, metadata=(("authorization", "Bearer bad"),))
    line = await only_line(whole, bad, "GetJobRecord", request, "UNAUTHENTICATED")
    assert "caller" not in line
    assert "Bearer" not in line["message"]


@pytest.mark.req("TQ-153", "TQ-165")
async def test_a_caller_who_stops_waiting_leaves_one_line(whole: Launched) -> None:
    """A node that hangs makes its callers run out of time, and the one they called tells so."""
    frozen = psutil.Process(whole.processes["job"].pid)
    frozen.suspend()
    try:
        request = GetJobStatusRequest(job_id="nobody")
        # Less than all attempts of the gateway take, so that it does not give up before its caller does. That
        # the caller hangs up may be heard before the same moment comes by the clock of the node.
        await only_line(
            whole, Shown("client"), "GetJobStatus", request, "DEADLINE_EXCEEDED", "CANCELLED", patience=2
        )
    finally:
        frozen.resume()


@pytest.mark.req("CH-82", "CH-45")
async def test_a_node_says_that_it_no_longer_serves_before_it_stops(whole: Launched) -> None:
    """Whoever watches its health is told, and only then loses the node, which ends in order."""
    process = whole.processes["queue"]
    async with grpc.aio.insecure_channel(whole.endpoints["queue"]) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        watch = health.Watch(health_pb2.HealthCheckRequest(), timeout=60)
        seen = []
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            async for answer in watch:
                seen.append(answer.status)
                if answer.status == HealthStatus.SERVING:
                    terminate(process)
        assert seen == [HealthStatus.SERVING, HealthStatus.NOT_SERVING]
        assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
    assert await exit_code(process) == 0


async def only_line(
    deployment: Launched,
    shown: Shown,
    method: str,
    request: Any,
    code: str,
    *or_else: str,
    patience: float = 30.0,
) -> Line:
    """Makes a call that fails, and finds the one line that the called node has written about it."""
    called, request_id = BY_NAME[method], new_key()
    marked = shown._replace(metadata=(*shown.metadata, ("x-request-id", request_id)))
    async with caller(deployment, marked) as calling:
        await calling.channel(called.component).channel_ready()
        assert await calling.code(called, request, patience=patience) == code
    process = deployment.processes[called.component]
    name = f"{called.service}.{called.method}"
    line = await told(process, "rpc_error", request_id=request_id, method=name)
    assert line["grpc_code"] in (code, *or_else)
    assert [each for each in lines(process, "rpc_error") if each.get("request_id") == request_id] == [line]
    return line
