"""POST /jobs under a known key: the same job, whatever its state and whatever else is sent."""

from __future__ import annotations

import httpx
import pytest

from tests.support.orchestrator.sql_session import Sql
from tests.support.orchestrator.stack import Node, Stack, new_key, post, submit, wait_until


@pytest.mark.req("ORC-060", "ORC-061", "ORC-063")
def test_a_repeat_is_answered_like_the_first(api: Node, sql: Sql) -> None:
    """The same code, headers, fields and job; no second row."""
    key = new_key()
    first = post(api.http, "echo", {"n": 1}, key)

    for _ in range(4):
        again = post(api.http, "echo", {"n": 1}, key)
        assert (again.status_code, again.json(), dict(again.headers)) == (
            202,
            first.json(),
            dict(first.headers),
        )
    assert len(sql.jobs(key)) == 1


@pytest.mark.req("ORC-063")
def test_a_repeat_with_an_equivalent_payload_is_the_same(api: Node) -> None:
    """The order of names, white space and the notation of a number make no difference."""
    key = new_key()
    texts = [
        f'{{"jobType":"echo","payload":{{"a":1,"b":[1.0,"\\u00e9"]}},"idempotencyKey":"{key}"}}',
        f'{{"idempotencyKey":"{key}", "payload":{{"b":[1, "é"] , "a":1.0}}, "jobType":"echo"}}',
    ]
    headers = {"content-type": "application/json"}
    before = len([line for line in api.lines() if line["event"] == "key_reused"])
    ids = {api.http.post("/jobs", content=text, headers=headers).json()["jobId"] for text in texts}
    assert len(ids) == 1
    assert len([line for line in api.lines() if line["event"] == "key_reused"]) == before


@pytest.mark.req("ORC-062", "ORC-074", "ORC-103")
@pytest.mark.parametrize(
    ("states", "status"),
    [
        ([], "PENDING"),
        (["RUNNING"], "RUNNING"),
        (["RUNNING", "SUCCESS"], "COMPLETED"),
        (["RUNNING", "RETRY"], "PENDING"),
        (["RUNNING", "RETRY", "DEAD"], "FAILED"),
    ],
)
def test_a_repeat_returns_the_current_status(api: Node, sql: Sql, states: list[str], status: str) -> None:
    """Whatever state the job is in by then, its status is returned, and it is not changed."""
    key = new_key()
    job_id = submit(api.http, "echo", {}, key)
    sql.transition(job_id, *states)
    before = sql.job(job_id)

    again = post(api.http, "echo", {}, key)

    assert (again.status_code, again.json()) == (202, {"jobId": job_id, "status": status})
    assert sql.job(job_id) == before


@pytest.mark.req("ORC-064")
def test_a_repeat_is_no_error(api: Node) -> None:
    """No line above INFO and no failed call in the metrics."""
    key = new_key()
    submit(api.http, "echo", {"n": 1}, key)
    seen, failed = len(api.lines()), _count_failed_submits(api.http)

    for _ in range(3):
        submit(api.http, "echo", {"n": 1}, key)

    assert [line for line in api.lines()[seen:] if line["level"] not in ("DEBUG", "INFO")] == []
    assert _count_failed_submits(api.http) == failed


@pytest.mark.req("ORC-073", "ORC-104", "ORC-074", "ORC-X08")
@pytest.mark.parametrize(("job_type", "payload"), [("other", {"n": 1}), ("echo", {"n": 2}), ("echo", {})])
def test_other_content_under_a_known_key_gets_the_first_job(
    api: Node, sql: Sql, job_type: str, payload: object
) -> None:
    """One key is one job, whatever else comes under it. That is logged and counted, and changes nothing."""
    key = new_key()
    job_id = submit(api.http, "echo", {"n": 1}, key)
    before, counted = sql.job(job_id), _count_reused_keys(api.http)

    again = post(api.http, job_type, payload, key)

    assert (again.status_code, again.json()) == (202, {"jobId": job_id, "status": "PENDING"})
    assert sql.job(job_id) == before
    assert len(sql.jobs(key)) == 1
    warnings = wait_until(
        lambda: [x for x in api.lines() if x["event"] == "key_reused" and x.get("job_id") == job_id],
        "it is logged",
    )
    assert [line["level"] for line in warnings] == ["WARNING"]
    assert _count_reused_keys(api.http) == counted + 1


@pytest.mark.req("ORC-073")
def test_a_strict_api_refuses_other_content_under_a_known_key(api_only: Stack) -> None:
    """409 where IDEMPOTENCY_STRICT is on, for submits, batches and retries; true repeats still work."""
    strict, sql = api_only.add("api", IDEMPOTENCY_STRICT="true"), api_only.sql
    key, fresh_key = new_key(), new_key()
    job_id = submit(strict.http, "echo", {"n": 1, "deep": {"a": [1, 2]}}, key)
    before, count = sql.job(job_id), sql.count()

    for job_type, payload in (("other", {"n": 1, "deep": {"a": [1, 2]}}), ("echo", {"n": 1}), ("echo", {})):
        refused = post(strict.http, job_type, payload, key)
        assert refused.status_code == 409
        assert refused.json()["error"]["code"] == "IDEMPOTENCY_KEY_REUSED"
    same = post(strict.http, "echo", {"deep": {"a": [1, 2]}, "n": 1}, key)
    assert (same.status_code, same.json()["jobId"]) == (202, job_id)
    assert sql.job(job_id) == before

    one = {"jobType": "echo", "payload": {}, "idempotencyKey": fresh_key}
    batch = strict.http.post("/jobs/batch", json={"jobs": [one, {**one, "payload": {"other": 1}}]})
    assert (batch.status_code, batch.json()["error"]["code"]) == (409, "IDEMPOTENCY_KEY_REUSED")
    assert sql.count() == count
    sql.transition(job_id, "RUNNING", "RETRY", "DEAD")
    other = new_key()
    submit(strict.http, "echo", {"n": 2}, other)
    retried = strict.http.post(f"/jobs/{job_id}/retry", json={"idempotencyKey": other})
    assert (retried.status_code, retried.json()["error"]["code"]) == (409, "IDEMPOTENCY_KEY_REUSED")


def _count_reused_keys(http: httpx.Client) -> float:
    lines = http.get("/metrics").text.splitlines()
    (found,) = (line for line in lines if line.startswith('charter_events_total{event="key_reused"}'))
    return float(found.rpartition(" ")[2])


def _count_failed_submits(http: httpx.Client) -> float:
    lines = http.get("/metrics").text.splitlines()
    calls = [line for line in lines if line.startswith("charter_calls_total{") and "SubmitJob" in line]
    return sum(float(line.rpartition(" ")[2]) for line in calls if 'code="OK"' not in line)
