"""A queue for each test that needs one, on every engine that a deployment keeps its jobs in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from runtime.embedded.postgres import EmbeddedPostgres
from tests.support.deployments.used_names import iter_used_names
from tests.support.postgres_clusters import ServiceDatabases
from tests.support.queuey.in_process_queue import House

DEPLOYMENTS = ("local", "memory", "postgres")
OF_THE_FILE = frozenset(("sql", "rows", "path", "close", "open", "sweep"))
"""What a test asks of a queue whose jobs are in a file, which it can read, or which outlives the queue."""
OF_ITS_CLOCK = frozenset(("world",))
"""What a test asks of a queue whose engine has no other clock than that of the process."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks a queue by its API alone on each deployment, and the others on a file."""
    if "house" in metafunc.fixturenames:
        names = {*iter_used_names(metafunc.function)}
        most = 1 if names & OF_THE_FILE else 2 if names & OF_ITS_CLOCK else len(DEPLOYMENTS)
        metafunc.parametrize("deployment", DEPLOYMENTS[:most])


@pytest.fixture(scope="session")
def databases(shared_postgres: EmbeddedPostgres) -> ServiceDatabases:
    """Databases for queues that keep their jobs in PostgreSQL."""
    return ServiceDatabases(shared_postgres, "queuey/postgres")


@pytest.fixture
def variables(request: pytest.FixtureRequest, deployment: str) -> dict[str, str]:
    """Where the queue of a test keeps its jobs, if not in a file or in memory."""
    if deployment != "postgres":
        return {}
    databases: ServiceDatabases = request.getfixturevalue("databases")
    return {"DATABASE_URL": databases.make()}


@pytest_asyncio.fixture
async def house(deployment: str, variables: dict[str, str], tmp_path: Path) -> AsyncIterator[House]:
    """A queue with its defaults and without periodic sweeps."""
    async with House(tmp_path / "queue.db", deployment, **variables) as house:
        yield house
