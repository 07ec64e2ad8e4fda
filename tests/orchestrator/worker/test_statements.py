"""What workers send to the database, as its own log has it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from runtime.embedded.postgres import EmbeddedPostgres
from tests.support.deep import DEEP
from tests.support.orchestrator.stack import Node, wait_until
from tests.support.orchestrator.worker_processes import CALM, Crew, told

POLL_S = 0.2
TAKES = "FOR UPDATE SKIP LOCKED"
"""Only the statement that acquires has it; what is due is locked less strictly."""


@pytest.fixture(scope="module")
def spied(crew: Crew) -> Crew:
    """A database whose sessions have all their statements logged, except our own."""
    name = crew.sql.value("SELECT current_database()")
    crew.sql.run(f"ALTER DATABASE {name} SET log_statement = 'all'")
    crew.sql.run("SET log_statement = 'none'")
    return crew


@pytest.fixture(scope="module")
def slow(spied: Crew) -> Iterator[Node]:
    """A worker with three slots that looks five times a second."""
    (node,) = spied.work("spied", **CALM, POLL_INTERVAL_MS=str(int(POLL_S * 1000)), WORKER_CONCURRENCY="3")
    yield node


def logged(server: EmbeddedPostgres) -> str:
    """What the server has logged so far."""
    return server.log.read_text(encoding="utf-8", errors="replace")


@pytest.mark.req("ORC-133", "ORC-112")
def test_an_idle_worker_looks_now_and_then(spied: Crew, slow: Node, server: EmbeddedPostgres) -> None:
    """It neither spins nor gives up: its slots together send at most two statements in each interval."""
    spied.until(spied.one(), "SUCCESS")
    told(slow, "worker_started")
    since, before = time.monotonic(), logged(server).count(TAKES)
    wait_until(
        lambda: logged(server).count(TAKES) - before, "it has looked ten times", lambda seen: seen >= 10
    )
    looked = logged(server).count(TAKES) - before
    assert looked <= 2 * ((time.monotonic() - since) / POLL_S + 1)
    assert slow.running


@pytest.mark.req("ORC-132", "ORC-049", "ORC-129", "ORC-144")
def test_workers_never_delete(spied: Crew, slow: Node, server: EmbeddedPostgres) -> None:
    """Jobs that succeed, fail, die and are left behind: no statement deletes, and none deadlocks."""
    before = len(logged(server))
    jobs = [spied.one(), spied.one(fail=[1]), spied.one(fatal=True), spied.one("of no known type")]
    left = spied.put(state="CREATED")[0]
    spied.bring(left, "QUEUED", "RUNNING")
    spied.expire(left)
    assert spied.ended([*jobs, left]) == {"SUCCESS": 3, "DEAD": 2}
    log = logged(server)[before:]
    assert "THEN 'SUCCESS'" in log
    assert "DELETE FROM" not in log
    assert "deadlock detected" not in log


@pytest.mark.req("ORC-049")
def test_a_worker_needs_no_right_to_delete(spied: Crew) -> None:
    """A role that may read, write and add, and no more, is all that it takes once the schema is there."""
    spied.sql.run(
        "CREATE ROLE humble LOGIN PASSWORD 'humble';"
        "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO humble"
    )
    host = spied.database.rpartition("@")[2]
    (node,) = spied.work("humble", **CALM, DATABASE_URL=f"postgresql://humble:humble@{host}")
    jobs = spied.put(count=12, seconds=0.05)
    assert spied.ended(jobs) == {"SUCCESS": 12}
    spied.until(spied.one(fail=[1]), "SUCCESS")
    assert node.running
    assert told(node, "transition", transition="complete", lease_owner="humble")


@pytest.mark.req("ORC-113", "ORC-157")
def test_dead_rows_do_not_stop_acquisition(spied: Crew, slow: Node) -> None:
    """While a transaction is held open that keeps all old versions alive, jobs are taken as before."""
    with Crew.session(spied.database) as other:
        other.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM jobs")
        for _ in range(130 if DEEP else 4):
            jobs = spied.put("echo", count=250)
            assert spied.ended(jobs) == {"SUCCESS": 250}
        assert other.value("SELECT count(*) FROM jobs") < spied.sql.count()
        other.run("COMMIT")
