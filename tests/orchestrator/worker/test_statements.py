"""The statements that workers send to the database, read from its log."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from runtime.launch.embedded.postgres import EmbeddedPostgres
from tests.support.deep import DEEP
from tests.support.orchestrator.stack import Node, wait_until
from tests.support.orchestrator.worker_processes import LONG_LEASES, Crew, wait_for_lines

POLL_S = 0.2
CLAIM = "FOR UPDATE OF jobs SKIP LOCKED"
"""Only the statement that claims has it; due rows are locked less strictly."""


@pytest.fixture(scope="module")
def logging_crew(crew: Crew) -> Crew:
    """A database whose sessions have all their statements logged, except our own."""
    name = crew.sql.value("SELECT current_database()")
    crew.sql.run(f"ALTER DATABASE {name} SET log_statement = 'all'")
    crew.sql.run("SET log_statement = 'none'")
    return crew


@pytest.fixture(scope="module")
def slow_worker(logging_crew: Crew) -> Iterator[Node]:
    """A worker with three slots that polls five times a second."""
    (node,) = logging_crew.start_workers(
        "spied", **LONG_LEASES, POLL_INTERVAL_MS=str(int(POLL_S * 1000)), WORKER_CONCURRENCY="3"
    )
    yield node


def read_log(server: EmbeddedPostgres) -> str:
    """The log of the server so far."""
    return server.log.read_text(encoding="utf-8", errors="replace")


@pytest.mark.req("ORC-133", "ORC-112")
def test_an_idle_worker_polls_at_its_interval(
    logging_crew: Crew, slow_worker: Node, server: EmbeddedPostgres
) -> None:
    """It neither spins nor stops: its slots send at most two statements in each interval."""
    logging_crew.wait_for_state(logging_crew.insert_job(), "SUCCESS")
    wait_for_lines(slow_worker, "worker_started")
    since, before = time.monotonic(), read_log(server).count(CLAIM)
    wait_until(
        lambda: read_log(server).count(CLAIM) - before, "it has looked ten times", lambda seen: seen >= 10
    )
    looked = read_log(server).count(CLAIM) - before
    assert looked <= 2 * ((time.monotonic() - since) / POLL_S + 1)
    assert slow_worker.running


@pytest.mark.req("ORC-132", "ORC-049", "ORC-129", "ORC-144")
def test_workers_never_delete(logging_crew: Crew, slow_worker: Node, server: EmbeddedPostgres) -> None:
    """Jobs that succeed, fail, die and lose their lease: no statement deletes, and none deadlocks."""
    before = len(read_log(server))
    jobs = [
        logging_crew.insert_job(),
        logging_crew.insert_job(fail=[1]),
        logging_crew.insert_job(fatal=True),
        logging_crew.insert_job("of no known type"),
    ]
    expired = logging_crew.insert_jobs(state="CREATED")[0]
    logging_crew.transition(expired, "QUEUED", "RUNNING")
    logging_crew.expire(expired)
    assert logging_crew.wait_until_ended([*jobs, expired]) == {"SUCCESS": 3, "DEAD": 2}
    log = read_log(server)[before:]
    assert "THEN 'SUCCESS'" in log
    assert "DELETE FROM" not in log
    assert "deadlock detected" not in log


@pytest.mark.req("ORC-049")
def test_a_worker_needs_no_right_to_delete(logging_crew: Crew) -> None:
    """A role that may select, insert and update is enough once the schema is there."""
    logging_crew.sql.run(
        "CREATE ROLE humble LOGIN PASSWORD 'humble';"
        "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO humble"
    )
    host = logging_crew.database.rpartition("@")[2]
    (node,) = logging_crew.start_workers(
        "humble", **LONG_LEASES, DATABASE_URL=f"postgresql://humble:humble@{host}"
    )
    jobs = logging_crew.insert_jobs(count=12, seconds=0.05)
    assert logging_crew.wait_until_ended(jobs) == {"SUCCESS": 12}
    logging_crew.wait_for_state(logging_crew.insert_job(fail=[1]), "SUCCESS")
    assert node.running
    assert wait_for_lines(node, "transition", transition="complete", lease_owner="humble")


@pytest.mark.req("ORC-113", "ORC-157")
def test_dead_rows_do_not_stop_claims(logging_crew: Crew, slow_worker: Node) -> None:
    """An open transaction keeps all old versions alive; jobs are claimed as before."""
    with Crew.session(logging_crew.database) as other:
        other.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM jobs")
        for _ in range(130 if DEEP else 4):
            jobs = logging_crew.insert_jobs("echo", count=250)
            assert logging_crew.wait_until_ended(jobs) == {"SUCCESS": 250}
        assert other.value("SELECT count(*) FROM jobs") < logging_crew.sql.count()
        other.run("COMMIT")
