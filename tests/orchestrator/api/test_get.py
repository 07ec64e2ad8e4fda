"""GET /jobs/{jobId}: five fields of the committed row, nothing else, and no effect."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import httpx
import pytest

from tests.support.deep import DEEP
from tests.support.orchestrator.sql_session import Sql
from tests.support.orchestrator.stack import (
    Node,
    Stack,
    get,
    new_key,
    post,
    submit,
    wait_until,
    wait_until_final,
)

FIELDS = {"jobId", "jobType", "status", "createdAt", "updatedAt"}
PATHS = {
    "QUEUED": ([], "PENDING"),
    "RUNNING": (["RUNNING"], "RUNNING"),
    "RETRY": (["RUNNING", "RETRY"], "PENDING"),
    "SUCCESS": (["RUNNING", "SUCCESS"], "COMPLETED"),
    "DEAD": (["RUNNING", "RETRY", "DEAD"], "FAILED"),
}
"""How a submitted job gets into each state, and its public status then."""


@pytest.mark.req("ORC-080", "ORC-081", "ORC-090")
def test_a_job_is_returned_with_five_fields(api: Node) -> None:
    """Its id, type, status and two times, under the id that the submit answered."""
    job_id = submit(api.http, "SEND_EMAIL", {"to": "ann"})
    job = get(api.http, job_id)
    assert job.keys() == FIELDS
    assert (job["jobId"], job["jobType"], job["status"]) == (job_id, "SEND_EMAIL", "PENDING")


@pytest.mark.req("ORC-082", "ORC-057", "ORC-037", "ORC-081")
@pytest.mark.parametrize("state", PATHS)
def test_six_states_have_four_statuses(api: Node, sql: Sql, state: str) -> None:
    """Each stored state has one status; the fields are the same five in every one."""
    steps, expected = PATHS[state]
    job_id = submit(api.http)
    sql.transition(job_id, *steps)
    assert sql.job(job_id)["state"] == state

    job = get(api.http, job_id)

    assert job.keys() == FIELDS
    assert job["status"] == expected


@pytest.mark.req("ORC-082", "ORC-057")
def test_a_job_that_was_only_stored_is_pending(api: Node, sql: Sql) -> None:
    """CREATED is PENDING too, for a read as for a repeat, which also queues it."""
    key = new_key()
    text = "INSERT INTO jobs (job_type, payload, idempotency_key) VALUES ('echo', '{}', $1) RETURNING job_id"
    job_id = str(sql.value(text, key))

    assert get(api.http, job_id)["status"] == "PENDING"
    assert sql.job(job_id)["state"] == "CREATED"
    again = post(api.http, "echo", {}, key)
    assert again.json() == {"jobId": job_id, "status": "PENDING"}
    assert sql.job(job_id)["state"] == "QUEUED"


@pytest.mark.req("ORC-083", "ORC-041")
def test_times_are_those_of_the_row(api: Node, sql: Sql) -> None:
    """RFC 3339 in UTC with a Z, to the microsecond, also where a second is whole or the year is far away."""
    job_id = submit(api.http)
    row = sql.job(job_id)
    job = get(api.http, job_id)
    for name, column in (("createdAt", "created_at"), ("updatedAt", "updated_at")):
        assert job[name].endswith("Z")
        assert datetime.fromisoformat(job[name]) == row[column]
    assert row["created_at"].tzinfo is UTC or row["created_at"].utcoffset().total_seconds() == 0

    for moment in ("2030-01-02 03:04:05+00", "1970-01-01 00:00:00+00", "2999-12-31 23:59:59.000001+00"):
        sql.run(f"UPDATE jobs SET updated_at = '{moment}' WHERE job_id = '{job_id}'")
        assert datetime.fromisoformat(get(api.http, job_id)["updatedAt"]) == sql.job(job_id)["updated_at"]


@pytest.mark.req("ORC-084", "ORC-085", "ORC-086", "ORC-087", "ORC-090", "ORC-046")
@pytest.mark.parametrize("state", PATHS)
def test_no_internal_field_is_returned(api: Node, sql: Sql, state: str) -> None:
    """Payload, key, counters, owner, lease and result appear nowhere in the answer, whatever the state."""
    secrets = {
        name: f"{name}-mark-{uuid.uuid4().hex}" for name in ("payload", "key", "owner", "result", "error")
    }
    job_id = submit(api.http, "echo", {"secret": secrets["payload"]}, secrets["key"])
    sql.transition(job_id, *PATHS[state][0])
    sql.run(
        f"UPDATE jobs SET result = to_jsonb('{secrets['result']}'::text), last_error = '{secrets['error']}',"
        f" retry_count = 424242, attempt = 434343, lease_owner = CASE state WHEN 'RUNNING' THEN"
        f" '{secrets['owner']}' END WHERE job_id = '{job_id}'"
    )

    answer = api.http.get(f"/jobs/{job_id}")
    listed = api.http.get("/jobs", params={"pageSize": 200})

    for text in (answer.text, str(answer.headers), listed.text):
        for secret in (*secrets.values(), "424242", "434343", "lease", "attempt", "retry"):
            assert secret not in text


@pytest.mark.req("ORC-088", "ORC-085", "ORC-154", "ORC-137")
def test_the_error_of_a_failed_job_is_not_returned(stack: Stack) -> None:
    """The error of the job function is stored for operators and is in no answer for clients."""
    secret = uuid.uuid4().hex
    job_id = submit(stack.api.http, "sleep", {"seconds": secret})
    assert wait_until_final(stack.api.http, job_id) == "FAILED"
    assert secret in stack.sql.job(job_id)["last_error"]

    answer = stack.api.http.get(f"/jobs/{job_id}")

    assert answer.json().keys() == FIELDS
    for word in (secret, "Traceback", "BAD_PAYLOAD", "error"):
        assert word not in answer.text + str(answer.headers)


@pytest.mark.req("ORC-091")
def test_a_read_changes_nothing(api: Node, sql: Sql) -> None:
    """After many reads the row is the same version in the same place, and nothing was written."""
    job_id = submit(api.http)
    before, count, edges = sql.job(job_id), sql.count(), sql.history(job_id)

    for _ in range(1000 if DEEP else 100):
        assert api.http.get(f"/jobs/{job_id}").status_code == 200

    assert sql.job(job_id) == before
    assert (sql.count(), sql.history(job_id)) == (count, edges)


@pytest.mark.req("ORC-091")
def test_a_read_needs_no_right_to_write(api_only: Stack) -> None:
    """An API whose sessions may only read still answers reads; only submits are refused."""
    job_id = submit(api_only.api.http)
    name = api_only.database.rpartition("/")[2]
    api_only.sql.run(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    try:
        reader = api_only.add("api")
        assert get(reader.http, job_id)["jobId"] == job_id
        assert reader.http.get("/jobs").status_code == 200
        refused = post(reader.http, "echo", {}, new_key())
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "SERVICE_UNAVAILABLE")
    finally:
        api_only.sql.run(f"SET default_transaction_read_only = off; ALTER DATABASE {name} RESET ALL")


@pytest.mark.req("ORC-092")
def test_the_same_row_gives_the_same_answer(api: Node, sql: Sql) -> None:
    """A hundred reads in turn and fifty at once of a job that has ended are equal in every byte."""
    job_id = submit(api.http)
    sql.transition(job_id, "RUNNING", "SUCCESS")

    def read(_number: int) -> tuple[bytes, dict[str, str]]:
        answer = api.http.get(f"/jobs/{job_id}")
        return answer.content, dict(answer.headers)

    answers = [read(number) for number in range(100)]
    with ThreadPoolExecutor(50) as pool:
        answers += pool.map(read, range(50))
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.req("ORC-093", "ORC-071")
def test_every_api_returns_the_current_row(api_only: Stack) -> None:
    """A commit of another session is in the next answer of every process; answers must not be cached."""
    first, other = api_only.api, api_only.add("api")
    job_id = submit(first.http)
    for state, job in (("RUNNING", "RUNNING"), ("RETRY", "PENDING"), ("QUEUED", "PENDING")):
        api_only.sql.transition(job_id, state)
        updated = api_only.sql.job(job_id)["updated_at"]
        for node in (first, other):
            answer = node.http.get(f"/jobs/{job_id}")
            assert answer.headers["cache-control"] == "no-store"
            assert answer.json()["status"] == job
            assert datetime.fromisoformat(answer.json()["updatedAt"]) == updated


@pytest.mark.req("ORC-093")
def test_an_uncommitted_change_is_not_returned(api_only: Stack) -> None:
    """A transaction in progress is neither visible to readers nor blocks them."""
    job_id = submit(api_only.api.http)
    with Sql(api_only.database) as other:
        other.run("BEGIN")
        other.transition(job_id, "RUNNING")
        assert get(api_only.api.http, job_id)["status"] == "PENDING"
        other.run("COMMIT")
    assert get(api_only.api.http, job_id)["status"] == "RUNNING"


@pytest.mark.req("ORC-094")
def test_a_job_with_an_expired_lease_is_running_until_the_reaper_runs(api: Node, sql: Sql) -> None:
    """A read does not repair; there is no reaper here, so the job stays as it is."""
    job_id = submit(api.http)
    sql.transition(job_id, "RUNNING")
    sql.run(f"UPDATE jobs SET lease_expiry = '2001-01-01' WHERE job_id = '{job_id}'")
    before = sql.job(job_id)

    assert [get(api.http, job_id)["status"] for _ in range(5)] == ["RUNNING"] * 5
    assert sql.job(job_id) == before


@pytest.mark.req("ORC-095", "ORC-096", "ORC-089")
@pytest.mark.parametrize(
    "job_id",
    [
        "00000000-0000-4000-8000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "abc",
        "%00",
        "%ff%fe",
        "0",
        "-1",
        "{jobId}",
        "%2e%2e",
        "a" * 5000,
        "%F0%9F%98%80",
        "00000000-0000-4000-8000-00000000000",
        "00000000-0000-4000-8000-0000000000000",
        "0000000000004000800000000000000",
        "00000000000040008000000000000000",
        "{00000000-0000-4000-8000-000000000000}",
        "1;DROP%20TABLE%20jobs",
        "%27%20OR%20%271%27=%271",
        "null",
        "batch",
    ],
)
def test_an_unknown_id_is_not_found(api: Node, sql: Sql, job_id: str) -> None:
    """404 for every id that does not exist, in every notation; nothing is created or revealed."""
    before = sql.count()
    # As it stands, percent signs and all.
    answer = api.http.get(httpx.URL(api.url, raw_path=f"/jobs/{job_id}".encode()))
    if job_id == "batch":
        assert (answer.status_code, answer.json()["error"]["code"]) == (405, "METHOD_NOT_ALLOWED")
        return
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "JOB_NOT_FOUND")
    assert answer.json().keys() == {"error"}
    assert answer.json()["error"].keys() == {"code", "message"}
    assert sql.count() == before


@pytest.mark.req("ORC-096")
def test_an_id_in_capitals_is_found(api: Node) -> None:
    """A UUID is the same in either case."""
    job_id = submit(api.http)
    assert get(api.http, job_id.upper())["jobId"] == job_id


@pytest.mark.req("ORC-089")
def test_a_fault_reveals_nothing(api_only: Stack) -> None:
    """An invalid answer of the database is a 500 with an id to look for in the log, and no more than that."""
    with Sql(api_only.database) as sql:
        job_id = submit(api_only.api.http)
        sql.run("ALTER TABLE jobs RENAME COLUMN last_error TO other_error")
        try:
            looked = api_only.api.http.get(f"/jobs/{job_id}")
        finally:
            sql.run("ALTER TABLE jobs RENAME COLUMN other_error TO last_error")
    assert looked.status_code == 503
    for word in (
        "SQL",
        "sqlstate",
        "column",
        "last_error",
        "asyncpg",
        "Traceback",
        "/",
        "127.0.0.1",
        "relation",
    ):
        assert word not in looked.json()["error"]["message"]
    assert get(api_only.api.http, job_id)["jobId"] == job_id


@pytest.mark.req("ORC-089")
def test_an_error_of_the_database_is_a_fault_without_details(api_only: Stack) -> None:
    """An error of a foreign trigger or constraint is a 500 with an id to look for in the log."""
    with Sql(api_only.database) as sql:
        sql.run(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'secret-detail-of-a-trigger'; END $$;"
            "CREATE TRIGGER a_refusal BEFORE INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
        try:
            answer = post(api_only.api.http, "echo", {"mark": "payload-mark"}, new_key())
        finally:
            sql.run("DROP FUNCTION refuse CASCADE")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "INTERNAL_ERROR")
    for word in ("secret-detail", "trigger", "Raise", "asyncpg", "Traceback", "/", "payload-mark"):
        assert word not in answer.text
    correlation = answer.json()["error"]["message"].rpartition(" ")[2]
    body = wait_until(
        lambda: [line for line in api_only.api.lines() if line.get("correlation_id") == correlation],
        "it is logged",
    )
    assert all("payload-mark" not in str(line) for line in body)
