"""One Redis and one PostgreSQL for all tests of the priority queue, and the processes around them.

`queue` is an API for all tests that do not break it, on a database that is empty when a test
begins. A test that kills or stops something, or needs other settings, uses `fresh`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runtime.embedded.postgres import EmbeddedPostgres
from runtime.embedded.redis import EmbeddedRedis
from runtime.stores.redis.connection import client as servers
from tests.orchestrator.conftest import make_database
from tests.support.priority.stack import Queue, Servers, Stack

NewServers = Callable[[], Servers]
_DATABASES = 16


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test process that stalls while it connects to Redis has lost nothing."""
    monkeypatch.setattr(servers, "CONNECT_S", 60.0)


@pytest.fixture(scope="session")
def postgres(shared_postgres: EmbeddedPostgres) -> EmbeddedPostgres:
    """A real PostgreSQL, for history."""
    return shared_postgres


@pytest.fixture(scope="session")
def redis_server() -> Iterator[EmbeddedRedis]:
    """A real Redis. A test that stops it uses one of its own."""
    with tempfile.TemporaryDirectory(prefix="charter-test-") as folder:
        server = EmbeddedRedis(Path(folder) / "redis")
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    """A Redis that a test may stop, kill or fill; every write is on disk before it answers."""
    server = EmbeddedRedis(tmp_path / "redis", settings={"appendfsync": "always"})
    server.start()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def new_servers(redis_server: EmbeddedRedis, postgres: EmbeddedPostgres) -> NewServers:
    """Creates an empty database of each server."""
    numbers = iter(range(1, 1_000_000))

    def make() -> Servers:
        number = 1 + next(numbers) % (_DATABASES - 1)
        base, _, _ = redis_server.url.rpartition("/")
        servers = Servers(f"{base}/{number}", make_database(postgres))
        servers.redis.flushdb()
        return servers

    return make


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all logs."""
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="session")
def shared_stack(redis_server: EmbeddedRedis, postgres: EmbeddedPostgres, logs: Path) -> Iterator[Stack]:
    """An API without any worker and without periodic work."""
    with Stack(Servers(redis_server.url, make_database(postgres)), logs) as stack:
        stack.add("api")
        yield stack


@pytest.fixture(scope="session")
def shared_queue(shared_stack: Stack) -> Queue:
    """The API of all tests as its callers see it."""
    return shared_stack.queue()


@pytest.fixture
def queue(shared_queue: Queue) -> Queue:
    """The same, with nothing in it."""
    shared_queue.redis.flushdb()
    return shared_queue


@pytest.fixture
def fresh(new_servers: NewServers, logs: Path) -> Iterator[Stack]:
    """Empty servers and no process yet."""
    with Stack(new_servers(), logs) as stack:
        yield stack
