"""One Redis and one PostgreSQL for all tests of the priority queue, and the processes around them.

`queue` is an API for all tests that do not break it, on a database that is empty when a test
begins. A test that kills or stops something, or needs other settings, uses `fresh`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from generated.priority.system import SYSTEM
from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.launch.embedded.redis import EmbeddedRedis
from runtime.stores.redis.connection import client as servers
from tests.orchestrator.conftest import make_database
from tests.support.orchestrator.sql_session import Sql
from tests.support.postgres_clusters import ServiceDatabases
from tests.support.priority.postgres_queue import PostgresQueue, PostgresStack
from tests.support.priority.stack import Queue, Servers, Stack
from tests.support.selection.asked_names import find_asked_names

NewServers = Callable[[], Servers]
QueueInPostgres = Callable[[str], PostgresQueue]
DEPLOYMENTS = ("local", "postgres")
OF_REDIS = frozenset(
    (
        *("redis", "read_hash", "list_keys", "list_waiting", "list_queues", "calls"),
        *("scrape", "shared_stack", "fresh"),
    )
)
"""What a test asks of a queue whose tasks are in Redis: it looks at them itself, or counts there."""
_DATABASES = 16


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks a queue by its API alone on each deployment, and the others on Redis."""
    if "deployment" in metafunc.fixturenames:
        names = {*find_asked_names(metafunc.function), *metafunc.fixturenames}
        on_redis = [each for each in DEPLOYMENTS if SYSTEM.deployments[each].engine == "redis"]
        metafunc.parametrize("deployment", on_redis if names & OF_REDIS else DEPLOYMENTS)


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


@pytest.fixture(scope="session")
def databases(postgres: EmbeddedPostgres) -> ServiceDatabases:
    """Databases for tasks in PostgreSQL, as the role of the service has them."""
    return ServiceDatabases(postgres, "priority/postgres")


@pytest.fixture(scope="session")
def queue_in_postgres(
    databases: ServiceDatabases, postgres: EmbeddedPostgres, logs: Path
) -> Iterator[QueueInPostgres]:
    """The same API on PostgreSQL alone, by the deployment."""
    with ExitStack() as stacks:

        @cache
        def find(deployment: str) -> PostgresQueue:
            url = databases.make()
            owner = stacks.enter_context(Sql(postgres.url_of(url.rpartition("/")[2])))
            stack = stacks.enter_context(PostgresStack(url, logs, deployment))
            stack.add("api")
            return PostgresQueue(stack.queue(), owner)

        yield find


@pytest.fixture
def queue(request: pytest.FixtureRequest, deployment: str) -> Queue:
    """An API with nothing in it, on each deployment that a test can be run on."""
    if SYSTEM.deployments[deployment].engine == "postgres":
        find: QueueInPostgres = request.getfixturevalue("queue_in_postgres")
        moved = find(deployment)
        moved.empty()
        return moved
    own: Queue = request.getfixturevalue("shared_queue")
    own.redis.flushdb()
    return own


@pytest.fixture
def fresh(new_servers: NewServers, logs: Path) -> Iterator[Stack]:
    """Empty servers and no process yet."""
    with Stack(new_servers(), logs) as stack:
        yield stack
