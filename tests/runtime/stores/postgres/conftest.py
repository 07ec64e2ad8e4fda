"""One PostgreSQL for all tests of a session. Each test finds its tables empty, or asks for a new database."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.stores.postgres import context, database, maintenance
from runtime.world import RealWorld
from tests.runtime.stores.postgres.kit import Kit, unguarded
from tests.support.postgres_clusters import QUICKLY

MakeKit = Callable[..., Awaitable[Kit]]
SHARED = "shared"


PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes long here is a busy machine: neither a connection nor a statement is given up for that."""
    monkeypatch.setattr(database, "WAIT_S", PATIENCE_S)
    monkeypatch.setattr(context, "STATEMENT_S", PATIENCE_S)
    # Nor do counts rest for minutes after one that was held up.
    monkeypatch.setattr(maintenance, "_QUICK_COUNT_S", PATIENCE_S)


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """A folder that another user can pass through, which pytest's own are not."""
    made = Path(tempfile.mkdtemp(prefix="charter-test-"))
    made.chmod(0o711)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="session")
def server(shared_postgres: EmbeddedPostgres) -> EmbeddedPostgres:
    """A server; nothing in it has to outlive the machine."""
    return shared_postgres


@pytest.fixture
async def url(server: EmbeddedPostgres) -> str:
    """A database whose tables are empty. A new one for each test would take ten times as long."""
    url = server.url_of(SHARED)
    if not await _exists(server, SHARED):
        await new_database(server, SHARED)
        return url
    connection: asyncpg.Connection[Any] = await asyncpg.connect(url)
    try:
        await connection.execute(unguarded("TRUNCATE jobs, job_transitions RESTART IDENTITY"))
    finally:
        await connection.close()
    return url


@pytest.fixture
async def fresh_url(server: EmbeddedPostgres) -> AsyncIterator[str]:
    """A new database without anything in it."""
    name = f"t_{RealWorld().new_id().replace('-', '')}"
    yield await new_database(server, name)
    await _command(server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def make_kit(url: str) -> AsyncIterator[MakeKit]:
    """Makes stores over one database, as different processes would have them."""
    made: list[Kit] = []

    async def make(**values: Any) -> Kit:
        kit = await Kit(url, values).open()
        made.append(kit)
        return kit

    yield make
    for kit in made:
        await kit.close()


@pytest.fixture
async def kit(make_kit: MakeKit) -> Kit:
    return await make_kit()


async def new_database(server: EmbeddedPostgres, name: str) -> str:
    """Where a new, empty database is."""
    await _command(server, f"CREATE DATABASE {name} {QUICKLY}")
    return server.url_of(name)


async def _exists(server: EmbeddedPostgres, name: str) -> bool:
    return bool(await _command(server, f"SELECT FROM pg_database WHERE datname = '{name}'"))


async def _command(server: EmbeddedPostgres, text: str) -> list[Any]:
    connection: asyncpg.Connection[Any] = await asyncpg.connect(server.url)
    try:
        return await connection.fetch(text)
    finally:
        await connection.close()
