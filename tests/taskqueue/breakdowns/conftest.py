"""Deployments whose nodes tests stop and kill, one of each kind for a module."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from runtime.launch import Launched
from tests.support.taskqueue.api import Api
from tests.support.taskqueue.forked_deployments import launched_by_fork
from tests.taskqueue.blackbox.conftest import PATIENT

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


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def small_deployment() -> AsyncIterator[Launched]:
    """Six nodes with small settings, for tests that stop and kill them."""
    async with launched_by_fork("taskqueue.microservices", settings=SMALL) as running:
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


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def short_timeout_deployment() -> AsyncIterator[Launched]:
    """Six nodes for tests that lose workers."""
    async with launched_by_fork("taskqueue.microservices", settings=HASTY) as running:
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
