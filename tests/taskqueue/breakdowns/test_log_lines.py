"""The log lines of failed calls, and the health of a node that stops."""

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
from tests.support.taskqueue.callers import Credentials, caller, principal
from tests.support.taskqueue.logs import Line, lines, wait_for_line
from tests.support.taskqueue.matrix_oracle import METHODS, Called
from tests.support.taskqueue.single_node import terminate, wait_for_exit

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
async def test_a_refused_request_is_logged_once(
    fragile: Launched, method: str, request_: Any, code: str
) -> None:
    """It has method, code, caller and message, and the job if the request names one."""
    line = await find_only_line(fragile, Credentials("client"), method, request_, code)
    assert line["caller"] == "client"
    assert line.get("job_id", "") == getattr(request_, "job_id", "")
    assert line["message"]


@pytest.mark.req("TQ-165", "TQ-149")
async def test_a_reused_key_is_logged_once(fragile: Launched, fragile_api: Api) -> None:
    """The gateway logs the precondition that its client broke."""
    key = new_key()
    await fragile_api.submit("first", key=key)
    request = SubmitJobRequest(spec=JobSpec(job_type="second"), client_request_id=key)
    assert await find_only_line(fragile, Credentials("client"), "SubmitJob", request, "FAILED_PRECONDITION")


@pytest.mark.req("TQ-165", "CH-65")
async def test_a_denied_caller_is_logged_once(fragile: Launched) -> None:
    """The called node logs both kinds of denial, with the caller if it is known."""
    request = GetJobRecordRequest(job_id="nobody")
    line = await find_only_line(
        fragile, principal(fragile, "worker"), "GetJobRecord", request, "PERMISSION_DENIED"
    )
    assert (line["caller"], line["job_id"]) == ("worker", "nobody")
    bad = Credentials(None, metadata=(("authorization", "Bearer bad"),))
    line = await find_only_line(fragile, bad, "GetJobRecord", request, "UNAUTHENTICATED")
    assert "caller" not in line
    assert "Bearer" not in line["message"]


@pytest.mark.req("TQ-153", "TQ-165")
async def test_a_caller_that_stops_waiting_is_logged_once(fragile: Launched) -> None:
    """A node that hangs makes its callers run out of time, and the node that they called logs it."""
    frozen = psutil.Process(fragile.processes["job"].pid)
    frozen.suspend()
    try:
        request = GetJobStatusRequest(job_id="nobody")
        # Less than all attempts of the gateway take, so that it does not give up before its caller does. That
        # the caller hangs up may be heard before the same moment comes by the clock of the node.
        await find_only_line(
            fragile,
            Credentials("client"),
            "GetJobStatus",
            request,
            "DEADLINE_EXCEEDED",
            "CANCELLED",
            patience=2,
        )
    finally:
        frozen.resume()


@pytest.mark.req("CH-82", "CH-45")
async def test_a_node_says_that_it_no_longer_serves_before_it_stops(fragile: Launched) -> None:
    """A watcher of its health is notified, and only then loses the node, which ends in order."""
    process = fragile.processes["queue"]
    async with grpc.aio.insecure_channel(fragile.endpoints["queue"]) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        watch = health.Watch(health_pb2.HealthCheckRequest(), timeout=60)
        statuses = []
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            async for answer in watch:
                statuses.append(answer.status)
                if answer.status == HealthStatus.SERVING:
                    terminate(process)
        assert statuses == [HealthStatus.SERVING, HealthStatus.NOT_SERVING]
        assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
    assert await wait_for_exit(process) == 0


async def find_only_line(
    deployment: Launched,
    credentials: Credentials,
    method: str,
    request: Any,
    code: str,
    *or_else: str,
    patience: float = 30.0,
) -> Line:
    """Make a call that fails, and find the one line that the called node has written about it."""
    called, request_id = BY_NAME[method], new_key()
    with_request_id = credentials._replace(metadata=(*credentials.metadata, ("x-request-id", request_id)))
    async with caller(deployment, with_request_id) as calling:
        await calling.channel(called.component).channel_ready()
        assert await calling.code(called, request, patience=patience) == code
    process = deployment.processes[called.component]
    name = f"{called.service}.{called.method}"
    line = await wait_for_line(process, "rpc_error", request_id=request_id, method=name)
    assert line["grpc_code"] in (code, *or_else)
    assert [each for each in lines(process, "rpc_error") if each.get("request_id") == request_id] == [line]
    return line
