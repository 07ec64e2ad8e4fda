"""GET /jobs: filters, and pages that new jobs do not shift."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.orchestrator.conftest import NewDatabase
from tests.support.orchestrator.stack import Stack, get, new_key, submit

pytestmark = pytest.mark.req("ORC-X02")

WAYS = {
    "PENDING": [[], ["RUNNING", "RETRY"]],
    "RUNNING": [["RUNNING"]],
    "COMPLETED": [["RUNNING", "SUCCESS"]],
    "FAILED": [["RUNNING", "RETRY", "DEAD"]],
}
ROUNDS = 6


@pytest.fixture(scope="module")
def listed(new_database: NewDatabase, logs: Path) -> Iterator[Stack]:
    """An API over jobs of three types in every state, oldest first, a tenth of a second apart."""
    with Stack(new_database(), logs) as made:
        http = made.add("api", CREATED_GRACE_SECONDS="3600").http
        for number in range(ROUNDS):
            for steps in (steps for ways in WAYS.values() for steps in ways):
                made.sql.move(submit(http, f"type.{number % 3}", {"n": number}), *steps)
        made.sql.force(
            "UPDATE jobs SET created_at = '2030-01-01'::timestamptz + place * interval '100 ms' FROM"
            " (SELECT job_id AS id, row_number() OVER (ORDER BY created_at) AS place FROM jobs) AS placed"
            " WHERE job_id = id"
        )
        yield made


def page(http: httpx.Client, **parameters: Any) -> dict[str, Any]:
    answer = http.get("/jobs", params=parameters)
    assert answer.status_code == 200, answer.text
    assert answer.json().keys() == {"jobs", "nextPageToken"}
    found: dict[str, Any] = answer.json()
    return found


def every(http: httpx.Client, **parameters: Any) -> list[dict[str, Any]]:
    """All pages, one after the other."""
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        got = page(http, pageToken=token, **parameters)
        found += got["jobs"]
        if not (token := got["nextPageToken"]):
            return found


def rows(stack: Stack, where: str = "true") -> list[str]:
    """The ids that a listing should have, in its order."""
    text = f"SELECT job_id FROM jobs WHERE {where} ORDER BY created_at DESC, job_id DESC"
    return [str(row["job_id"]) for row in stack.sql.rows(text)]


def ids(jobs: list[dict[str, Any]]) -> list[str]:
    return [job["jobId"] for job in jobs]


@pytest.mark.req("ORC-081", "ORC-090")
def test_jobs_are_listed_newest_first_as_they_are_shown(listed: Stack) -> None:
    """Each job has the same five fields with the same values as when it is looked at alone."""
    http = listed.api.http
    got = page(http)
    assert ids(got["jobs"]) == rows(listed)[:50]
    assert got["nextPageToken"] == ""
    assert [get(http, each) for each in ids(got["jobs"])] == got["jobs"]


@pytest.mark.parametrize("size", [1, 2, 7, 29, 30, 31, 200])
def test_pages_together_have_every_job_once(listed: Stack, size: int) -> None:
    """Whatever the size of a page, nothing is missing, double or out of order."""
    assert ids(every(listed.api.http, pageSize=size)) == rows(listed)


@pytest.mark.parametrize(
    ("parameters", "where"),
    [
        ({"status": "PENDING"}, "state IN ('CREATED', 'QUEUED', 'RETRY')"),
        ({"status": "RUNNING"}, "state = 'RUNNING'"),
        ({"status": "COMPLETED"}, "state = 'SUCCESS'"),
        ({"status": "FAILED"}, "state = 'DEAD'"),
        ({"status": ["FAILED", "COMPLETED"]}, "state IN ('DEAD', 'SUCCESS')"),
        ({"status": ["FAILED", "FAILED"]}, "state = 'DEAD'"),
        ({"jobType": "type.1"}, "job_type = 'type.1'"),
        ({"jobType": "type"}, "false"),
        ({"jobType": "%"}, "false"),
        ({"jobType": ""}, "true"),
        ({"createdFrom": "2030-01-01T00:00:01Z"}, "created_at >= '2030-01-01 00:00:01+00'"),
        ({"createdTo": "2030-01-01T00:00:01Z"}, "created_at < '2030-01-01 00:00:01+00'"),
        (
            {"createdFrom": "2030-01-01T01:00:00.5+01:00", "createdTo": "2030-01-01T00:00:02.100000Z"},
            "created_at >= '2030-01-01 00:00:00.5+00' AND created_at < '2030-01-01 00:00:02.1+00'",
        ),
        ({"createdFrom": "2031-01-01T00:00:00Z"}, "false"),
        (
            {"status": ["PENDING"], "jobType": "type.2", "createdFrom": "2030-01-01T00:00:01Z"},
            "state IN ('QUEUED', 'RETRY') AND job_type = 'type.2' AND created_at >= '2030-01-01 00:00:01+00'",
        ),
    ],
)
@pytest.mark.parametrize("size", [3, 100])
def test_filters_narrow_every_page(listed: Stack, parameters: dict[str, Any], where: str, size: int) -> None:
    """Filters hold alone and together, on the first page and on all that follow."""
    assert ids(every(listed.api.http, pageSize=size, **parameters)) == rows(listed, where)


def test_a_range_begins_with_its_first_moment_and_ends_before_its_last(listed: Stack) -> None:
    """A job of the very microsecond is in the range that begins then, not in the one that ends then."""
    http = listed.api.http
    job = page(http, pageSize=5)["jobs"][4]
    assert ids(every(http, createdFrom=job["createdAt"]))[-1] == job["jobId"]
    assert job["jobId"] not in ids(every(http, createdTo=job["createdAt"]))
    after = datetime.fromisoformat(job["createdAt"]) + timedelta(microseconds=1)
    assert ids(every(http, createdTo=after.isoformat()))[0] == job["jobId"]


def test_new_jobs_do_not_shift_the_pages_behind_them(alone: Stack) -> None:
    """What is submitted between two pages is on neither; no job comes twice."""
    http, kind = alone.api.http, new_key("type")
    before = [submit(http, kind) for _ in range(7)]
    seen: list[str] = []
    token = ""
    for _ in range(4):
        got = page(http, jobType=kind, pageSize=2, pageToken=token)
        seen += ids(got["jobs"])
        token = got["nextPageToken"]
        submit(http, kind)
    assert (seen, token) == (before[::-1], "")


def test_jobs_of_the_same_moment_are_told_apart(alone: Stack) -> None:
    """Ties are broken by the id, so that paging by one neither loses nor repeats any."""
    http, kind = alone.api.http, new_key("type")
    jobs = [{"jobType": kind, "payload": {}, "idempotencyKey": new_key()} for _ in range(9)]
    http.post("/jobs/batch", json={"jobs": jobs}).raise_for_status()
    alone.sql.force(f"UPDATE jobs SET created_at = '2029-05-05 05:05:05.555555+00' WHERE job_type = '{kind}'")
    assert ids(every(http, jobType=kind, pageSize=1)) == rows(alone, f"job_type = '{kind}'")


def test_a_page_has_fifty_jobs_unless_something_else_is_asked_for(alone: Stack) -> None:
    """No size and a size of 0 mean 50; more than 200 is refused or cut, never served."""
    http, kind = alone.api.http, new_key("type")
    jobs = [{"jobType": kind, "payload": {}, "idempotencyKey": new_key()} for _ in range(201)]
    http.post("/jobs/batch", json={"jobs": jobs}).raise_for_status()
    assert len(page(http, jobType=kind)["jobs"]) == 50
    assert len(page(http, jobType=kind, pageSize=0)["jobs"]) == 50
    assert len(page(http, jobType=kind, pageSize=200)["jobs"]) == 200
    larger = http.get("/jobs", params={"jobType": kind, "pageSize": 201})
    assert larger.status_code == 400 or len(larger.json()["jobs"]) == 200


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("status", "QUEUED"),
        ("status", "pending"),
        ("status", "UNSPECIFIED"),
        ("status", "STATUS_PENDING"),
        ("status", ""),
        ("status", "1"),
        ("jobType", "t" * 101),
        ("createdFrom", "yesterday"),
        ("createdFrom", "2030-01-01"),
        ("createdFrom", "2030-01-01T00:00:00"),
        ("createdFrom", "2030-13-01T00:00:00Z"),
        ("createdFrom", "0000-01-01T00:00:00Z"),
        ("createdFrom", "0001-01-01T00:00:00+23:59"),
        ("createdTo", "9999-12-31T23:59:59.999999-23:59"),
        ("createdTo", "2030-01-01T00:00:00 01:00"),
        ("createdTo", ""),
        ("pageSize", "-1"),
        ("pageSize", "ten"),
        ("pageSize", "1.5"),
        ("pageSize", "99999999999999999999"),
        ("pageToken", "abc"),
        ("pageToken", "~"),
        ("pageToken", "1~x"),
        ("pageToken", "nan~00000000-0000-4000-8000-000000000000"),
        ("pageToken", "1e300~00000000-0000-4000-8000-000000000000"),
        ("pageToken", "-1e11~00000000-0000-4000-8000-000000000000"),
        ("pageToken", "1~" + "0" * 36),
        ("pageToken", "\x00"),
        ("pageToken", "t" * 101),
    ],
)
def test_wrong_parameters_are_named(listed: Stack, parameter: str, value: str) -> None:
    """400 with the name of the parameter, never a fault and never a page of something else."""
    answer = listed.api.http.get("/jobs", params={parameter: value})
    assert answer.status_code == 400, answer.text
    told = answer.json()["error"]
    assert (told["code"], told["field"].partition("[")[0]) == ("VALIDATION_ERROR", parameter)


@pytest.mark.parametrize(
    "moment", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "1969-12-31T23:59:59Z"]
)
def test_any_moment_of_the_calendar_is_a_filter(listed: Stack, moment: str) -> None:
    """The first and the last moment that can be written are answered like any other."""
    http = listed.api.http
    earlier, later = every(http, createdTo=moment), every(http, createdFrom=moment)
    assert sorted(ids(earlier) + ids(later)) == sorted(rows(listed))


def test_a_token_of_another_place_is_only_a_place(listed: Stack) -> None:
    """A token says where the page before ended; a job that is gone or never was is no hindrance."""
    http = listed.api.http
    moment = datetime.fromisoformat(page(http, pageSize=10)["jobs"][9]["createdAt"])
    token = f"{moment.timestamp():.6f}~00000000-0000-4000-8000-000000000000"
    assert ids(every(http, pageSize=200))[10:] == ids(page(http, pageToken=token)["jobs"])


def test_parameters_that_nobody_knows_are_ignored(listed: Stack) -> None:
    """As unknown fields of a body are."""
    assert ids(page(listed.api.http, order="oldest", owner="me", offset=3)["jobs"]) == rows(listed)
