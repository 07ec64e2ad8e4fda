"""One running deployment for all tests of this folder that do not break it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from runtime.launch import Launched
from tests.support.taskqueue.api import Api
from tests.support.taskqueue.forked_deployments import launched_by_fork
from tests.support.taskqueue.gates import HANDLERS

DEPLOYMENTS = [
    *("taskqueue.microservices", "taskqueue.monolith"),
    *("taskqueue.sqlite", "taskqueue.postgres"),
]
"""All deployments that serve the public API. A deployment that is added here has to pass the same tests."""
BY_DIRECT = "taskqueue.microservices, direct"
"""The first of them with the other carrier."""

KEPT = ("taskqueue.sqlite", "taskqueue.postgres")
"""Those that keep jobs in files or in a server. They take all tests with `--deep`, and else these files."""
FILES_OF_KEPT = ("test_lifecycle.py", "test_results.py", "test_smoke.py", "test_submit.py")

PATIENT = {"WORKER_TIMEOUT_MS": "120000", **HANDLERS}
"""Settings under which a worker that a busy machine delays for a while does not count as lost."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "smoke: the five public methods, once each")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests out whose way to the storage others take as well."""
    others = [item for item in items if not config.getoption("--deep") and _is_left_out(item)]
    items[:] = [item for item in items if item not in others]
    config.hook.pytest_deselected(items=others)


def _is_left_out(item: pytest.Item) -> bool:
    chosen = getattr(item, "callspec", None)
    is_kept = chosen is not None and chosen.params.get("deployment") in KEPT
    return is_kept and item.path.name not in FILES_OF_KEPT


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


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def sqlite() -> AsyncIterator[Launched]:
    """The first one with what its services keep in files."""
    async with launched_by_fork("taskqueue.sqlite", settings=PATIENT) as running:
        yield running


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def postgres() -> AsyncIterator[Launched]:
    """The first one with what its services keep in tables, and a server of its own."""
    async with launched_by_fork("taskqueue.postgres", settings=PATIENT) as running:
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
