"""One PostgreSQL for all tests of the orchestrator, fresh databases on it, and the processes around them.

`api` and `stack` are shared by all tests that do not break them. A test that kills, stops or floods
something takes `fresh`, whose database and processes are its own.
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
from tests.support.postgres_clusters import Clusters

NewDatabase = Callable[[], str]


@pytest.fixture(scope="session")
def server(shared_postgres: EmbeddedPostgres) -> EmbeddedPostgres:
    """A real PostgreSQL. Whoever stops it takes `own_server` instead, so that only his own tests notice."""
    return shared_postgres


@pytest.fixture(scope="module")
def own_server(clusters: Clusters) -> Iterator[EmbeddedPostgres]:
    """A PostgreSQL that the tests of one module may stop, restart and kill."""
    with clusters.started() as made:
        yield made


@pytest.fixture(scope="session")
def new_database(server: EmbeddedPostgres) -> NewDatabase:
    """Makes an empty database; where it is."""
    return lambda: make_database(server)


@pytest.fixture
def database(new_database: NewDatabase) -> str:
    """Where an empty database is."""
    return new_database()


@pytest.fixture(scope="session")
def alone(new_database: NewDatabase, logs: Path) -> Iterator[Stack]:
    """An API without any worker. What is submitted to it stays where it is."""
    with Stack(new_database(), logs) as made:
        made.add("api", CREATED_GRACE_SECONDS="3600")
        yield made


@pytest.fixture(scope="module")
def stack(new_database: NewDatabase, logs: Path) -> Iterator[Stack]:
    """An API and a worker with short intervals, which would keep a machine busy for the rest of a session."""
    with Stack(new_database(), logs) as made:
        made.node("api").begin()
        made.node("worker").begin()
        for node in made.nodes:
            node.wait()
        yield made


@pytest.fixture
def fresh(database: str, logs: Path) -> Iterator[Stack]:
    """An empty database and no process yet."""
    with Stack(database, logs) as made:
        yield made


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all processes write."""
    return tmp_path_factory.mktemp("logs")


@pytest.fixture
def api(alone: Stack) -> Node:
    """The API without workers."""
    return alone.api


@pytest.fixture
def sql(alone: Stack) -> Sql:
    """The database of the API without workers."""
    return alone.sql


def make_database(server: EmbeddedPostgres) -> str:
    """Makes an empty database on a server; where it is."""
    name = f"test_{uuid.uuid4().hex}"

    async def make() -> None:
        connection = await asyncpg.connect(server.url)
        await connection.execute(f"CREATE DATABASE {name}")
        await connection.close()

    asyncio.run(make())
    return server.url_of(name)
