"""A queue for each test that needs one, on every engine that a deployment keeps its jobs in."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.launch.embedded.redis import EmbeddedRedis
from runtime.stores.redis.connection import client as clients
from tests.support.postgres_clusters import ServiceDatabases
from tests.support.queuey.in_process_queue import House
from tests.support.selection.asked_names import find_asked_names

OF_THE_FILE = frozenset(("sql", "rows", "path", "House"))
"""What a test asks of a queue whose jobs are in a file, which it can read, or open a second time."""
OF_WHAT_LASTS = frozenset(("close", "open", "sweep"))
"""What a test asks of a queue whose jobs outlive it."""
OF_ITS_CLOCK = frozenset(("world",))
"""What a test asks of a queue whose engine has no other clock than that of the process."""
MISSING = {
    "local": frozenset[str](),
    "memory": OF_THE_FILE | OF_WHAT_LASTS,
    "postgres": OF_THE_FILE | OF_WHAT_LASTS | OF_ITS_CLOCK,
    "redis": OF_THE_FILE,
}
"""What each deployment cannot be asked."""
_NUMBERS = itertools.count()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on each deployment of which it asks nothing but the API, or what the deployment has."""
    if "house" in metafunc.fixturenames:
        names = find_asked_names(metafunc.function)
        deployments = [each for each, missing in MISSING.items() if not names & missing]
        metafunc.parametrize("deployment", deployments)


@pytest.fixture(scope="session")
def databases(shared_postgres: EmbeddedPostgres) -> ServiceDatabases:
    """Databases for queues that keep their jobs in PostgreSQL."""
    return ServiceDatabases(shared_postgres, "queuey/postgres")


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    """A real Redis. A test that stops it uses one of its own."""
    server = EmbeddedRedis(tmp_path_factory.mktemp("redis") / "shared", settings={"appendonly": "no"})
    server.start()
    yield server
    server.remove()


@pytest.fixture
def variables(
    request: pytest.FixtureRequest, deployment: str, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """Where the queue of a test keeps its jobs, if not in a file or in memory."""
    if deployment == "postgres":
        databases: ServiceDatabases = request.getfixturevalue("databases")
        return {"DATABASE_URL": databases.make()}
    if deployment == "redis":
        monkeypatch.setattr(clients, "CONNECT_S", 60.0)  # A process that stalls has lost nothing.
        url = request.getfixturevalue("redis_server").url
        return {"REDIS_URL": url, "REDIS_KEY_PREFIX": f"t{next(_NUMBERS)}:"}
    return {}


@pytest_asyncio.fixture
async def house(deployment: str, variables: dict[str, str], tmp_path: Path) -> AsyncIterator[House]:
    """A queue with its defaults and without periodic sweeps."""
    async with House(tmp_path / "queue.db", deployment, **variables) as house:
        yield house
