"""One PostgreSQL for all tests of the orchestrator, fresh databases on it, and the processes around them.

`api` and `stack` serve all tests that do not break them. A test that kills, stops or floods
something uses `fresh`, whose database and processes are its own. A test that asks nothing but the API
runs on Redis as well.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import pytest

from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.launch.embedded.redis import EmbeddedRedis
from tests.support.orchestrator.sql_session import Sql
from tests.support.orchestrator.stack import Node, Stack
from tests.support.postgres_clusters import QUICKLY, Clusters
from tests.support.selection.asked_names import find_asked_names

NewDatabase = Callable[[], str]
ENGINES = ("local", "redis")
"""The deployments whose processes share a server."""
SHARED = frozenset(("api_only", "stack"))
"""The fixtures with processes on it."""
OF_THE_DATABASE = frozenset(("sql", "database", "nothing_stored", "fresh", "own_server", "server", "upper"))
"""What a test asks that looks at the rows, brings a database of its own, or finds UUIDs in capitals."""


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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks nothing of the database on both engines that several processes may share."""
    fixtures = frozenset(metafunc.fixturenames)
    names = fixtures | find_asked_names(metafunc.function)
    for fixture in sorted(SHARED & fixtures):
        engines = ENGINES[:1] if names & OF_THE_DATABASE else ENGINES
        metafunc.parametrize(fixture, engines, indirect=True)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    """A real Redis. A test that stops it uses one of its own."""
    server = EmbeddedRedis(tmp_path_factory.mktemp("redis") / "shared", settings={"appendonly": "no"})
    server.start()
    yield server
    server.remove()


def make_stack(request: pytest.FixtureRequest, logs: Path) -> Stack:
    """A place for processes on the engine of a fixture, with nothing in it."""
    if getattr(request, "param", ENGINES[0]) == ENGINES[0]:
        return Stack(request.getfixturevalue("new_database")(), logs)
    url = request.getfixturevalue("redis_server").url
    return Stack("", logs, "redis", REDIS_URL=url, REDIS_KEY_PREFIX=f"{uuid.uuid4().hex}:")


@pytest.fixture(scope="session")
def api_only(request: pytest.FixtureRequest, logs: Path) -> Iterator[Stack]:
    """An API without any worker: submitted jobs stay QUEUED."""
    with make_stack(request, logs) as stack:
        stack.add("api", CREATED_GRACE_SECONDS="3600")
        yield stack


@pytest.fixture(scope="module")
def stack(request: pytest.FixtureRequest, logs: Path) -> Iterator[Stack]:
    """An API and a worker with short intervals, which would keep a machine busy for the rest of a session."""
    with make_stack(request, logs) as stack:
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
