"""Two series of one system in one database: what an outbox writes, and what a deployment has moved there."""

from __future__ import annotations

import asyncpg
import pytest

from generated.priority.system import SYSTEM
from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.stores.postgres.__main__ import main
from runtime.stores.postgres.schema.migrations import list_migrations
from runtime.stores.postgres.schema.roles import prepare
from runtime.stores.postgres.schema.series import list_databases

MOVED = "priority/postgres"


async def test_each_is_applied_by_itself(server: EmbeddedPostgres, fresh_url: str) -> None:
    url = server.service_url_of(fresh_url.rpartition("/")[2])
    for series in ("priority", MOVED):
        assert await prepare(fresh_url, url, series) == [each.name for each in list_migrations(series)]
        assert await prepare(fresh_url, url, series) == []
    connection = await asyncpg.connect(url)
    try:
        applied = await connection.fetch("SELECT system, count(*) FROM charter_migrations GROUP BY 1")
        assert {row[0]: row[1] for row in applied} == {
            series: len(list_migrations(series)) for series in ("priority", MOVED)
        }
        for table in ("task_changes", "ended_tasks", "tasks", "task_history", "workers"):
            assert await connection.fetchval(f"SELECT count(*) FROM {table}") == 0
    finally:
        await connection.close()


def test_a_deployment_needs_the_series_of_its_engine() -> None:
    assert list_databases(SYSTEM) == list_databases(SYSTEM, "redis") == {"DATABASE_URL": "priority"}
    assert list_databases(SYSTEM, "postgres") == {"DATABASE_URL": MOVED}
    assert list_databases(SYSTEM, "sqlite") == list_databases(SYSTEM, "memory") == {}


@pytest.mark.parametrize("series", ["priority/other", "orchestrator/postgres", "nowhere/postgres"])
def test_the_command_knows_no_other(series: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", series]) == 2
    assert series in capsys.readouterr().err
