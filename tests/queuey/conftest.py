"""A queue for each test that needs one, on every engine that a deployment keeps its jobs in."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from runtime.embedded.redis import EmbeddedRedis
from runtime.stores.redis.connection import client as servers
from tests.support.queuey.in_process_queue import House
from tests.support.selection.asked_names import find_asked_names

OF_THE_FILE = frozenset(("sql", "rows", "path", "House"))
"""What a test asks of a queue whose jobs are in a file, which it can read, or open a second time."""
OF_WHAT_LASTS = frozenset(("close", "open", "sweep"))
"""What a test asks of a queue whose jobs outlive it."""
MISSING = {"local": frozenset[str](), "redis": OF_THE_FILE, "memory": OF_THE_FILE | OF_WHAT_LASTS}
"""What each deployment cannot be asked."""
_NUMBERS = itertools.count()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on each deployment of which it asks nothing but the API, or what the deployment has."""
    if "house" in metafunc.fixturenames:
        names = find_asked_names(metafunc.function)
        deployments = [each for each, missing in MISSING.items() if not names & missing]
        metafunc.parametrize("house", deployments, indirect=True)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    """A real Redis. A test that stops it uses one of its own."""
    server = EmbeddedRedis(tmp_path_factory.mktemp("redis") / "shared", settings={"appendonly": "no"})
    server.start()
    yield server
    server.remove()


@pytest_asyncio.fixture
async def house(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[House]:
    """A queue with its defaults and without periodic sweeps."""
    settings: dict[str, str] = {}
    if request.param == "redis":
        monkeypatch.setattr(servers, "CONNECT_S", 60.0)  # A process that stalls has lost nothing.
        url = request.getfixturevalue("redis_server").url
        settings = {"REDIS_URL": url, "REDIS_KEY_PREFIX": f"t{next(_NUMBERS)}:"}
    async with House(tmp_path / "queue.db", request.param, **settings) as house:
        yield house
