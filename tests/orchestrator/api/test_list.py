"""GET /jobs: filters, and pages that new jobs do not change."""

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

PATHS = {
    "PENDING": [[], ["RUNNING", "RETRY"]],
    "RUNNING": [["RUNNING"]],
    "COMPLETED": [["RUNNING", "SUCCESS"]],
    "FAILED": [["RUNNING", "RETRY", "DEAD"]],
}
ROUNDS = 6


@pytest.fixture(scope="module")
def stack_with_jobs(new_database: NewDatabase, logs: Path) -> Iterator[Stack]:
    """An API over jobs of three types in every state, oldest first, a tenth of a second apart."""
    with Stack(new_database(), logs) as stack:
        http = stack.add("api", CREATED_GRACE_SECONDS="3600").http
        for number in range(ROUNDS):
            for steps in (steps for paths in PATHS.values() for steps in paths):
                stack.sql.transition(submit(http, f"type.{number % 3}", {"n": number}), *steps)
        stack.sql.force(
            "UPDATE jobs SET created_at = '2030-01-01'::timestamptz + place * interval '100 ms' FROM"
            " (SELECT job_id AS id, row_number() OVER (ORDER BY created_at) AS place FROM jobs) AS placed"
            " WHERE job_id = id"
        )
        yield stack


def get_page(http: httpx.Client, **parameters: Any) -> dict[str, Any]:
    answer = http.get("/jobs", params=parameters)
    assert answer.status_code == 200, answer.text
    assert answer.json().keys() == {"jobs", "nextPageToken"}
    found: dict[str, Any] = answer.json()
    return found


def get_all(http: httpx.Client, **parameters: Any) -> list[dict[str, Any]]:
    """All pages, one after the other."""
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        got = get_page(http, pageToken=token, **parameters)
        found += got["jobs"]
        if not (token := got["nextPageToken"]):
            return found


def read_expected_ids(stack: Stack, where: str = "true") -> list[str]:
    """The ids that a listing should have, in its order."""
    text = f"SELECT job_id FROM jobs WHERE {where} ORDER BY created_at DESC, job_id"
    return [str(row["job_id"]) for row in stack.sql.rows(text)]


def list_ids(jobs: list[dict[str, Any]]) -> list[str]:
    return [job["jobId"] for job in jobs]


@pytest.mark.req("ORC-081", "ORC-090")
def test_jobs_are_listed_newest_first_with_their_fields(stack_with_jobs: Stack) -> None:
    """Each job has the same five fields with the same values as when it is read api_only."""
    http = stack_with_jobs.api.http
    got = get_page(http)
    assert list_ids(got["jobs"]) == read_expected_ids(stack_with_jobs)[:50]
    assert got["nextPageToken"] == ""
    assert [get(http, each) for each in list_ids(got["jobs"])] == got["jobs"]


@pytest.mark.parametrize("size", [1, 2, 7, 29, 30, 31, 200])
def test_the_pages_have_every_job_once(stack_with_jobs: Stack, size: int) -> None:
    """Whatever the size of a page, nothing is missing, double or out of order."""
    assert list_ids(get_all(stack_with_jobs.api.http, pageSize=size)) == read_expected_ids(stack_with_jobs)


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
def test_filters_narrow_every_page(
    stack_with_jobs: Stack, parameters: dict[str, Any], where: str, size: int
) -> None:
    """Each filter applies alone and in combination, on the first page and on all that follow."""
    assert list_ids(get_all(stack_with_jobs.api.http, pageSize=size, **parameters)) == read_expected_ids(
        stack_with_jobs, where
    )


def test_a_range_begins_with_its_first_moment_and_ends_before_its_last(stack_with_jobs: Stack) -> None:
    """A job of the very microsecond is in the range that begins then, not in the one that ends then."""
    http = stack_with_jobs.api.http
    job = get_page(http, pageSize=5)["jobs"][4]
    assert list_ids(get_all(http, createdFrom=job["createdAt"]))[-1] == job["jobId"]
    assert job["jobId"] not in list_ids(get_all(http, createdTo=job["createdAt"]))
    after = datetime.fromisoformat(job["createdAt"]) + timedelta(microseconds=1)
    assert list_ids(get_all(http, createdTo=after.isoformat()))[0] == job["jobId"]


def test_new_jobs_do_not_change_later_pages(api_only: Stack) -> None:
    """A job that is submitted between two pages is on neither; no job comes twice."""
    http, kind = api_only.api.http, new_key("type")
    before = [submit(http, kind) for _ in range(7)]
    seen: list[str] = []
    token = ""
    for _ in range(4):
        got = get_page(http, jobType=kind, pageSize=2, pageToken=token)
        seen += list_ids(got["jobs"])
        token = got["nextPageToken"]
        submit(http, kind)
    assert (seen, token) == (before[::-1], "")


def test_jobs_of_the_same_time_have_a_total_order(api_only: Stack) -> None:
    """Ties are broken by the id, so that paging by one neither loses nor repeats any."""
    http, kind = api_only.api.http, new_key("type")
    jobs = [{"jobType": kind, "payload": {}, "idempotencyKey": new_key()} for _ in range(9)]
    http.post("/jobs/batch", json={"jobs": jobs}).raise_for_status()
    api_only.sql.force(
        f"UPDATE jobs SET created_at = '2029-05-05 05:05:05.555555+00' WHERE job_type = '{kind}'"
    )
    assert list_ids(get_all(http, jobType=kind, pageSize=1)) == read_expected_ids(
        api_only, f"job_type = '{kind}'"
    )


def test_a_page_has_fifty_jobs_by_default(api_only: Stack) -> None:
    """No size and a size of 0 mean 50; more than 200 is refused or cut, never served."""
    http, kind = api_only.api.http, new_key("type")
    jobs = [{"jobType": kind, "payload": {}, "idempotencyKey": new_key()} for _ in range(201)]
    http.post("/jobs/batch", json={"jobs": jobs}).raise_for_status()
    assert len(get_page(http, jobType=kind)["jobs"]) == 50
    assert len(get_page(http, jobType=kind, pageSize=0)["jobs"]) == 50
    assert len(get_page(http, jobType=kind, pageSize=200)["jobs"]) == 200
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
def test_wrong_parameters_are_named(stack_with_jobs: Stack, parameter: str, value: str) -> None:
    """400 with the name of the parameter, never a fault and never a wrong page."""
    answer = stack_with_jobs.api.http.get("/jobs", params={parameter: value})
    assert answer.status_code == 400, answer.text
    body = answer.json()["error"]
    assert (body["code"], body["field"].partition("[")[0]) == ("VALIDATION_ERROR", parameter)


@pytest.mark.parametrize(
    "moment", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "1969-12-31T23:59:59Z"]
)
def test_any_valid_time_is_a_filter(stack_with_jobs: Stack, moment: str) -> None:
    """The first and the last time that can be written are answered like any other."""
    http = stack_with_jobs.api.http
    earlier, later = get_all(http, createdTo=moment), get_all(http, createdFrom=moment)
    assert sorted(list_ids(earlier) + list_ids(later)) == sorted(read_expected_ids(stack_with_jobs))


def test_a_token_is_only_a_position(stack_with_jobs: Stack) -> None:
    """A token says where the page before ended; the job of that position need not exist."""
    http = stack_with_jobs.api.http
    moment = datetime.fromisoformat(get_page(http, pageSize=10)["jobs"][9]["createdAt"])
    token = f"{moment.timestamp():.6f}~ffffffff-ffff-4fff-8fff-ffffffffffff"
    assert list_ids(get_all(http, pageSize=200))[10:] == list_ids(get_page(http, pageToken=token)["jobs"])


def test_unknown_parameters_are_ignored(stack_with_jobs: Stack) -> None:
    """As unknown fields of a body are."""
    assert list_ids(
        get_page(stack_with_jobs.api.http, order="oldest", owner="me", offset=3)["jobs"]
    ) == read_expected_ids(stack_with_jobs)
