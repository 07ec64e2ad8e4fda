"""The SQL scripts of the comparison match their schema, and a real worker drains a queue."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from bench.peers import ours
from bench.peers.ceiling import DRAINS, PgbenchCeiling
from bench.peers.contestants import PostgresQueue
from bench.peers.guards import WITHOUT
from bench.peers.measurement import PostgresBench
from bench.peers.server import PostgresServer, start_server


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with start_server() as started:
        yield started


@pytest.fixture(scope="module")
def queue(server: PostgresServer) -> PostgresQueue:
    return asyncio.run(ours.create_queue(server))


def count(queue: PostgresQueue, where: str = "true") -> int:
    return int(queue.database.execute(f"SELECT count(*) FROM jobs WHERE {where}"))


async def test_a_worker_drains_what_was_filled(
    server: PostgresServer, queue: PostgresQueue, tmp_path: Path
) -> None:
    """A real process, timed by the stamps that it leaves."""
    for jobs in (1200, 6000, 30_000):
        queue.prepare(aged=False)
        rate = await PostgresBench(server, tmp_path).drain(queue, ours.SLOTS[10], jobs, 120)
        assert rate.count == count(queue, "state = 'SUCCESS'") == jobs
        # Few jobs may all be finished before this process, on a busy machine, has seen the first.
        if rate.cpu_us > 0:
            break
    assert rate.per_s > 0
    assert rate.cpu_us > 0


async def test_pickups_are_timed(server: PostgresServer, queue: PostgresQueue, tmp_path: Path) -> None:
    """From the submit in one process to the job function in another."""
    queue.prepare(aged=False)
    picked = await PostgresBench(server, tmp_path).measure_pickup(queue, ours.IN_DATABASE, 3)
    assert picked.waited.count == 3
    assert picked.waited.p50_ms > 0


def test_submits_go_through_the_api(server: PostgresServer, queue: PostgresQueue, tmp_path: Path) -> None:
    """Every call is answered as accepted, or the producer fails."""
    queue.prepare(aged=False)
    bench = PostgresBench(server, tmp_path)
    bench.measure_submits(queue, ours.OVER_HTTP, "single", 20, 4)
    assert count(queue, "state = 'QUEUED'") == 32
    bench.measure_submits(queue, ours.OVER_HTTP, "bulk", 1000, 1000)
    assert count(queue, "state = 'QUEUED'") == 2032


def test_finished_jobs_survive_a_clear(queue: PostgresQueue) -> None:
    """Finished jobs have their transitions, and waiting jobs are deleted."""
    queue.prepare(aged=False)
    queue.database.run_script("age", jobs=50)
    queue.database.execute(
        "INSERT INTO jobs (job_type, payload, idempotency_key) VALUES ('echo', '{}', 'left')"
    )
    queue.prepare(aged=True)
    assert count(queue) == count(queue, "state = 'SUCCESS'") == 50
    assert queue.database.execute("SELECT count(*) FROM job_transitions") == "200"


async def test_pending_and_finished_jobs_are_found(queue: PostgresQueue) -> None:
    """By the queries that a drain is timed with."""
    queue.prepare(aged=False)
    connection = await asyncpg.connect(queue.database.url)
    try:
        since = await connection.fetchval("SELECT clock_timestamp()")
        assert not await connection.fetchval(queue.database.read_query("pending"))
        await connection.execute(
            "INSERT INTO jobs (job_type, payload, idempotency_key) VALUES ('echo', '{}', 'one')"
        )
        assert await connection.fetchval(queue.database.read_query("pending"))
        assert await connection.fetch(queue.database.read_query("finished"), since) == []
    finally:
        await connection.close()


@pytest.mark.parametrize("script", WITHOUT.values())
async def test_each_guard_can_be_removed(server: PostgresServer, script: str) -> None:
    """The scripts name triggers and constraints that the schema has."""
    (await ours.create_queue(server, script)).database.run_script(script)


def test_the_bare_table_is_drained_by_pgbench(server: PostgresServer) -> None:
    """One at a time, by ten at a time, and in batches."""
    bare = PgbenchCeiling(server)
    for name in DRAINS:
        bare.prepare(aged=False)
        rate = bare.drain(name, 400)
        assert bare.database.execute("SELECT count(*) FROM bare WHERE state = 2") == str(rate.count)
