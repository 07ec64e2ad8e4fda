"""Writers that are killed and a database that goes away cost time, and not a single row."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.embedded.postgres import EmbeddedPostgres
from runtime.embedded.redis import EmbeddedRedis
from runtime.history import stream as streams
from runtime.history import writer as writers
from tests.runtime.history.conftest import new_database
from tests.runtime.history.kit import PATH, STREAM, Kit

ROOT = Path(__file__).parents[3]
KILLS = 12
TASKS = 3_000
WHOLE = """
SELECT count(*) FROM (
    SELECT count(*) AS rows, min(sequence) AS first, max(sequence) AS last FROM task_changes GROUP BY task_id
) AS each WHERE rows = 5 AND first = 1 AND last = 5
"""


@pytest.mark.req("PQ-250")
async def test_killed_writers_lose_nothing_and_double_nothing(
    redis_server: EmbeddedRedis, postgres: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writers are killed at random moments under load, one after the other, and one finishes their work."""
    database = await new_database(postgres)
    kit = Kit(redis_server.url, database)
    await kit.redis.flushall()
    chance = random.Random(6)
    filling = asyncio.create_task(_fill(kit, TASKS))
    killed_while_at_it = 0
    for _ in range(KILLS):
        process = await asyncio.to_thread(_start, redis_server.url, database)
        await asyncio.sleep(chance.uniform(0.05, 0.4))
        process.kill()
        await asyncio.to_thread(process.communicate)
        killed_while_at_it += (await kit.redis.xpending(STREAM, streams.GROUP))["pending"] > 0
    await filling
    monkeypatch.setattr(streams, "ABANDONED_MS", 200)
    monkeypatch.setattr(writers, "TIDY_S", 0.3)
    kit.begin()
    await kit.emptied(60)
    ((whole,),) = await kit.rows(WHOLE)
    ((rows,),) = await kit.rows("SELECT count(*) FROM task_changes")
    ((ended,),) = await kit.rows("SELECT count(*) FROM ended_tasks")
    assert (whole, rows, ended) == (TASKS, TASKS * len(PATH), TASKS)
    assert killed_while_at_it, "no writer died with anything in hand, so nothing was proven"
    await kit.close()


@pytest.mark.req("PQ-249")
async def test_the_stream_waits_while_the_database_is_away(
    redis_server: EmbeddedRedis, own_postgres: EmbeddedPostgres
) -> None:
    """A hundred lives while it is down are a hundred complete histories once it is up, each row once."""
    kit = Kit(redis_server.url, await new_database(own_postgres))
    await kit.redis.flushall()
    kit.begin()
    kit.begin()
    await kit.live("before")
    await kit.emptied()
    own_postgres.stop()
    await _fill(kit, 100)
    await asyncio.sleep(1.5)
    assert await kit.redis.xlen(STREAM) == 100 * len(PATH)
    own_postgres.start()  # here, because it ends with the thread that starts it
    await kit.emptied(30)
    ((whole,),) = await kit.rows(WHOLE)
    ((rows,),) = await kit.rows("SELECT count(*) FROM task_changes")
    assert (whole, rows) == (101, 101 * len(PATH))
    waits = kit.lines.read_back("history_waits")
    assert 1 <= len(waits) <= 4, "an outage is told once by each, and not with every attempt"
    await kit.close()


@pytest.mark.req("PQ-249")
async def test_a_killed_database_has_what_it_confirmed(
    redis_server: EmbeddedRedis, own_postgres: EmbeddedPostgres
) -> None:
    """The database is killed in the middle of batches, three times."""
    kit = Kit(redis_server.url, await new_database(own_postgres))
    await kit.redis.flushall()
    kit.begin()
    filling = asyncio.create_task(_fill(kit, 1_500))
    for _ in range(3):
        await asyncio.sleep(0.3)
        own_postgres.kill()
        own_postgres.start()  # here, because it ends with the thread that starts it
    await filling
    await kit.emptied(60)
    ((whole,),) = await kit.rows(WHOLE)
    ((rows,),) = await kit.rows("SELECT count(*) FROM task_changes")
    assert (whole, rows) == (1_500, 1_500 * len(PATH))
    await kit.close()


@pytest.fixture(scope="module")
def own_postgres(folder: Path) -> Iterator[EmbeddedPostgres]:
    """A database that may be stopped and killed, and so writes to the disk for real."""
    made = EmbeddedPostgres(folder / "own", settings={"shared_buffers": "64MB"})
    made.start()
    yield made
    made.remove()


async def _fill(kit: Kit, tasks: int) -> None:
    for number in range(tasks):
        await kit.live(f"t{number}")


def _start(redis_url: str, database_url: str) -> subprocess.Popen[str]:
    """A writer that has begun."""
    command = [sys.executable, "-m", "tests.runtime.history.lone_writer", redis_url, database_url]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ, cwd=ROOT)
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    return process
