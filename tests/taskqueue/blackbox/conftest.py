"""One running deployment for all tests of this folder that do not break it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from runtime.launch import Launched, launched
from runtime.transport.grpc.carrier import VARIABLE
from tests.support.taskqueue.api import Api
from tests.support.taskqueue.gates import HANDLERS

DEPLOYMENTS = ["taskqueue.microservices", "taskqueue.monolith"]
"""All deployments that serve the public API. A deployment that is added here has to pass the same tests."""
BY_DIRECT = "taskqueue.microservices, direct"
"""The first of them with the other carrier."""

PATIENT = {"WORKER_TIMEOUT_MS": "120000", **HANDLERS}
"""Settings under which a worker that a busy machine delays for a while does not count as lost."""
SMALL = {
    **PATIENT,
    "HEARTBEAT_INTERVAL_MS": "100",
    "MAX_DEDUP_KEYS": "2",
    "MAX_OUTPUT_BYTES": "16",
    "WORKER_SLOTS": "2",
    "WORKER_ID": "hand",
}
"""Settings under which little is much."""
HASTY = {**SMALL, "WORKER_TIMEOUT_MS": "3000"}
"""The same where a lost worker is noticed soon. A job that is to end well may be given up for it."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "smoke: the five public methods, once each")


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def microservices() -> AsyncIterator[Launched]:
    """All nodes of the deployment, healthy, on free ports. It stays when tests turn to the other one."""
    async with launched("taskqueue.microservices", ports="auto", tls=False, settings=PATIENT) as running:
        yield running


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def monolith() -> AsyncIterator[Launched]:
    """The same of the other one."""
    async with launched("taskqueue.monolith", ports="auto", tls=False, settings=PATIENT) as running:
        yield running


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def microservices_by_direct() -> AsyncIterator[Launched]:
    """The first one, whose nodes call each other and are called by the carrier `direct`."""
    starting = launched("taskqueue.microservices", ports="auto", tls=False, settings=PATIENT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "direct")
        running = await starting.__aenter__()
    try:
        yield running
    finally:
        await starting.__aexit__(None, None, None)


@pytest.fixture(scope="package", params=[*DEPLOYMENTS, BY_DIRECT])
def deployment(request: pytest.FixtureRequest) -> Launched:
    """Each deployment in turn."""
    name = "microservices_by_direct" if request.param == BY_DIRECT else request.param.partition(".")[2]
    found: Launched = request.getfixturevalue(name)
    return found


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def api(deployment: Launched) -> AsyncIterator[Api]:
    """The public API of the deployment, called by the anonymous principal."""
    async with deployment.client() as client:
        yield Api(client)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def small_deployment() -> AsyncIterator[Launched]:
    """Six nodes with small settings, for tests that stop and kill them."""
    async with launched("taskqueue.microservices", ports="auto", tls=False, settings=SMALL) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def fragile(small_deployment: Launched) -> AsyncIterator[Launched]:
    """The same with all nodes running; nodes that a test stopped are started again after it."""
    yield small_deployment
    await restart_stopped_nodes(small_deployment)


@pytest_asyncio.fixture(loop_scope="session")
async def fragile_api(fragile: Launched) -> AsyncIterator[Api]:
    """The public API of the deployment whose nodes are stopped and killed."""
    async with fragile.client() as client:
        yield Api(client)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def short_timeout_deployment() -> AsyncIterator[Launched]:
    """Six nodes for tests that lose workers."""
    async with launched("taskqueue.microservices", ports="auto", tls=False, settings=HASTY) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def lossy(short_timeout_deployment: Launched) -> AsyncIterator[Launched]:
    """The same with all nodes running."""
    yield short_timeout_deployment
    await restart_stopped_nodes(short_timeout_deployment)


@pytest_asyncio.fixture(loop_scope="session")
async def lossy_api(lossy: Launched) -> AsyncIterator[Api]:
    """The public API of the deployment that loses workers."""
    async with lossy.client() as client:
        yield Api(client)


async def restart_stopped_nodes(deployment: Launched) -> None:
    """Restart the nodes that a test has stopped."""
    stopped = [name for name, process in deployment.processes.items() if not process.running]
    for name in stopped:
        await deployment.restart(name)
    if stopped:
        async with deployment.client() as client:
            await Api(client).wait_until_ready()
