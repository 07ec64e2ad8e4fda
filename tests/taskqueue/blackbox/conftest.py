"""One running deployment for all tests of this folder that do not break it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from runtime.launch import Launched
from tests.support.taskqueue.api import Api
from tests.support.taskqueue.forked_deployments import launched_by_fork
from tests.support.taskqueue.gates import HANDLERS

DEPLOYMENTS = ["taskqueue.microservices", "taskqueue.monolith"]
"""All deployments that serve the public API. A deployment that is added here has to pass the same tests."""
BY_DIRECT = "taskqueue.microservices, direct"
"""The first of them with the other carrier."""

PATIENT = {"WORKER_TIMEOUT_MS": "120000", **HANDLERS}
"""Settings under which a worker that a busy machine delays for a while does not count as lost."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "smoke: the five public methods, once each")


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def microservices() -> AsyncIterator[Launched]:
    """All nodes of the deployment, healthy, on free ports. It stays when tests turn to the other one."""
    async with launched_by_fork("taskqueue.microservices", settings=PATIENT) as running:
        yield running


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def monolith() -> AsyncIterator[Launched]:
    """The same of the other one."""
    async with launched_by_fork("taskqueue.monolith", settings=PATIENT) as running:
        yield running


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def microservices_by_direct() -> AsyncIterator[Launched]:
    """The first one, whose nodes call each other and are called by the carrier `direct`."""
    async with launched_by_fork("taskqueue.microservices", settings=PATIENT, carrier="direct") as running:
        yield running


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
