"""One running deployment for all tests of this folder that do not break it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from runtime.launch import Launched, launched
from tests.taskqueue.blackbox.api import Api

DEPLOYMENTS = ["taskqueue.microservices"]
"""Everything that offers the public API. A deployment that is added here has to pass the same tests."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "smoke: the five public methods, once each")


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=DEPLOYMENTS)
async def deployment(request: pytest.FixtureRequest) -> AsyncIterator[Launched]:
    """All nodes of a deployment, healthy, on free ports."""
    async with launched(request.param, ports="auto", tls=False) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def api(deployment: Launched) -> AsyncIterator[Api]:
    """The public API of the deployment, called by nobody in particular."""
    async with deployment.client() as client:
        yield Api(client)
