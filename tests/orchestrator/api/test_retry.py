"""POST /jobs/{jobId}/retry: a failed job is submitted again, as a new job under a new key."""

from __future__ import annotations

import httpx
import pytest

from tests.support.orchestrator.sql_session import Sql
from tests.support.orchestrator.stack import Node, Stack, get, new_key, submit, wait_until_final

pytestmark = pytest.mark.req("ORC-X03")


def retry(http: httpx.Client, job_id: str, key: object) -> httpx.Response:
    return http.post(f"/jobs/{job_id}/retry", json={"idempotencyKey": key})


@pytest.fixture
def failed_job(api: Node, sql: Sql) -> str:
    """A job that has failed for good."""
    job_id = submit(api.http, "SEND_EMAIL", {"to": "ann", "n": [1, 2.5]})
    sql.transition(job_id, "RUNNING", "RETRY", "DEAD")
    return job_id


@pytest.mark.req("ORC-020", "ORC-056")
def test_a_failed_job_is_submitted_again(api: Node, sql: Sql, failed_job: str) -> None:
    """The new one has the old type and payload, its own key and no history; the old one stays as it was."""
    before, key = sql.job(failed_job), new_key()

    answer = retry(api.http, failed_job, key)

    assert (answer.status_code, answer.json().keys()) == (202, {"jobId", "status"})
    retried = sql.job(answer.json()["jobId"])
    assert retried["job_id"] != before["job_id"]
    assert (retried["job_type"], retried["payload"]) == (before["job_type"], before["payload"])
    assert (retried["idempotency_key"], retried["state"], retried["retry_count"], retried["attempt"]) == (
        key,
        "QUEUED",
        0,
        0,
    )
    assert sql.job(failed_job) == before


@pytest.mark.req("ORC-060")
def test_a_repeated_retry_finds_its_job(api: Node, sql: Sql, failed_job: str) -> None:
    """One key is one job here too."""
    key = new_key()
    first = retry(api.http, failed_job, key)
    before = sql.count()
    assert [retry(api.http, failed_job, key).json() for _ in range(3)] == [first.json()] * 3
    assert sql.count() == before


@pytest.mark.parametrize("states", [[], ["RUNNING"], ["RUNNING", "RETRY"], ["RUNNING", "SUCCESS"]])
def test_a_job_that_has_not_failed_is_not_retried(api: Node, sql: Sql, states: list[str]) -> None:
    """409: it may still succeed or has done so. Nothing is stored."""
    job_id = submit(api.http)
    sql.transition(job_id, *states)
    before = sql.count()
    answer = retry(api.http, job_id, new_key())
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "JOB_NOT_FAILED")
    assert sql.count() == before


@pytest.mark.parametrize("job_id", ["abc", "00000000-0000-4000-8000-000000000000", "%00"])
def test_an_unknown_job_is_not_retried(api: Node, job_id: str) -> None:
    answer = retry(api.http, job_id, new_key())
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "JOB_NOT_FOUND")


@pytest.mark.req("ORC-076", "ORC-077")
@pytest.mark.parametrize("key", [None, "", 7, "k" * 256, "a\0"])
def test_the_new_key_is_checked_like_any_other(api: Node, sql: Sql, failed_job: str, key: object) -> None:
    before = sql.count()
    answer = retry(api.http, failed_job, key)
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "idempotencyKey")
    assert sql.count() == before


@pytest.mark.req("ORC-103")
def test_the_key_of_the_failed_job_is_no_new_key(api: Node, sql: Sql, failed_job: str) -> None:
    """It still belongs to the failed job, which is answered and not run again."""
    answer = retry(api.http, failed_job, sql.job(failed_job)["idempotency_key"])
    assert (answer.status_code, answer.json()) == (202, {"jobId": failed_job, "status": "FAILED"})
    assert sql.job(failed_job)["state"] == "DEAD"


@pytest.mark.req("ORC-020", "ORC-074")
def test_the_new_job_is_run_and_the_old_one_is_not(stack: Stack) -> None:
    """A job that fails for good ends again as FAILED, once for each time it was submitted."""
    http = stack.api.http
    job_id = submit(http, "fatal")
    assert wait_until_final(http, job_id) == "FAILED"
    before = stack.sql.job(job_id)

    other = retry(http, job_id, new_key()).json()["jobId"]

    assert wait_until_final(http, other) == "FAILED"
    assert stack.sql.job(other)["attempt"] == 1
    assert stack.sql.job(job_id) == before
    assert get(http, job_id)["status"] == "FAILED"
