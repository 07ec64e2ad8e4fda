"""The history of a task is readable after Redis has expired it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.launch.embedded.postgres import EmbeddedPostgres
from tests.orchestrator.conftest import make_database
from tests.priority.conftest import NewServers
from tests.support.orchestrator.sql_session import Sql
from tests.support.postgres_clusters import Clusters
from tests.support.priority.stack import Queue, Servers, Stack, expect_refusal, expect_success, wait_until

ROWS = "SELECT * FROM task_changes WHERE task_id = $1 ORDER BY sequence"
WHOLE = """
SELECT count(*) AS tasks, coalesce(sum(rows), 0)::int AS rows FROM (
    SELECT count(*) AS rows, max(sequence) AS last FROM task_changes GROUP BY task_id
) AS each WHERE rows = last AND last = $1
"""


@pytest.fixture
def sql(shared_stack: Stack) -> Iterator[Sql]:
    """The database of the shared stack, whose API creates the tables when it has begun to answer."""
    with Sql(shared_stack.servers.database_url) as session:
        wait_until(
            lambda: session.value("SELECT to_regclass('task_changes') IS NOT NULL"), "the table is there"
        )
        yield session


@pytest.mark.req("PQ-248", "PQ-090", "PQ-244", "PQ-078")
def test_each_transition_is_a_row_and_a_line(shared_stack: Stack, queue: Queue, sql: Sql) -> None:
    """A task that failed twice and then succeeded: seven rows and seven lines with the same trace."""
    worker = queue.register()
    answer = queue.post(task_type="echo", headers={"x-trace-id": "trace-of-seven"})
    task, trace = answer.json()["task_id"], queue.read_hash(answer.json()["task_id"])["trace_id"]
    for _ in range(2):
        assert queue.fail(worker, queue.claim(worker)) == "queued"
    queue.complete(worker, queue.claim(worker))
    rows = wait_until(lambda: sql.rows(ROWS, task), "all is written", lambda seen: len(seen) == 7)
    path = ["queued", "executing", "queued", "executing", "queued", "executing", "completed"]
    assert [row["to_state"] for row in rows] == path
    assert [row["from_state"] for row in rows] == [None, *path[:-1]]
    assert [row["fence"] for row in rows[1:]] == [1, 1, 2, 2, 3, 3]
    assert {row["owner"] for row in rows[1:]} == {worker}
    assert [row["reason"] for row in rows] == [None, None, "reported", None, "reported", None, None]
    assert {row["trace"] for row in rows} == {trace}
    assert [row["at"] for row in rows] == sorted(row["at"] for row in rows)

    def list_transitions() -> list[dict[str, Any]]:
        lines = shared_stack.nodes[0].lines()
        return [line for line in lines if line["event"] == "transition" and task in json.dumps(line)]

    logged = wait_until(list_transitions, "all is logged", lambda seen: len(seen) >= len(path))
    assert len(logged) == len(path)
    assert {line["trace_id"] for line in logged} == {trace}


@pytest.mark.req("PQ-247")
def test_the_history_outlives_the_hash(queue: Queue, sql: Sql) -> None:
    """The history returns the same as Redis did before, and all transitions are still there."""
    worker = queue.register()
    task = queue.submit(parameters={"n": 1, "deep": [None, {"ü": "€"}]}, idempotency_key="one")
    queue.complete(worker, queue.claim(worker), {"sum": 3.5})
    wait_until(lambda: sql.rows(ROWS, task), "all is written", lambda seen: len(seen) == 3)
    before = queue.get(task)
    queue.redis.delete(f"tasks:{task}")
    assert queue.get(task) == before
    history = expect_success(queue.admin.get(f"/api/v1/admin/tasks/{task}/history"))
    assert [each["to_status"] for each in history["changes"]] == ["queued", "executing", "completed"]
    expect_refusal(queue.client.delete(f"/api/v1/tasks/{task}"), 409, "TASK_TERMINAL")


@pytest.mark.req("PQ-056")
def test_terminal_tasks_expire_in_redis_and_stay_readable(fresh: Stack) -> None:
    """After the retention time the hash is gone, and GET answers as before."""
    fresh.add("api", TASK_RETENTION_SECONDS="2")
    queue = fresh.queue()
    worker = queue.register()
    completed, cancelled = queue.submit(), queue.submit()
    queue.complete(worker, queue.claim(worker), {"ok": True})
    expect_success(queue.cancel(cancelled))
    wait_until(lambda: queue.redis.xlen("history:outbox"), "all is written", lambda seen: seen == 0)
    before = [queue.get(each) for each in (completed, cancelled)]
    wait_until(
        lambda: queue.read_hash(completed) or queue.read_hash(cancelled),
        "both are gone",
        lambda seen: not seen,
    )
    assert [queue.get(each) for each in (completed, cancelled)] == before


@pytest.mark.req("PQ-249")
def test_the_queue_works_without_postgresql(
    own_postgres: EmbeddedPostgres, stack_on_own_postgres: Stack
) -> None:
    """A hundred tasks while it is down are a hundred complete histories once it is up, each row once."""
    own_postgres.stop()
    stack_on_own_postgres.add("api")
    queue = stack_on_own_postgres.queue()
    worker = queue.register(capacity=100)
    for _ in range(100):
        queue.submit()
    for task in queue.poll(worker, 100):
        queue.complete(worker, task)
    assert queue.redis.xlen("history:outbox") > 200, "a poll may have claimed all in one script"
    own_postgres.start()
    with Sql(stack_on_own_postgres.servers.database_url) as sql:
        wait_until(lambda: queue.redis.xlen("history:outbox"), "all is written", lambda seen: seen == 0)
        assert sql.row(WHOLE, 3) == {"tasks": 100, "rows": 300}


@pytest.fixture(scope="module")
def own_postgres(clusters: Clusters) -> Iterator[EmbeddedPostgres]:
    """A PostgreSQL that may be stopped."""
    with clusters.started() as server:
        yield server


@pytest.fixture
def stack_on_own_postgres(
    new_servers: NewServers, own_postgres: EmbeddedPostgres, logs: Path
) -> Iterator[Stack]:
    """Processes around a PostgreSQL that may be stopped."""
    servers = Servers(new_servers().redis_url, make_database(own_postgres))
    with Stack(servers, logs) as stack:
        yield stack
