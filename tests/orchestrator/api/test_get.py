"""GET /jobs/{jobId}: five fields of the committed row, nothing else, and no effect."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import httpx
import pytest

from tests.support.deep import DEEP
from tests.support.orchestrator.sql_session import Sql
from tests.support.orchestrator.stack import Node, Stack, final, get, new_key, post, submit, wait_until

FIELDS = {"jobId", "jobType", "status", "createdAt", "updatedAt"}
WAYS = {
    "QUEUED": ([], "PENDING"),
    "RUNNING": (["RUNNING"], "RUNNING"),
    "RETRY": (["RUNNING", "RETRY"], "PENDING"),
    "SUCCESS": (["RUNNING", "SUCCESS"], "COMPLETED"),
    "DEAD": (["RUNNING", "RETRY", "DEAD"], "FAILED"),
}
"""How a job that was just submitted gets into each state, and what it is called then."""


@pytest.mark.req("ORC-080", "ORC-081", "ORC-090")
def test_a_job_is_shown_by_five_fields(api: Node) -> None:
    """Its id, type, status and two times, under the id that the submit answered."""
    job_id = submit(api.http, "SEND_EMAIL", {"to": "ann"})
    shown = get(api.http, job_id)
    assert shown.keys() == FIELDS
    assert (shown["jobId"], shown["jobType"], shown["status"]) == (job_id, "SEND_EMAIL", "PENDING")


@pytest.mark.req("ORC-082", "ORC-057", "ORC-037", "ORC-081")
@pytest.mark.parametrize("state", WAYS)
def test_six_states_are_shown_as_four(api: Node, sql: Sql, state: str) -> None:
    """Each stored state has one status; the fields are the same five in every one."""
    steps, expected = WAYS[state]
    job_id = submit(api.http)
    sql.move(job_id, *steps)
    assert sql.job(job_id)["state"] == state

    shown = get(api.http, job_id)

    assert shown.keys() == FIELDS
    assert shown["status"] == expected


@pytest.mark.req("ORC-082", "ORC-057")
def test_a_job_that_was_only_stored_is_pending(api: Node, sql: Sql) -> None:
    """CREATED is PENDING too, for a look as for a repeat, which also queues it."""
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
    shown = get(api.http, job_id)
    for name, column in (("createdAt", "created_at"), ("updatedAt", "updated_at")):
        assert shown[name].endswith("Z")
        assert datetime.fromisoformat(shown[name]) == row[column]
    assert row["created_at"].tzinfo is UTC or row["created_at"].utcoffset().total_seconds() == 0

    for moment in ("2030-01-02 03:04:05+00", "1970-01-01 00:00:00+00", "2999-12-31 23:59:59.000001+00"):
        sql.run(f"UPDATE jobs SET updated_at = '{moment}' WHERE job_id = '{job_id}'")
        assert datetime.fromisoformat(get(api.http, job_id)["updatedAt"]) == sql.job(job_id)["updated_at"]


@pytest.mark.req("ORC-084", "ORC-085", "ORC-086", "ORC-087", "ORC-090", "ORC-046")
@pytest.mark.parametrize("state", WAYS)
def test_nothing_that_is_kept_for_the_system_is_shown(api: Node, sql: Sql, state: str) -> None:
    """Payload, key, counters, owner, lease and result appear nowhere in the answer, whatever the state."""
    marks = {
        name: f"{name}-mark-{uuid.uuid4().hex}" for name in ("payload", "key", "owner", "result", "error")
    }
    job_id = submit(api.http, "echo", {"secret": marks["payload"]}, marks["key"])
    sql.move(job_id, *WAYS[state][0])
    sql.run(
        f"UPDATE jobs SET result = to_jsonb('{marks['result']}'::text), last_error = '{marks['error']}',"
        f" retry_count = 424242, attempt = 434343, lease_owner = CASE state WHEN 'RUNNING' THEN"
        f" '{marks['owner']}' END WHERE job_id = '{job_id}'"
    )

    answer = api.http.get(f"/jobs/{job_id}")
    listed = api.http.get("/jobs", params={"pageSize": 200})

    for text in (answer.text, str(answer.headers), listed.text):
        for mark in (*marks.values(), "424242", "434343", "lease", "attempt", "retry"):
            assert mark not in text


@pytest.mark.req("ORC-088", "ORC-085", "ORC-154", "ORC-137")
def test_why_a_job_failed_is_not_shown(stack: Stack) -> None:
    """What the job function raised is kept for operators and is in no answer for clients."""
    mark = uuid.uuid4().hex
    job_id = submit(stack.api.http, "sleep", {"seconds": mark})
    assert final(stack.api.http, job_id) == "FAILED"
    assert mark in stack.sql.job(job_id)["last_error"]

    answer = stack.api.http.get(f"/jobs/{job_id}")

    assert answer.json().keys() == FIELDS
    for word in (mark, "Traceback", "BAD_PAYLOAD", "error"):
        assert word not in answer.text + str(answer.headers)


@pytest.mark.req("ORC-091")
def test_looking_changes_nothing(api: Node, sql: Sql) -> None:
    """After many looks the row is the same version in the same place, and nothing was written."""
    job_id = submit(api.http)
    before, count, edges = sql.job(job_id), sql.count(), sql.history(job_id)

    for _ in range(1000 if DEEP else 100):
        assert api.http.get(f"/jobs/{job_id}").status_code == 200

    assert sql.job(job_id) == before
    assert (sql.count(), sql.history(job_id)) == (count, edges)


@pytest.mark.req("ORC-091")
def test_looking_needs_no_right_to_write(alone: Stack) -> None:
    """An API whose sessions may only read still answers looks; only submits are refused."""
    job_id = submit(alone.api.http)
    name = alone.database.rpartition("/")[2]
    alone.sql.run(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    try:
        reader = alone.add("api")
        assert get(reader.http, job_id)["jobId"] == job_id
        assert reader.http.get("/jobs").status_code == 200
        refused = post(reader.http, "echo", {}, new_key())
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "SERVICE_UNAVAILABLE")
    finally:
        alone.sql.run(f"SET default_transaction_read_only = off; ALTER DATABASE {name} RESET ALL")


@pytest.mark.req("ORC-092")
def test_the_same_row_gives_the_same_answer(api: Node, sql: Sql) -> None:
    """A hundred looks in turn and fifty at once at a job that has ended are equal in every byte."""
    job_id = submit(api.http)
    sql.move(job_id, "RUNNING", "SUCCESS")

    def look(_number: int) -> tuple[bytes, dict[str, str]]:
        answer = api.http.get(f"/jobs/{job_id}")
        return answer.content, dict(answer.headers)

    answers = [look(number) for number in range(100)]
    with ThreadPoolExecutor(50) as pool:
        answers += pool.map(look, range(50))
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.req("ORC-093", "ORC-071")
def test_every_api_shows_the_row_as_it_is_now(alone: Stack) -> None:
    """What another session commits is in the next answer of every process, and nobody may keep an answer."""
    first, other = alone.api, alone.add("api")
    job_id = submit(first.http)
    for state, shown in (("RUNNING", "RUNNING"), ("RETRY", "PENDING"), ("QUEUED", "PENDING")):
        alone.sql.move(job_id, state)
        updated = alone.sql.job(job_id)["updated_at"]
        for node in (first, other):
            answer = node.http.get(f"/jobs/{job_id}")
            assert answer.headers["cache-control"] == "no-store"
            assert answer.json()["status"] == shown
            assert datetime.fromisoformat(answer.json()["updatedAt"]) == updated


@pytest.mark.req("ORC-093")
def test_what_is_not_committed_is_not_shown(alone: Stack) -> None:
    """A transaction in progress neither shows nor holds up anybody who looks."""
    job_id = submit(alone.api.http)
    with Sql(alone.database) as other:
        other.run("BEGIN")
        other.move(job_id, "RUNNING")
        assert get(alone.api.http, job_id)["status"] == "PENDING"
        other.run("COMMIT")
    assert get(alone.api.http, job_id)["status"] == "RUNNING"


@pytest.mark.req("ORC-094")
def test_a_job_whose_lease_has_ended_runs_until_the_reaper_comes(api: Node, sql: Sql) -> None:
    """Looking does not repair; there is no reaper here, so it stays as it is."""
    job_id = submit(api.http)
    sql.move(job_id, "RUNNING")
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
def test_an_id_that_no_job_has_is_not_found(api: Node, sql: Sql, job_id: str) -> None:
    """404 for every id that is none, in every notation; nothing is created and nothing is given away."""
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
def test_an_id_is_found_in_capitals_too(api: Node) -> None:
    """A UUID is the same in either case."""
    job_id = submit(api.http)
    assert get(api.http, job_id.upper())["jobId"] == job_id


@pytest.mark.req("ORC-089")
def test_a_fault_gives_nothing_away(alone: Stack) -> None:
    """A database that answers nonsense is a 500 with an id to look for in the log, and no more than that."""
    with Sql(alone.database) as sql:
        job_id = submit(alone.api.http)
        sql.run("ALTER TABLE jobs RENAME COLUMN last_error TO other_error")
        try:
            looked = alone.api.http.get(f"/jobs/{job_id}")
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
    assert get(alone.api.http, job_id)["jobId"] == job_id


@pytest.mark.req("ORC-089")
def test_a_refusal_of_the_database_is_a_fault_without_details(alone: Stack) -> None:
    """What a trigger or a constraint of somebody else raises is a 500 that names an id for the log."""
    with Sql(alone.database) as sql:
        sql.run(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'secret-detail-of-a-trigger'; END $$;"
            "CREATE TRIGGER a_refusal BEFORE INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
        try:
            answer = post(alone.api.http, "echo", {"mark": "payload-mark"}, new_key())
        finally:
            sql.run("DROP FUNCTION refuse CASCADE")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "INTERNAL_ERROR")
    for word in ("secret-detail", "trigger", "Raise", "asyncpg", "Traceback", "/", "payload-mark"):
        assert word not in answer.text
    correlation = answer.json()["error"]["message"].rpartition(" ")[2]
    told = wait_until(
        lambda: [line for line in alone.api.lines() if line.get("correlation_id") == correlation],
        "it is told",
    )
    assert all("payload-mark" not in str(line) for line in told)
