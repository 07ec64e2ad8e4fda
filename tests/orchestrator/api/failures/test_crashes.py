"""An API that is killed: between its two steps, between two requests, and again and again."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import httpx
import pytest

from tests.support.chaos import Chaos
from tests.support.orchestrator.lock_gate import close_gate, count_at_the_gate
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
from tests.support.plain_http import NO_TLS


def crash_after_insert(stack: Stack, api: Node) -> tuple[str, str]:
    """Kill an API after it has stored a job and before it has queued it; return the key and the id."""
    key = new_key()
    queueing = "OLD.state = 'CREATED' AND NEW.state = 'QUEUED'"
    with close_gate(stack, "BEFORE UPDATE", queueing) as keeper, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(_post_alone, api, key)
        wait_until(lambda: count_at_the_gate(stack.sql), "the API is about to queue the job")
        api.kill()
        assert isinstance(answer.exception(), httpx.TransportError)
        terminate_sessions(keeper)
    (row,) = stack.sql.jobs(key)
    assert row["state"] == "CREATED"
    return key, str(row["job_id"])


def terminate_sessions(sql: Sql) -> None:
    """End all sessions of the service, as the server does when it notices that the client is gone."""
    sql.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name LIKE 'orchestrator%'"
    )
    still = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name LIKE 'orchestrator%'"
    )
    wait_until(lambda: sql.value(still) == 0, "the sessions have ended")


def _post_alone(api: Node, key: str) -> httpx.Response:
    with httpx.Client(base_url=api.url, timeout=60, verify=NO_TLS) as http:
        return post(http, "echo", {"n": 1}, key)


@pytest.mark.req("ORC-065", "ORC-066", "ORC-067", "ORC-012", "ORC-013", "ORC-001")
def test_a_repeat_after_a_crash_between_the_two_steps_finds_the_job(fresh: Stack) -> None:
    """The row stays and no worker claims it; the repeat queues it, and it is run once."""
    api = fresh.add("api", CREATED_GRACE_SECONDS="3600")
    key, job_id = crash_after_insert(fresh, api)
    fresh.add("worker")
    later = str(
        fresh.sql.value(
            "INSERT INTO jobs (job_type, payload, idempotency_key) VALUES"
            " ('echo', '{}', 'later') RETURNING job_id"
        )
    )
    fresh.sql.transition(later, "QUEUED")
    wait_until(lambda: fresh.sql.job(later)["state"] == "SUCCESS", "the worker has run a younger job")
    assert (fresh.sql.job(job_id)["state"], fresh.sql.job(job_id)["attempt"]) == ("CREATED", 0)

    api.start()
    again = post(api.http, "echo", {"n": 1}, key)

    assert (again.status_code, again.json()["jobId"]) == (202, job_id)
    assert len(fresh.sql.jobs(key)) == 1
    assert wait_until_final(api.http, job_id) == "COMPLETED"
    assert fresh.sql.job(job_id)["attempt"] == 1
    edges = [(each["to_state"], each["actor"]) for each in fresh.sql.history(job_id)]
    assert edges == [("CREATED", "api"), ("QUEUED", "api"), ("RUNNING", "worker"), ("SUCCESS", "worker")]


@pytest.mark.req("ORC-068", "ORC-069", "ORC-013", "ORC-032")
def test_the_sweeper_queues_a_job_stranded_by_a_crash(fresh: Stack) -> None:
    """No client has to return: after the grace any API queues the job, and only once."""
    first = fresh.add("api", CREATED_GRACE_SECONDS="3600")
    _, job_id = crash_after_insert(fresh, first)
    for _ in range(2):
        fresh.node("api", CREATED_GRACE_SECONDS="0.2").begin()

    wait_until(lambda: fresh.sql.job(job_id)["state"] == "QUEUED", "it is queued")
    edges = [(each["to_state"], each["actor"]) for each in fresh.sql.history(job_id)]
    assert edges == [("CREATED", "api"), ("QUEUED", "api")]


@pytest.mark.req("ORC-069", "ORC-068")
def test_a_stored_job_that_cannot_be_queued_is_accepted_all_the_same(fresh: Stack) -> None:
    """The first step makes the promise: 202, and the sweeper queues the job when that is possible again."""
    api = fresh.add("api", CREATED_GRACE_SECONDS="0.1", CREATED_SWEEP_SECONDS="0.1")
    fresh.sql.run(
        "CREATE FUNCTION be_busy() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'busy' USING ERRCODE = '53000'; END $$;"
        " CREATE TRIGGER a_refusal BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION be_busy()"
    )
    key = new_key()
    answer = post(api.http, "echo", {}, key)
    assert (answer.status_code, answer.json()["status"]) == (202, "PENDING")
    batch = api.http.post(
        "/jobs/batch", json={"jobs": [{"jobType": "echo", "payload": {}, "idempotencyKey": new_key()}]}
    )
    assert batch.status_code == 202
    job_ids = [answer.json()["jobId"], batch.json()["jobs"][0]["jobId"]]
    assert [fresh.sql.job(each)["state"] for each in job_ids] == ["CREATED", "CREATED"]
    assert post(api.http, "echo", {}, key).json() == answer.json()

    fresh.sql.run("DROP FUNCTION be_busy CASCADE")
    waiting = "SELECT count(*) FROM jobs WHERE state <> 'QUEUED'"
    wait_until(lambda: fresh.sql.value(waiting) == 0, "the sweeper has queued both")


@pytest.mark.req("ORC-071", "ORC-102")
def test_any_api_serves_the_jobs_of_a_killed_one(fresh: Stack) -> None:
    """A job that was submitted to one is found, returned and repeated at another."""
    one, other = fresh.node("api").begin(), fresh.node("api").begin()
    one.wait()
    other.wait()
    key = new_key()
    job_id = submit(one.http, "echo", {}, key)
    one.kill()

    assert submit(other.http, "echo", {}, key) == job_id
    assert get(other.http, job_id)["jobId"] == job_id
    assert len(fresh.sql.jobs(key)) == 1


@pytest.mark.chaos
@pytest.mark.req("ORC-072")
def test_clients_that_repeat_through_crashes_never_create_two_jobs(fresh: Stack, chaos: Chaos) -> None:
    """Many keys by many clients while the API is killed at random moments: as many rows as keys."""
    keys, kills = chaos.size(100, 300), chaos.size(2, 6)
    api, chance, over = fresh.add("api"), chaos.chance, threading.Event()
    remaining = iter([f"key-{n}" for n in range(keys)])
    lock = threading.Lock()

    def client() -> dict[str, str]:
        found: dict[str, str] = {}
        with httpx.Client(base_url=api.url, timeout=20, verify=NO_TLS) as http:
            while True:
                with lock:
                    key = next(remaining, None)
                if key is None:
                    return found
                while key not in found and not over.is_set():
                    try:
                        answer = post(http, "echo", {"key": key}, key)
                    except httpx.TransportError:
                        over.wait(0.05)
                        continue
                    if answer.status_code == 202:
                        found[key] = answer.json()["jobId"]

    with ThreadPoolExecutor(8) as pool:
        clients: list[Future[dict[str, str]]] = [pool.submit(client) for _ in range(8)]
        try:
            for number in range(kills):
                due = chance.randrange(keys * number // kills, keys * (number + 1) // kills)
                wait_until(fresh.sql.count, f"{due} jobs are stored", due.__le__)
                api.kill()
                api.start()
            answered = {key: job for each in clients for key, job in each.result().items()}
        finally:
            over.set()
    assert len(answered) == keys
    assert fresh.sql.count() == keys
    stored = fresh.sql.rows("SELECT idempotency_key, job_id::text FROM jobs")
    assert {row["idempotency_key"]: row["job_id"] for row in stored} == answered
    waiting = "SELECT count(*) FROM jobs WHERE state <> 'QUEUED'"
    wait_until(lambda: fresh.sql.value(waiting) == 0, "every job is queued")
    chaos.count(kills=kills, keys=keys, made_twice=0)
