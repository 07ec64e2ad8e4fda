"""Many clients, many API processes, one key: the unique constraint decides, and nothing else."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import asyncpg
import pytest

from tests.orchestrator.conftest import NewDatabase
from tests.support.chaos import Chaos
from tests.support.orchestrator.lock_gate import close_gate, count_at_the_gate
from tests.support.orchestrator.sql_session import Sql
from tests.support.orchestrator.stack import Node, Stack, new_key, post, submit, wait_until

PROCESSES = 2
INSERT = (
    "INSERT INTO jobs (job_type, payload, idempotency_key) VALUES ('echo', '{}', $1) RETURNING job_id::text"
)


@pytest.fixture(scope="module")
def several_apis(new_database: NewDatabase, logs: Path) -> Iterator[Stack]:
    """Several API processes on one empty database, started at the same time."""
    with Stack(new_database(), logs) as stack:
        for _ in range(PROCESSES):
            stack.node("api", CREATED_GRACE_SECONDS="3600").begin()
        for node in stack.nodes:
            node.wait()
        yield stack


@pytest.mark.chaos
@pytest.mark.req("ORC-070", "ORC-101", "ORC-060", "ORC-036", "ORC-051")
async def test_a_key_submitted_by_many_clients_is_one_job(several_apis: Stack, chaos: Chaos) -> None:
    """Every client submits every key, in an order of its own, at any process: as many jobs as keys."""
    before = await asyncio.to_thread(several_apis.sql.count)
    clients, count_of_keys = chaos.size(20, 40), chaos.size(50, 200)
    keys = [new_key("shared") for _ in range(count_of_keys)]

    async def client(number: int) -> list[tuple[str, int, str]]:
        chance = random.Random(f"{chaos.seed}/{number}")
        lines = [await RawConnection.connect(node) for node in several_apis.nodes]
        try:
            return [(key, *await chance.choice(lines).post(key)) for key in chance.sample(keys, len(keys))]
        finally:
            for line in lines:
                line.close()

    answers = [each for answers in await asyncio.gather(*map(client, range(clients))) for each in answers]

    assert Counter(status for _, status, _ in answers) == {202: clients * count_of_keys}
    ids: dict[str, set[str]] = {key: set() for key in keys}
    for key, _, job_id in answers:
        ids[key].add(job_id)
    assert {len(found) for found in ids.values()} == {1}
    assert len(set.union(*ids.values())) == count_of_keys
    assert await asyncio.to_thread(several_apis.sql.count) == before + count_of_keys
    chaos.count(clients=clients, keys=count_of_keys, made_twice=0)


@pytest.mark.chaos
@pytest.mark.req("ORC-070", "ORC-101")
def test_the_first_requests_with_a_key_get_one_job(several_apis: Stack, chaos: Chaos) -> None:
    """Fifty clients with one new key at two processes."""
    one, other = several_apis.nodes[:2]
    for _ in chaos.rounds(2):
        key = new_key()
        with ThreadPoolExecutor(50) as pool:
            clients = [pool.submit(post, node.http, "echo", {}, key) for node in (one, other) * 25]
            answers = [each.result() for each in clients]
        assert {answer.status_code for answer in answers} == {202}
        assert {answer.text for answer in answers} == {answers[0].text}
        assert len(several_apis.sql.jobs(key)) == 1


@pytest.mark.req("ORC-098", "ORC-099")
def test_two_processes_that_insert_at_the_same_moment(several_apis: Stack) -> None:
    """Both are blocked right before the row is written, so that no earlier lookup can have helped them."""
    key = new_key()
    with ThreadPoolExecutor(2) as pool:
        with close_gate(several_apis, "BEFORE INSERT", f"NEW.idempotency_key = '{key}'"):
            clients = [pool.submit(post, node.http, "echo", {}, key) for node in several_apis.nodes[:2]]
            wait_until(lambda: count_at_the_gate(several_apis.sql) == 2, "both are at the gate")
        answers = [client.result() for client in clients]
    assert {answer.status_code for answer in answers} == {202}
    (row,) = several_apis.sql.jobs(key)
    assert {answer.json()["jobId"] for answer in answers} == {str(row["job_id"])}


@pytest.mark.req("ORC-098", "ORC-044")
def test_only_the_constraint_makes_keys_unique(several_apis: Stack) -> None:
    """Neither a lookup nor the memory of a process helps: without the constraint nothing is accepted."""
    key = new_key()
    job_id = submit(several_apis.api.http, "echo", {}, key)
    several_apis.sql.run("ALTER TABLE jobs DROP CONSTRAINT jobs_unique")
    try:
        assert [post(node.http, "echo", {}, key).status_code for node in several_apis.nodes[:2]] == [500, 500]
        assert post(several_apis.api.http, "echo", {}, new_key()).status_code == 500
    finally:
        several_apis.sql.run("ALTER TABLE jobs ADD CONSTRAINT jobs_unique UNIQUE (idempotency_key)")
    wait_until(
        lambda: post(several_apis.api.http, "echo", {}, key).status_code == 202, "it is accepted again"
    )
    assert submit(several_apis.nodes[1].http, "echo", {}, key) == job_id


@pytest.mark.req("ORC-099", "ORC-044")
def test_a_second_insert_waits_for_the_first_and_then_conflicts(several_apis: Stack) -> None:
    """Between two sessions the database decides: the second waits, then gets an error and no row."""
    key = new_key()
    with (
        Sql(several_apis.database) as first,
        Sql(several_apis.database) as second,
        ThreadPoolExecutor(1) as pool,
    ):
        first.run("BEGIN")
        job_id = first.value(INSERT, key)
        pid = second.value("SELECT pg_backend_pid()")
        waiting = pool.submit(second.value, INSERT, key)
        wait_until(lambda: is_blocked(several_apis.sql, pid), "the second waits")
        first.run("COMMIT")
        error = waiting.exception()
    assert isinstance(error, asyncpg.UniqueViolationError)
    assert error.sqlstate == "23505"
    assert [str(row["job_id"]) for row in several_apis.sql.jobs(key)] == [job_id]


@pytest.mark.req("ORC-099", "ORC-100")
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_submit_waits_for_a_concurrent_insert_of_its_key(several_apis: Stack, end: str) -> None:
    """If the other commits, its job is the answer; if it rolls back, the submit creates the job itself."""
    key = new_key()
    with Sql(several_apis.database) as other, ThreadPoolExecutor(1) as pool:
        other.run("BEGIN")
        theirs = other.value(INSERT, key)
        answer = pool.submit(post, several_apis.api.http, "echo", {}, key)
        wait_until(lambda: count_blocked(several_apis.sql), "the API waits")
        other.run(end)
        assert answer.result().status_code == 202
        got = answer.result().json()["jobId"]
    assert (got == theirs) == (end == "COMMIT")
    assert [(str(row["job_id"]), row["state"]) for row in several_apis.sql.jobs(key)] == [(got, "QUEUED")]


@pytest.mark.req("ORC-099", "ORC-010")
def test_a_locked_key_does_not_delay_other_keys(several_apis: Stack) -> None:
    """However many keys an open transaction has locked, submits of other keys are accepted meanwhile."""
    api, locked = several_apis.api, [new_key("held") for _ in range(6)]
    with Sql(several_apis.database) as other, ThreadPoolExecutor(len(locked)) as pool:
        other.run("BEGIN")
        for key in locked:
            other.value(INSERT, key)
        answers = [pool.submit(post, api.http, "echo", {}, key) for key in locked]
        wait_until(lambda: count_blocked(several_apis.sql), "the API waits")
        for _ in range(10):
            submit(api.http)
        assert not any(answer.done() for answer in answers)
        other.run("COMMIT")
        assert {answer.result().status_code for answer in answers} == {202}


class RawConnection:
    """An HTTP connection that costs a client next to nothing, so that the load is on the service."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, node: Node) -> RawConnection:
        host, _, port = node.url.removeprefix("http://").partition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    async def post(self, key: str) -> tuple[int, str]:
        """Submit a job; return the status and the id of the answer."""
        body = json.dumps({"jobType": "echo", "payload": {"key": key}, "idempotencyKey": key}).encode()
        head = "POST /jobs HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        self._writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        (length,) = (int(line.split()[1]) for line in lines if line.startswith("content-length:"))
        answer = json.loads(await self._reader.readexactly(length))
        return int(first.split()[1]), answer.get("jobId", "")

    def close(self) -> None:
        self._writer.close()


def is_blocked(sql: Sql, pid: int) -> bool:
    """Whether a session waits for a lock."""
    return bool(sql.value("SELECT cardinality(pg_blocking_pids($1)) > 0", pid))


def count_blocked(sql: Sql) -> int:
    """How many sessions of the service wait for a lock."""
    return int(
        sql.value(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name LIKE 'orchestrator%' AND cardinality(pg_blocking_pids(pid)) > 0"
        )
    )
