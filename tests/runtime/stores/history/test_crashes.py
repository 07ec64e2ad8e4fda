"""Writers that are killed and a database that goes away cost time, and not a single row."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis.exceptions import ResponseError

from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.launch.embedded.redis import EmbeddedRedis
from runtime.stores.history import stream as streams
from runtime.stores.history import writer as writers
from tests.runtime.stores.history.conftest import new_database
from tests.runtime.stores.history.kit import PATH, STREAM, Kit
from tests.support.chaos import Chaos
from tests.support.postgres_clusters import Clusters

ROOT = Path(__file__).parents[4]
AT_ONCE = 200
WHOLE = """
SELECT count(*) FROM (
    SELECT count(*) AS rows, min(sequence) AS first, max(sequence) AS last FROM task_changes GROUP BY task_id
) AS each WHERE rows = 5 AND first = 1 AND last = 5
"""


@pytest.mark.chaos
@pytest.mark.req("PQ-250")
async def test_killed_writers_lose_nothing_and_double_nothing(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, chaos: Chaos
) -> None:
    """Writers are killed one after the other with entries in hand, and another finishes their work."""
    tasks = kills = attempts = 0
    wanted = chaos.size(2, 10)
    while kills < wanted:
        attempts += 1
        assert attempts <= 10 * wanted, "no writer could be killed in the middle of its work"
        filling = asyncio.create_task(_fill(kit, tasks, tasks + AT_ONCE))
        tasks += AT_ONCE
        process = await asyncio.to_thread(_start, kit.redis_url, kit.database_url)
        await _some_in_hand(kit, process.pid, filling)
        process.kill()
        await asyncio.to_thread(process.communicate)
        kills += await _in_hand(kit, process.pid) > 0
        await filling
    monkeypatch.setattr(streams, "ABANDONED_MS", 200)
    monkeypatch.setattr(writers, "MAINTENANCE_S", 0.3)
    kit.begin()
    await kit.emptied(60)
    ((whole,),) = await kit.rows(WHOLE)
    ((rows,),) = await kit.rows("SELECT count(*) FROM task_changes")
    ((ended,),) = await kit.rows("SELECT count(*) FROM ended_tasks")
    assert (whole, rows, ended) == (tasks, tasks * len(PATH), tasks)
    chaos.count(kills=kills, rows=rows, lost=0)


@pytest.mark.chaos
@pytest.mark.req("PQ-249")
async def test_a_killed_database_has_what_it_confirmed(
    own_kit: Kit, own_postgres: EmbeddedPostgres, chaos: Chaos
) -> None:
    """The database is killed in the middle of batches, and what was not confirmed is written again."""
    outages = chaos.size(1, 3)
    own_kit.begin()
    filling = asyncio.create_task(_fill(own_kit, 0, 4 * AT_ONCE))
    for _ in range(outages):
        await _some_in_hand(own_kit, os.getpid(), filling)
        own_postgres.kill()
        own_postgres.start()  # here, because it ends with the thread that starts it
    await filling
    await own_kit.emptied(60)
    ((whole,),) = await own_kit.rows(WHOLE)
    ((rows,),) = await own_kit.rows("SELECT count(*) FROM task_changes")
    assert (whole, rows) == (4 * AT_ONCE, 4 * AT_ONCE * len(PATH))
    told = own_kit.lines.read_back("history_waits")
    assert len(told) <= 2 * outages, "an outage is told once, and not with every attempt"
    chaos.count(kills=outages, rows=rows, lost=0)


@pytest.fixture(scope="module")
def own_postgres(clusters: Clusters) -> Iterator[EmbeddedPostgres]:
    """A database that may be stopped and killed, and so writes to the disk for real."""
    with clusters.started(shared_buffers="64MB") as made:
        yield made


@pytest.fixture
async def own_kit(redis_server: EmbeddedRedis, own_postgres: EmbeddedPostgres) -> AsyncIterator[Kit]:
    """Everything around that database."""
    made = Kit(redis_server.url, await new_database(own_postgres))
    await made.redis.flushall()
    yield made
    await made.close()


async def _some_in_hand(kit: Kit, pid: int, filling: asyncio.Task[None]) -> None:
    """Waits until the writer of a process has taken something, or all that there is and will be is done."""
    while not await _in_hand(kit, pid) and not (filling.done() and not await kit.redis.xlen(STREAM)):
        await asyncio.sleep(0.002)


async def _in_hand(kit: Kit, pid: int) -> int:
    """How many entries a process has taken and not done; none if it did not come as far as to take any."""
    try:
        holders = (await kit.redis.xpending(STREAM, streams.GROUP))["consumers"]
    except ResponseError:
        return 0
    return sum(int(each["pending"]) for each in holders if f":{pid}:" in each["name"])


async def _fill(kit: Kit, first: int, end: int) -> None:
    for number in range(first, end):
        await kit.live(f"t{number}")


def _start(redis_url: str, database_url: str) -> subprocess.Popen[str]:
    """A writer that has begun."""
    command = [sys.executable, "-m", "tests.runtime.stores.history.lone_writer", redis_url, database_url]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ, cwd=ROOT)
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    return process
