"""The same methods over gRPC and over HTTP, and the conformance of the OpenAPI description."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from google.protobuf.json_format import MessageToDict
from jsonschema import Draft202012Validator

from generated.queuey import messages
from generated.queuey.system import SYSTEM
from runtime.call.conditions import CONDITION_HEADER
from tests.support.deep import DEEP
from tests.support.queuey.in_process_queue import House
from tests.support.queuey.processes import Process
from tests.support.schemathesis_check import check_description

METHODS = {method.name: method for method in SYSTEM.services["QueueService"].methods}


class Remote:
    """Calls over gRPC without any code of the project."""

    def __init__(self, port: int) -> None:
        self._channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}", [("grpc.enable_retries", 0)])

    async def close(self) -> None:
        await self._channel.close()

    async def call(self, name: str, **fields: Any) -> Any:
        """The answer; where there is none, the code and the condition."""
        method = METHODS[name]
        stub: Any = self._channel.unary_unary(
            method.path,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=method.response.FromString,
        )
        try:
            return await stub(method.request(**fields), timeout=30)
        except grpc.aio.AioRpcError as error:
            metadata = dict(error.trailing_metadata() or ())
            return error.code().name, metadata.get(CONDITION_HEADER)


@pytest_asyncio.fixture
async def remote(house: House) -> AsyncIterator[Remote]:
    remote = Remote(house.grpc_port)
    yield remote
    await remote.close()


def to_json(job: Any) -> dict[str, Any]:
    """A job as HTTP returns it."""
    body = MessageToDict(job, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    for name in ("created_at", "updated_at", "completed_at"):
        body[name] = int(body[name]) if name in body else None
    unset = {"input_addr": None, "runner_id": None, "output_addr": None}
    return {**unset, **body, "status": body["status"].lower()}


async def test_a_job_over_grpc_is_the_job_over_http(house: House, remote: Remote) -> None:
    created = await remote.call("CreateJob", binary_addr="b", input_addr="i")
    assert to_json(created) == await house.get(created.job_id)
    claimed = await remote.call("ClaimJob", runner_id="r")
    assert to_json(claimed) == await house.get(created.job_id)
    tickled = await remote.call("TickleJob", job_id=created.job_id.lower(), runner_id="r", run_attempts=1)
    assert tickled.job_id == created.job_id
    completed = await remote.call(
        "CompleteJob", job_id=created.job_id, status=messages.COMPLETED, output_addr="o", exit_code=0
    )
    assert to_json(completed) == await house.get(created.job_id)
    report = await remote.call("GetReport", job_id=created.job_id)
    assert [each.to_status for each in report.changes] == ["pending", "active", "completed"]
    counts = await remote.call("CountJobs")
    assert (counts.completed, counts.pending) == (1, 0)
    listed = await remote.call("ListJobs", status=[messages.COMPLETED])
    assert [each.job_id for each in listed.jobs] == [created.job_id]


async def test_a_claim_without_jobs_is_an_empty_job(remote: Remote) -> None:
    assert await remote.call("ClaimJob", runner_id="r") == messages.Job()


async def test_refusals_are_the_same(house: House, remote: Remote) -> None:
    job = (await house.create_active("r"))["job_id"]
    unknown = "00000000-0000-4000-8000-000000000000"
    completed = {"status": messages.COMPLETED, "output_addr": "o"}
    for name, fields, expected in (
        ("GetJob", {"job_id": unknown}, ("NOT_FOUND", "job_not_found")),
        ("CreateJob", {}, ("INVALID_ARGUMENT", "validation_error")),
        ("CreateJob", {"binary_addr": "x" * 513}, ("INVALID_ARGUMENT", "validation_error")),
        (
            "CompleteJob",
            {"job_id": job, "status": messages.COMPLETED},
            ("INVALID_ARGUMENT", "validation_error"),
        ),
        (
            "CompleteJob",
            {"job_id": job, "status": messages.PENDING},
            ("INVALID_ARGUMENT", "validation_error"),
        ),
        ("CompleteJob", {"job_id": job, "runner_id": "x", **completed}, ("ABORTED", "not_owner")),
        ("TickleJob", {"job_id": job, "run_attempts": 9}, ("ABORTED", "stale_attempt")),
        ("RetryJob", {"job_id": job}, ("FAILED_PRECONDITION", "job_not_failed")),
    ):
        assert await remote.call(name, **fields) == expected, name
    assert (await remote.call("CancelJob", job_id=job)).status == messages.FAILED
    assert await remote.call("TickleJob", job_id=job) == ("FAILED_PRECONDITION", "job_not_active")
    retried = await remote.call("RetryJob", job_id=job)
    assert (retried.status, retried.job_id != job) == (messages.PENDING, True)
    released = await remote.call("ClaimJob", runner_id="r")
    assert (await remote.call("ReleaseJob", job_id=released.job_id, runner_id="r")).run_attempts == 1


@pytest.mark.req("QQ-X10")
async def test_answers_fit_their_schemas(house: House) -> None:
    described = (await house.ask("GET", "/openapi.json")).json()

    def check(name: str, body: Any) -> None:
        schema = {"$ref": f"#/components/schemas/{name}", "components": described["components"]}
        Draft202012Validator(schema).validate(body)

    operations = {row["operationId"] for path in described["paths"].values() for row in path.values()}
    assert operations == set(METHODS)  # and no method of other nodes
    job = await house.create_in_status("completed")
    check("Job", job)
    check("Job", await house.create())
    check("ListJobsResponse", (await house.ask("GET", "/jobs")).json())
    check("Report", (await house.ask("GET", f"/jobs/{job['job_id']}/report")).json())
    check("CountJobsResponse", (await house.ask("GET", "/counts")).json())
    check("Error", (await house.ask("GET", "/jobs/x")).json())


@pytest.mark.req("QQ-109", "QQ-110", "QQ-X10")
def test_the_api_conforms_to_its_description(tmp_path: Path) -> None:
    """Schemathesis looks for a request on which the two differ, also along the links.

    The bounds of values are tried with `--deep`, and in every run in tests/runtime/transport/http.
    """
    # A job that is not in the right status is answered with 400, as if the request were wrong.
    options = ["--exclude-checks", "positive_data_acceptance"]
    if not DEEP:
        # These may wait for a state that never comes here.
        options += ["--exclude-operation-id", "GetJob", "--exclude-operation-id", "ClaimJob"]
    queue = Process(tmp_path, "queue", "queue", {"DB_PATH": str(tmp_path / "q.db")}).begin().wait()
    try:
        check_description(queue.url, tmp_path, *options, bounds=DEEP)
        assert queue.events("rpc_fault") == []
    finally:
        queue.kill()


@pytest.mark.req("QQ-112")
async def test_a_request_may_be_as_large_as_a_body(remote: Remote) -> None:
    """MAX_BODY_BYTES is 64 KiB, over every transport."""
    outcome = await remote.call("CreateJob", binary_addr="a", idempotency_key="x" * 65_536)
    assert outcome == ("RESOURCE_EXHAUSTED", "body_too_large")
    outcome = await remote.call("CreateJob", binary_addr="a", idempotency_key="x" * 65_000)
    assert outcome[0] == "INVALID_ARGUMENT"
