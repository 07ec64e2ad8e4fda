"""The same methods over HTTP and over gRPC: equal answers and equal refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from generated.orchestrator import errors
from generated.orchestrator.messages import (
    GetJobRequest,
    Job,
    ListJobsRequest,
    RetryJobRequest,
    Status,
    SubmitJobRequest,
    SubmitJobsRequest,
)
from runtime.call.conditions import Condition
from tests.support.orchestrator.grpc_calls import METHODS, Remote
from tests.support.orchestrator.sql_session import Sql
from tests.support.orchestrator.stack import Node, Stack, get, new_key, submit, wait_until_final

SUBMIT, SUBMITS, GET, LIST, RETRY = (
    METHODS[f"JobsService.{name}"] for name in ("SubmitJob", "SubmitJobs", "GetJob", "ListJobs", "RetryJob")
)
ABSENT = "00000000-0000-4000-8000-000000000000"
CONDITIONS = {
    each.code: each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, Condition) and each is not Condition
}
RENAMED = {
    "job_type": "jobType",
    "idempotency_key": "idempotencyKey",
    "page_token": "pageToken",
    "page_size": "pageSize",
    "created_from": "createdFrom",
    "created_to": "createdTo",
    "job_id": "jobId",
    "next_page_token": "nextPageToken",
}


@pytest.fixture
def remote(api: Node) -> Iterator[Remote]:
    with Remote(api.address) as remote:
        yield remote


def make_request(key: str, job_type: str = "echo", payload: str = "{}") -> SubmitJobRequest:
    return SubmitJobRequest(job_type=job_type, payload=payload, idempotency_key=key)


def to_json(job: Job) -> dict[str, Any]:
    """A job of gRPC as HTTP returns it."""

    def format_time(stamp: Timestamp) -> str:
        moment = stamp.ToDatetime(UTC).replace(tzinfo=None)
        return f"{moment.isoformat(timespec='microseconds')}Z"

    return {
        "jobId": job.job_id,
        "jobType": job.job_type,
        "status": Status.Name(job.status).removeprefix("STATUS_"),
        "createdAt": format_time(job.created_at),
        "updatedAt": format_time(job.updated_at),
    }


@pytest.mark.req("ORC-053", "ORC-060", "ORC-080", "ORC-083", "ORC-093")
def test_a_job_of_one_transport_is_a_job_of_the_other(api: Node, sql: Sql, remote: Remote) -> None:
    """One key, one job and one record, over whichever transport it came."""
    here, there = new_key(), new_key()
    by_http = submit(api.http, "echo", {"n": [1, "é"]}, here)
    by_grpc = remote.call(SUBMIT, make_request(there, payload='{"n": [1, "é"]}')).answer.job_id

    assert remote.call(SUBMIT, make_request(here, payload='{"n":[1,"\\u00e9"]}')).answer.job_id == by_http
    assert submit(api.http, "echo", {"n": [1, "é"]}, there) == by_grpc
    for job_id in (by_http, by_grpc):
        assert to_json(remote.call(GET, GetJobRequest(job_id=job_id)).answer) == get(api.http, job_id)
        row = sql.job(job_id)
        assert (row["state"], row["payload"]) == ("QUEUED", {"n": [1, "é"]})


@pytest.mark.req("ORC-082")
def test_both_return_the_same_status(api: Node, sql: Sql, remote: Remote) -> None:
    """In every state."""
    for steps in (
        [],
        ["RUNNING"],
        ["RUNNING", "RETRY"],
        ["RUNNING", "RETRY", "DEAD"],
        ["RUNNING", "SUCCESS"],
    ):
        job_id = submit(api.http)
        sql.transition(job_id, *steps)
        assert to_json(remote.call(GET, GetJobRequest(job_id=job_id)).answer) == get(api.http, job_id)


@pytest.mark.req("ORC-X02")
def test_both_list_the_same_pages(api: Node, remote: Remote) -> None:
    """The token of one transport is a token of the other."""
    kind = new_key("type")
    for _ in range(5):
        submit(api.http, kind)
    page = remote.call(LIST, ListJobsRequest(job_type=kind, page_size=2)).answer
    same = api.http.get("/jobs", params={"jobType": kind, "pageSize": 2}).json()
    assert [to_json(job) for job in page.jobs] == same["jobs"]
    assert page.next_page_token == same["nextPageToken"]
    following = ListJobsRequest(job_type=kind, page_size=2, page_token=same["nextPageToken"])
    rest = api.http.get("/jobs", params={"jobType": kind, "pageSize": 2, "pageToken": page.next_page_token})
    assert [to_json(job) for job in remote.call(LIST, following).answer.jobs] == rest.json()["jobs"]


@pytest.mark.req("ORC-X03")
def test_batches_and_retries_are_equal_over_both(api: Node, sql: Sql, remote: Remote) -> None:
    """Each finds the jobs that the other has created."""
    keys = [new_key() for _ in range(3)]
    created = remote.call(SUBMITS, SubmitJobsRequest(jobs=[make_request(key) for key in keys])).answer
    bodies = [{"jobType": "echo", "payload": {}, "idempotencyKey": key} for key in keys]
    same = api.http.post("/jobs/batch", json={"jobs": bodies}).json()["jobs"]
    assert [each.job_id for each in created.jobs] == [each["jobId"] for each in same]

    failed, key = same[0]["jobId"], new_key()
    sql.transition(failed, "RUNNING", "RETRY", "DEAD")
    by_grpc = remote.call(RETRY, RetryJobRequest(job_id=failed, idempotency_key=key)).answer.job_id
    again = api.http.post(f"/jobs/{failed}/retry", json={"idempotencyKey": key})
    assert (again.status_code, again.json()["jobId"]) == (202, by_grpc)


@pytest.mark.req("ORC-075", "ORC-076", "ORC-077", "ORC-095", "ORC-096", "ORC-089")
@pytest.mark.parametrize(
    ("method", "request_", "path", "body"),
    [
        (SUBMIT, make_request("k", ""), "/jobs", {"jobType": "", "payload": {}, "idempotencyKey": "k"}),
        (SUBMIT, make_request("k", "a b"), "/jobs", {"jobType": "a b", "payload": {}, "idempotencyKey": "k"}),
        (
            SUBMIT,
            make_request("k", "a" * 101),
            "/jobs",
            {"jobType": "a" * 101, "payload": {}, "idempotencyKey": "k"},
        ),
        (SUBMIT, make_request(""), "/jobs", {"jobType": "echo", "payload": {}, "idempotencyKey": ""}),
        (
            SUBMIT,
            make_request("k" * 256),
            "/jobs",
            {"jobType": "echo", "payload": {}, "idempotencyKey": "k" * 256},
        ),
        (SUBMIT, make_request("a\0"), "/jobs", {"jobType": "echo", "payload": {}, "idempotencyKey": "a\0"}),
        (
            SUBMIT,
            make_request("k", payload="[]"),
            "/jobs",
            {"jobType": "echo", "payload": [], "idempotencyKey": "k"},
        ),
        (
            SUBMIT,
            make_request("k", payload="7"),
            "/jobs",
            {"jobType": "echo", "payload": 7, "idempotencyKey": "k"},
        ),
        (
            SUBMIT,
            make_request("k", payload=r'{"a": "\u0000"}'),
            "/jobs",
            {"jobType": "echo", "payload": {"a": "\0"}, "idempotencyKey": "k"},
        ),
        (SUBMITS, SubmitJobsRequest(), "/jobs/batch", {"jobs": []}),
        (
            SUBMITS,
            SubmitJobsRequest(jobs=[make_request("k"), make_request("")]),
            "/jobs/batch",
            {
                "jobs": [
                    {"jobType": "echo", "payload": {}, "idempotencyKey": "k"},
                    {"jobType": "echo", "payload": {}, "idempotencyKey": ""},
                ]
            },
        ),
        (GET, GetJobRequest(job_id=ABSENT), f"/jobs/{ABSENT}", None),
        (GET, GetJobRequest(job_id="abc"), "/jobs/abc", None),
        (
            RETRY,
            RetryJobRequest(job_id=ABSENT, idempotency_key="k"),
            f"/jobs/{ABSENT}/retry",
            {"idempotencyKey": "k"},
        ),
        (LIST, ListJobsRequest(page_token="1~x"), "/jobs?pageToken=1~x", None),
        (LIST, ListJobsRequest(job_type="t" * 101), f"/jobs?jobType={'t' * 101}", None),
        (LIST, ListJobsRequest(page_size=201), "/jobs?pageSize=201", None),
    ],
)
def test_both_refuse_alike(
    api: Node, remote: Remote, method: Any, request_: Any, path: str, body: Any
) -> None:
    """The same condition with the code of each transport, and the same message."""
    answer = api.http.request("GET" if body is None else "POST", path, json=body)
    outcome = remote.call(method, request_)
    if answer.status_code == 200:
        assert outcome.code == "OK"
        return
    condition = CONDITIONS[outcome.condition]
    assert (condition.grpc, condition.http) == (outcome.code, answer.status_code)
    error = answer.json()["error"]
    assert error["code"] == condition.code.upper()
    words = outcome.message
    for name, json_name in RENAMED.items():
        words = words.replace(name, json_name)
    assert error["message"] == words


@pytest.mark.req("ORC-075", "ORC-096")
def test_nul_is_refused_by_its_field_or_not_found(api: Node, remote: Remote) -> None:
    """A filter, a key and a payload name the rule that they break; an id with NUL is not found."""
    problem = "must not contain the character NUL"
    answer = api.http.get("/jobs?jobType=%00")
    assert (answer.status_code, answer.json()["error"]) == (
        400,
        {"code": "VALIDATION_ERROR", "message": f"jobType: {problem}", "field": "jobType"},
    )
    outcome = remote.call(LIST, ListJobsRequest(job_type="a\0b"))
    assert (outcome.code, outcome.message) == ("INVALID_ARGUMENT", f"job_type: {problem}")
    nested = make_request("k", payload=r'{"a": [{"b": "\u0000"}]}')
    outcome = remote.call(SUBMIT, nested)
    assert (outcome.code, outcome.message) == ("INVALID_ARGUMENT", f"payload: {problem}")
    assert remote.call(GET, GetJobRequest(job_id="\0")).code == "NOT_FOUND"
    assert api.http.get("/jobs/%00").status_code == 404


@pytest.mark.req("ORC-077")
@pytest.mark.parametrize(
    "payload",
    [
        "",
        " ",
        "{",
        "nonsense",
        "{} {}",
        '{"a": NaN}',
        r'{"a": "\ud800"}',
        "1e999",
        '{"n": 1e999}',
        "[" * 50_000,
    ],
)
def test_a_payload_that_is_no_json_object_is_refused_over_grpc(
    remote: Remote, sql: Sql, payload: str
) -> None:
    """There the field is text, so that it can be anything; it is refused like any broken rule."""
    before = sql.count()
    outcome = remote.call(SUBMIT, make_request(new_key(), payload=payload))
    assert (outcome.code, outcome.condition) == ("INVALID_ARGUMENT", "validation_error")
    assert "payload" in outcome.message
    assert sql.count() == before


@pytest.mark.req("ORC-083")
@pytest.mark.parametrize(
    "stamp",
    [
        Timestamp(seconds=10**15),
        Timestamp(seconds=-(10**15)),
        Timestamp(nanos=-1),
        Timestamp(nanos=2 * 10**9),
    ],
)
def test_an_invalid_time_is_refused_over_grpc(remote: Remote, stamp: Timestamp) -> None:
    """Protobuf allows more values than there are times."""
    outcome = remote.call(LIST, ListJobsRequest(created_from=stamp))
    assert (outcome.code, outcome.condition) == ("INVALID_ARGUMENT", "validation_error")
    assert "created_from" in outcome.message


@pytest.mark.req("ORC-082")
def test_an_undefined_status_is_refused_over_grpc(remote: Remote) -> None:
    for wrong in (0, 99):
        outcome = remote.call(LIST, ListJobsRequest(status=[wrong]))  # type: ignore[list-item]
        assert (outcome.code, outcome.condition) == ("INVALID_ARGUMENT", "validation_error")


@pytest.mark.req("ORC-054", "ORC-076")
def test_a_large_payload_over_grpc(stack: Stack) -> None:
    """A body that HTTP refuses as larger than a mebibyte has a limit of its own here."""
    payload = json.dumps({"a": "x" * 1_000_000})
    with Remote(stack.api.address) as remote:
        outcome = remote.call(SUBMIT, make_request(new_key(), payload=payload))
        assert outcome.code == "OK"
        assert wait_until_final(stack.api.http, outcome.answer.job_id) == "COMPLETED"
        huge = json.dumps({"a": "x" * 5_000_000})
        assert remote.call(SUBMIT, make_request(new_key(), payload=huge)).code == "RESOURCE_EXHAUSTED"


def test_times_are_whole_microseconds(api: Node, remote: Remote) -> None:
    """Both transports return every time in full."""
    job_id = submit(api.http)
    job = remote.call(GET, GetJobRequest(job_id=job_id)).answer
    assert job.created_at.nanos % 1000 == 0
    assert datetime.fromisoformat(get(api.http, job_id)["createdAt"]) == job.created_at.ToDatetime(UTC)


@pytest.mark.req("ORC-076")
def test_a_request_may_have_a_mebibyte_over_grpc_too(remote: Remote, sql: Sql) -> None:
    """MAX_PAYLOAD_BYTES applies to every transport, to the last byte."""
    key, most = new_key(), 1_048_576
    request = make_request(key, payload=json.dumps({"a": ""}))
    # The length of a long field needs two bytes more than that of a short one.
    room = most - request.ByteSize() - 2
    request.payload = json.dumps({"a": "x" * (room + 1)})
    assert request.ByteSize() == most + 1
    refused = remote.call(SUBMIT, request)
    assert (refused.code, refused.condition) == ("RESOURCE_EXHAUSTED", "payload_too_large")
    assert sql.jobs(key) == []
    request.payload = json.dumps({"a": "x" * room})
    assert remote.call(SUBMIT, request).answer.job_id
