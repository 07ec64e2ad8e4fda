"""One PostgreSQL for all tests of the orchestrator, fresh databases on it, and the processes around them.

`api` and `stack` serve all tests that do not break them. A test that kills, stops or floods
something uses `fresh`, whose database and processes are its own.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import pytest

from runtime.embedded.postgres import EmbeddedPostgres
from tests.support.orchestrator.sql_session import Sql
from tests.support.orchestrator.stack import Node, Stack
from tests.support.postgres_clusters import QUICKLY, Clusters

NewDatabase = Callable[[], str]


@pytest.fixture(scope="session")
def server(shared_postgres: EmbeddedPostgres) -> EmbeddedPostgres:
    """A real PostgreSQL. A test that stops it uses `own_server` instead, so that no other test notices."""
    return shared_postgres


@pytest.fixture(scope="module")
def own_server(clusters: Clusters) -> Iterator[EmbeddedPostgres]:
    """A PostgreSQL that the tests of one module may stop, restart and kill."""
    with clusters.started() as server:
        yield server


@pytest.fixture(scope="session")
def new_database(server: EmbeddedPostgres) -> NewDatabase:
    """Create an empty database; return its address."""
    return lambda: make_database(server)


@pytest.fixture
def database(new_database: NewDatabase) -> str:
    """The address of an empty database."""
    return new_database()


@pytest.fixture(scope="session")
def api_only(new_database: NewDatabase, logs: Path) -> Iterator[Stack]:
    """An API without any worker: submitted jobs stay QUEUED."""
    with Stack(new_database(), logs) as stack:
        stack.add("api", CREATED_GRACE_SECONDS="3600")
        yield stack


@pytest.fixture(scope="module")
def stack(new_database: NewDatabase, logs: Path) -> Iterator[Stack]:
    """An API and a worker with short intervals, which would keep a machine busy for the rest of a session."""
    with Stack(new_database(), logs) as stack:
        stack.node("api").begin()
        stack.node("worker").begin()
        for node in stack.nodes:
            node.wait()
        yield stack


@pytest.fixture
def fresh(database: str, logs: Path) -> Iterator[Stack]:
    """An empty database and no process yet."""
    with Stack(database, logs) as stack:
        yield stack


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all logs."""
    return tmp_path_factory.mktemp("logs")


@pytest.fixture
def api(api_only: Stack) -> Node:
    """The API without workers."""
    return api_only.api


@pytest.fixture
def sql(api_only: Stack) -> Sql:
    """The database of the API without workers."""
    return api_only.sql


def make_database(server: EmbeddedPostgres) -> str:
    """Create an empty database on a server; return its address."""
    name = f"test_{uuid.uuid4().hex}"

    async def make() -> None:
        connection = await asyncpg.connect(server.url)
        await connection.execute(f"CREATE DATABASE {name} {QUICKLY}")
        await connection.close()

    asyncio.run(make())
    return server.url_of(name)
