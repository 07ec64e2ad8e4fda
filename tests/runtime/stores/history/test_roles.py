"""The history under the role of the service: written, read and forgotten by its way, and never rewritten."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from generated.priority.system import SYSTEM
from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.launch.embedded.redis import EmbeddedRedis
from runtime.stores.history.tables import HistoryTables
from runtime.stores.postgres.schema.migrations import list_migrations
from runtime.stores.postgres.schema.roles import prepare
from tests.runtime.stores.history.conftest import new_database
from tests.runtime.stores.history.kit import Kit

ENDED = "ended_tasks"
REWRITING = (
    "UPDATE task_changes SET actor = 'me'",
    "DELETE FROM task_changes",
    "TRUNCATE task_changes",
    "UPDATE ended_tasks SET status = 'failed'",
    "DELETE FROM ended_tasks",
    "TRUNCATE ended_tasks",
)


@pytest.fixture(params=["service", "alone"])
async def either(
    request: pytest.FixtureRequest, redis_server: EmbeddedRedis, postgres: EmbeddedPostgres
) -> AsyncIterator[Kit]:
    """A history that is written by the service's role, or by one that does all."""
    url = await new_database(postgres)
    if request.param == "service":
        owner, url = url, postgres.service_url_of(url.rpartition("/")[2])
        assert await prepare(owner, url, SYSTEM.name) == [each.name for each in list_migrations(SYSTEM.name)]
    made = Kit(redis_server.url, url)
    await made.redis.flushall()
    yield made
    await made.close()


async def test_what_has_happened_stays_until_it_is_forgotten(either: Kit) -> None:
    await either.live("t1")
    await either.live("t2", ("queued", "executing"))
    either.begin()
    await either.emptied()
    await either.stop_all()
    changes = await either.rows("SELECT * FROM task_changes ORDER BY task_id, sequence")
    assert len(changes) == 7
    connection: asyncpg.Connection[Any] = await asyncpg.connect(either.database_url)
    try:
        for actor in ("", "historian", "manager", "client"):
            await connection.execute("SELECT set_config('app.actor', $1, false)", actor)
            for statement in REWRITING:
                # A role that owns the tables forgets by hand what the historian forgets, and nothing else.
                if actor == "historian" and statement.startswith(f"DELETE FROM {ENDED}"):
                    continue
                with pytest.raises(asyncpg.PostgresError):
                    await connection.execute(statement)
    finally:
        await connection.close()
    assert await either.rows("SELECT * FROM task_changes ORDER BY task_id, sequence") == changes
    assert await either.reader.get("t1") is not None
    tables = HistoryTables(SYSTEM.name, "task", either.database)
    assert await tables.expire(0.0) == 1
    assert {row["task_id"] for row in await either.rows("SELECT task_id FROM task_changes")} == {"t2"}
    assert await either.rows(f"SELECT * FROM {ENDED}") == []
