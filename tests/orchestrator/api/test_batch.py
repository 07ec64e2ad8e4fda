"""POST /jobs/batch: many jobs in one request, all of them or none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.orchestrator.sql_session import Sql
from tests.support.orchestrator.stack import Node, Stack, new_key, submit, wait_until_final


def request(count: int, **other: object) -> list[dict[str, Any]]:
    return [
        {"jobType": "echo", "payload": {"n": n}, "idempotencyKey": new_key(), **other} for n in range(count)
    ]


@pytest.mark.req("ORC-053", "ORC-055", "ORC-056", "ORC-069", "ORC-021")
def test_a_batch_is_answered_in_its_order(api: Node, sql: Sql) -> None:
    """202 with an id and a status for each, all of them queued by then."""
    jobs = request(20)
    answer = api.http.post("/jobs/batch", json={"jobs": jobs})

    assert answer.status_code == 202
    assert answer.json().keys() == {"jobs"}
    got = answer.json()["jobs"]
    assert all(each.keys() == {"jobId", "status"} and each["status"] == "PENDING" for each in got)
    stored = [sql.job(each["jobId"]) for each in got]
    assert [row["idempotency_key"] for row in stored] == [each["idempotencyKey"] for each in jobs]
    assert [row["payload"] for row in stored] == [each["payload"] for each in jobs]
    assert {row["state"] for row in stored} == {"QUEUED"}


@pytest.mark.req("ORC-060", "ORC-061", "ORC-062", "ORC-104")
def test_known_keys_in_a_batch_find_their_jobs(api: Node, sql: Sql) -> None:
    """A batch may be repeated, may have known keys, and may have one key twice."""
    jobs = request(5)
    known = submit(api.http, "echo", jobs[0]["payload"], jobs[0]["idempotencyKey"])
    sql.transition(known, "RUNNING", "SUCCESS")
    before = sql.count()

    first = api.http.post("/jobs/batch", json={"jobs": [*jobs, jobs[3]]}).json()["jobs"]
    again = api.http.post("/jobs/batch", json={"jobs": [*jobs, jobs[3]]}).json()["jobs"]

    assert first == again
    assert first[0] == {"jobId": known, "status": "COMPLETED"}
    assert first[3] == first[5]
    assert sql.count() == before + 4


@pytest.mark.req("ORC-075", "ORC-076", "ORC-077")
@pytest.mark.parametrize(
    ("place", "change", "field"),
    [
        (0, {"jobType": ""}, "jobs[0].jobType"),
        (2, {"payload": 1}, "jobs[2].payload"),
        (1, {"payload": {"a": "\0"}}, "jobs[1].payload"),
        (2, {"payload": {"a": "\ud800"}}, "jobs[2].payload"),
        (1, {"idempotencyKey": None}, "jobs[1].idempotencyKey"),
        (2, {"idempotencyKey": "k" * 256}, "jobs[2].idempotencyKey"),
    ],
)
def test_one_bad_job_refuses_the_whole_batch(
    api: Node, sql: Sql, place: int, change: dict[str, Any], field: str
) -> None:
    """The job is named by its position, and none of the others is stored."""
    jobs, before = request(3), sql.count()
    jobs[place] |= change
    answer = api.http.post(
        "/jobs/batch", content=json.dumps({"jobs": jobs}), headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400, answer.text
    assert (answer.json()["error"]["code"], answer.json()["error"]["field"]) == ("VALIDATION_ERROR", field)
    assert sql.count() == before


@pytest.mark.req("ORC-076")
def test_a_batch_has_one_to_a_thousand_jobs(api: Node, sql: Sql) -> None:
    """The thousandth is accepted and one more is refused, as is no job at all."""
    before = sql.count()
    for jobs in ([], request(1001)):
        refused = api.http.post("/jobs/batch", json={"jobs": jobs})
        assert (refused.status_code, refused.json()["error"]["field"]) == (400, "jobs")
    assert sql.count() == before
    assert len(api.http.post("/jobs/batch", json={"jobs": request(1000)}).json()["jobs"]) == 1000
    assert sql.count() == before + 1000


@pytest.mark.req("ORC-073")
def test_other_content_under_a_known_key_in_a_batch_gets_the_first_job(api: Node, sql: Sql) -> None:
    """Without strictness one key is one job, and the first to come decides."""
    (first,), (other,) = request(1), request(1, jobType="other")
    other["idempotencyKey"] = first["idempotencyKey"]
    got = api.http.post("/jobs/batch", json={"jobs": [first, other]}).json()["jobs"]
    assert got[0] == got[1]
    assert sql.job(got[0]["jobId"])["job_type"] == "echo"


@pytest.mark.req("ORC-054")
def test_every_job_of_a_batch_is_run(stack: Stack) -> None:
    """A worker claims them like any others."""
    http = stack.api.http
    got = http.post("/jobs/batch", json={"jobs": request(50)}).json()["jobs"]
    assert {wait_until_final(http, each["jobId"]) for each in got} == {"COMPLETED"}


@pytest.mark.req("ORC-067")
def test_a_repeated_batch_queues_stranded_jobs(api_only: Stack) -> None:
    """Jobs that were stored and not queued are queued by the repeat, however many there are."""
    jobs = request(3)
    for job in jobs:
        api_only.sql.rows(
            "INSERT INTO jobs (job_type, payload, idempotency_key) VALUES ('echo', $1, $2)",
            job["payload"],
            job["idempotencyKey"],
        )
    assert api_only.api.http.post("/jobs/batch", json={"jobs": jobs}).status_code == 202
    states = [api_only.sql.jobs(job["idempotencyKey"])[0]["state"] for job in jobs]
    assert states == ["QUEUED"] * 3
