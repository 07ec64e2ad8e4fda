"""A real Redis and a real PostgreSQL; each test has a database of its own and an empty stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest

from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.launch.embedded.redis import EmbeddedRedis
from runtime.stores.postgres import database
from tests.runtime.stores.history.kit import WORLD, Kit
from tests.support.postgres_clusters import QUICKLY


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    made = EmbeddedRedis(tmp_path_factory.mktemp("redis") / "shared")
    made.start()
    yield made
    made.remove()


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes long here is a busy machine, of which no writer shall tell as of an outage."""
    monkeypatch.setattr(database, "WAIT_S", 60.0)


@pytest.fixture(scope="session")
def postgres(shared_postgres: EmbeddedPostgres) -> EmbeddedPostgres:
    return shared_postgres


@pytest.fixture
async def kit(redis_server: EmbeddedRedis, postgres: EmbeddedPostgres) -> AsyncIterator[Kit]:
    made = Kit(redis_server.url, await new_database(postgres))
    await made.redis.flushall()
    yield made
    await made.close()


async def new_database(server: EmbeddedPostgres) -> str:
    """Where a new, empty database is."""
    name = f"t_{WORLD.new_id().replace('-', '')}"
    connection: asyncpg.Connection[Any] = await asyncpg.connect(server.url)
    try:
        await connection.execute(f"CREATE DATABASE {name} {QUICKLY}")
    finally:
        await connection.close()
    return server.url_of(name)
