"""POST /jobs: a job is recorded and acknowledged, and never run by the API itself."""

from __future__ import annotations

import uuid
from pathlib import Path

import psutil
import pytest

from tests.support.orchestrator.sql_session import Sql
from tests.support.orchestrator.stack import (
    Node,
    Stack,
    get,
    new_key,
    post,
    status,
    submit,
    wait_until,
    wait_until_final,
)

MAIL = {"to": "ann@example.org", "subject": "Grüße \N{EARTH GLOBE EUROPE-AFRICA}", "parts": [{"n": 1}, None]}
JOB_FUNCTIONS = "handlers.jobs"


@pytest.mark.req("ORC-053", "ORC-055", "ORC-056", "ORC-057", "ORC-042", "ORC-036", "ORC-038")
def test_a_new_key_is_a_new_job(api: Node, sql: Sql) -> None:
    """202 with the id of a committed row and its status, and nothing else."""
    before, key = sql.count(), new_key()

    answer = post(api.http, "SEND_EMAIL", MAIL, key)

    assert answer.status_code == 202
    assert answer.json().keys() == {"jobId", "status"}
    assert answer.json()["status"] == "PENDING"
    (row,) = sql.jobs(key)
    assert row["job_id"] == uuid.UUID(answer.json()["jobId"])
    assert (row["job_type"], row["payload"], row["retry_count"]) == ("SEND_EMAIL", MAIL, 0)
    assert sql.count() == before + 1


@pytest.mark.req("ORC-021", "ORC-069", "ORC-014", "ORC-032")
def test_an_acknowledged_job_is_queued(api: Node, sql: Sql) -> None:
    """The API alone transitions a job from CREATED to QUEUED, before it answers, and the job has no owner."""
    job_id = submit(api.http)

    row = sql.job(job_id)
    assert (row["state"], row["lease_owner"], row["lease_expiry"]) == ("QUEUED", None, None)
    edges = [(each["from_state"], each["to_state"], each["actor"]) for each in sql.history(job_id)]
    assert edges == [(None, "CREATED", "api"), ("CREATED", "QUEUED", "api")]


@pytest.mark.req("ORC-054", "ORC-006")
def test_the_job_function_gets_the_payload_unchanged(stack: Stack) -> None:
    """Nested objects, lists, unicode and empty things reach the job function unchanged."""
    payload = {
        "nested": {"list": [1, 2.5, -3e10, True, None, "", [], {}], "": "empty name"},
        "unicode": "ß 漢字 \N{PILE OF POO} \u200b é é",
        "control": "\t\n\r\x1f\x7f",
        "quotes": "'\"\\ /",
    }
    job_id = submit(stack.api.http, "echo", payload)

    assert wait_until_final(stack.api.http, job_id) == "COMPLETED"
    row = stack.sql.job(job_id)
    assert row["payload"] == payload
    assert row["result"] == payload


@pytest.mark.req("ORC-054")
@pytest.mark.parametrize("body", [{}, {"idempotencyKey": None}, {"idempotencyKey": ""}])
def test_the_server_never_generates_a_key(api: Node, sql: Sql, body: dict[str, object]) -> None:
    """A job without a key of its client is refused."""
    before = sql.count()
    answer = api.http.post("/jobs", json={"jobType": "echo", "payload": {}, **body})
    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == "idempotencyKey"
    assert sql.count() == before


@pytest.mark.req("ORC-009", "ORC-059", "ORC-163")
def test_jobs_are_accepted_and_returned_without_any_worker(api_only: Stack) -> None:
    """The answer does not depend on any worker, and the job stays queued."""
    http = api_only.api.http
    job_ids = [submit(http, "echo") for _ in range(5)]

    assert {status(http, each) for each in job_ids} == {"PENDING"}
    assert {api_only.sql.job(each)["attempt"] for each in job_ids} == {0}
    assert all(row["actor"] == "api" for each in job_ids for row in api_only.sql.history(each))


@pytest.mark.req("ORC-009", "ORC-062")
def test_the_answer_does_not_wait_for_the_job(stack: Stack) -> None:
    """A long job is answered while it has not ended, and a repeat shows that it runs."""
    key = new_key()
    job_id = submit(stack.api.http, "sleep", {"seconds": 3600}, key)

    wait_until(lambda: status(stack.api.http, job_id), "it runs", lambda seen: seen == "RUNNING")
    again = post(stack.api.http, "sleep", {"seconds": 3600}, key)

    assert (again.status_code, again.json()) == (202, {"jobId": job_id, "status": "RUNNING"})
    stack.sql.run(f"UPDATE jobs SET lease_expiry = '-infinity', retry_count = 1000 WHERE job_id = '{job_id}'")
    assert wait_until_final(stack.api.http, job_id) == "FAILED"


@pytest.mark.req("ORC-059", "ORC-163")
def test_the_api_has_no_job_functions(fresh: Stack) -> None:
    """Unlike a worker, the process of the API has never imported any job function."""
    for name in ("api", "worker"):
        fresh.node(name, PYTHONPROFILEIMPORTTIME="1").begin()
    fresh.api.wait()
    wait_until_final(fresh.api.http, submit(fresh.api.http))

    assert JOB_FUNCTIONS in _list_imported(fresh.worker.errors)
    assert [name for name in _list_imported(fresh.api.errors) if name.startswith(JOB_FUNCTIONS)] == []


@pytest.mark.req("ORC-105", "ORC-161")
def test_the_api_connects_to_postgresql_only(api: Node) -> None:
    """Besides its callers, the process is connected to the database server api_only."""
    submit(api.http)
    database = int(api.database.rpartition(":")[2].partition("/")[0])
    own = {int(each.rpartition(":")[2]) for each in (api.url, api.address)}

    connections = psutil.Process(api.pid).net_connections("inet")
    open_ones = [each for each in connections if each.status == psutil.CONN_ESTABLISHED]
    outgoing = {each.raddr.port for each in open_ones if each.laddr.port not in own}
    assert outgoing == {database}


@pytest.mark.req("ORC-078", "ORC-162")
def test_fields_that_a_client_may_not_set_are_ignored(api: Node, sql: Sql) -> None:
    """Unknown fields change neither the fields that the server sets, nor when the job is due."""
    chosen = str(uuid.uuid4())
    unknown = {
        **{"jobId": chosen, "job_id": chosen, "state": "SUCCESS", "status": "COMPLETED"},
        **{"retry_count": 9, "retryCount": 9, "attempt": 9, "lease_owner": "me", "leaseExpiry": "2030-01-01"},
        **{"createdAt": "1999-01-01T00:00:00Z", "result": {}, "last_error": "x"},
        **{"schedule": "*/5 * * * *", "cron": "@daily", "runAt": "2030-01-01T00:00:00Z", "delaySeconds": 60},
    }
    job_id = submit(api.http, "echo", {}, None, **unknown)

    row = sql.job(job_id)
    assert job_id != chosen
    assert (row["state"], row["retry_count"], row["attempt"]) == ("QUEUED", 0, 0)
    assert (row["lease_owner"], row["lease_expiry"], row["next_attempt_at"]) == (None, None, None)
    assert (row["result"], row["last_error"]) == (None, None)
    assert sql.value("SELECT abs(extract(epoch FROM now() - $1)) < 3600", row["created_at"])


@pytest.mark.req("ORC-045")
def test_names_are_snake_case_in_the_database_and_camel_case_in_json(api: Node, sql: Sql) -> None:
    """Each name of the API stands for one column, by one rule."""
    job_id = submit(api.http)
    columns = sql.job(job_id).keys()

    job = {name: _to_snake_case(name) for name in get(api.http, job_id) if name != "status"}
    assert {**job, "idempotencyKey": _to_snake_case("idempotencyKey")} == {
        "jobId": "job_id",
        "jobType": "job_type",
        "createdAt": "created_at",
        "updatedAt": "updated_at",
        "idempotencyKey": "idempotency_key",
    }
    assert {*job.values(), "payload", "state"} <= columns
    assert "status" not in columns


def _to_snake_case(name: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name)


def _list_imported(errors: Path) -> list[str]:
    """The modules that a process with PYTHONPROFILEIMPORTTIME has imported."""
    lines = errors.read_text().splitlines()
    return [line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")]
