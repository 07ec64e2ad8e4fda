"""One running deployment for all tests of this folder that do not break it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from runtime.launch import Launched, launched
from tests.taskqueue.blackbox.api import Api

DEPLOYMENTS = ["taskqueue.microservices", "taskqueue.monolith"]
"""Everything that offers the public API. A deployment that is added here has to pass the same tests."""

SMALL = {
    "HEARTBEAT_INTERVAL_MS": "100",
    "WORKER_TIMEOUT_MS": "3000",
    "MAX_DEDUP_KEYS": "2",
    "MAX_OUTPUT_BYTES": "16",
    "WORKER_SLOTS": "2",
    "WORKER_ID": "hand",
}
"""Settings under which little is much, and a lost worker is noticed soon."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "smoke: the five public methods, once each")


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def microservices() -> AsyncIterator[Launched]:
    """All nodes of the deployment, healthy, on free ports. It stays when tests turn to the other one."""
    async with launched("taskqueue.microservices", ports="auto", tls=False) as running:
        yield running


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def monolith() -> AsyncIterator[Launched]:
    """The same of the other one."""
    async with launched("taskqueue.monolith", ports="auto", tls=False) as running:
        yield running


@pytest.fixture(scope="package", params=DEPLOYMENTS)
def deployment(request: pytest.FixtureRequest) -> Launched:
    """Each deployment in turn."""
    found: Launched = request.getfixturevalue(request.param.partition(".")[2])
    return found


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def api(deployment: Launched) -> AsyncIterator[Api]:
    """The public API of the deployment, called by nobody in particular."""
    async with deployment.client() as client:
        yield Api(client)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def fragile() -> AsyncIterator[Launched]:
    """Six nodes with small settings, for tests that stop and kill them."""
    async with launched("taskqueue.microservices", ports="auto", tls=False, settings=SMALL) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def whole(fragile: Launched) -> AsyncIterator[Launched]:
    """The same with all nodes running, also after a test that left some of them stopped."""
    yield fragile
    stopped = [name for name, process in fragile.processes.items() if not process.running]
    for name in stopped:
        await fragile.restart(name)
    if stopped:
        async with fragile.client() as client:
            await Api(client).reached()


@pytest_asyncio.fixture(loop_scope="session")
async def tried(whole: Launched) -> AsyncIterator[Api]:
    """The public API of the deployment whose nodes are stopped and killed."""
    async with whole.client() as client:
        yield Api(client)
