"""The scripts of the comparison fit the schema that they are for, and a real worker drains a queue."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from bench.peers import ours
from bench.peers.bare import DRAINS, Bare
from bench.peers.contestants import Queue
from bench.peers.guards import WITHOUT
from bench.peers.measure import Bench
from bench.peers.server import Server, serving


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as started:
        yield started


@pytest.fixture(scope="module")
def queue(server: Server) -> Queue:
    return asyncio.run(ours.queue(server))


def count(queue: Queue, where: str = "true") -> int:
    return int(queue.database.say(f"SELECT count(*) FROM jobs WHERE {where}"))


async def test_a_worker_drains_what_was_filled(server: Server, queue: Queue, tmp_path: Path) -> None:
    """A real process, timed by the stamps that it leaves."""
    queue.prepare(aged=False)
    rate = await Bench(server, tmp_path).drain(queue, ours.SLOTS[10], 1200, 120)
    assert rate.count == count(queue, "state = 'SUCCESS'") == 1200
    assert rate.per_s > 0
    assert rate.cpu_us > 0


async def test_pickups_are_timed(server: Server, queue: Queue, tmp_path: Path) -> None:
    """From the submit in one process to the job function in another."""
    queue.prepare(aged=False)
    picked = await Bench(server, tmp_path).pickup(queue, ours.IN_DATABASE, 3)
    assert picked.waited.count == 3
    assert picked.waited.p50_ms > 0


def test_submits_go_through_the_api(server: Server, queue: Queue, tmp_path: Path) -> None:
    """Every call is answered as accepted, or the producer fails."""
    queue.prepare(aged=False)
    bench = Bench(server, tmp_path)
    bench.submits(queue, ours.OVER_HTTP, "single", 20, 4)
    assert count(queue, "state = 'QUEUED'") == 32
    bench.submits(queue, ours.OVER_HTTP, "bulk", 1000, 1000)
    assert count(queue, "state = 'QUEUED'") == 2032


def test_a_past_outlives_what_is_cleared_away(queue: Queue) -> None:
    """Finished jobs have their transitions, and jobs that wait are gone."""
    queue.prepare(aged=False)
    queue.database.run("age", jobs=50)
    queue.database.say("INSERT INTO jobs (job_type, payload, idempotency_key) VALUES ('echo', '{}', 'left')")
    queue.prepare(aged=True)
    assert count(queue) == count(queue, "state = 'SUCCESS'") == 50
    assert queue.database.say("SELECT count(*) FROM job_transitions") == "200"


async def test_what_is_pending_and_what_is_finished(queue: Queue) -> None:
    """By the queries that a drain is timed with."""
    queue.prepare(aged=False)
    connection = await asyncpg.connect(queue.database.url)
    try:
        since = await connection.fetchval("SELECT clock_timestamp()")
        assert not await connection.fetchval(queue.database.text("pending"))
        await connection.execute(
            "INSERT INTO jobs (job_type, payload, idempotency_key) VALUES ('echo', '{}', 'one')"
        )
        assert await connection.fetchval(queue.database.text("pending"))
        assert await connection.fetch(queue.database.text("finished"), since) == []
    finally:
        await connection.close()


@pytest.mark.parametrize("script", WITHOUT.values())
async def test_each_guard_can_be_taken_away(server: Server, script: str) -> None:
    """The scripts name triggers and constraints that the schema has."""
    (await ours.queue(server, script)).database.run(script)


def test_the_bare_table_is_drained_by_pgbench(server: Server) -> None:
    """One at a time, by ten at a time, and in batches."""
    bare = Bare(server)
    for name in DRAINS:
        bare.prepare(aged=False)
        rate = bare.drain(name, 400)
        assert bare.database.say("SELECT count(*) FROM bare WHERE state = 2") == str(rate.count)
