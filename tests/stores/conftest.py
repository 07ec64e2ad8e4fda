"""What the contract suite runs on: every engine."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.stores.engines import ENGINES, close_opened
from tests.support.stores.postgres_engine import Server
from tests.support.stores.shop import Shop


@pytest.fixture(autouse=True)
def _servers(request: pytest.FixtureRequest) -> None:
    """Start the server of an engine that needs one."""
    params = getattr(request.node, "callspec", None)
    if params is not None and "postgres" in params.params.values():
        Server.url = request.getfixturevalue("shared_postgres").url


@pytest.fixture(params=sorted(ENGINES))
def shop(request: pytest.FixtureRequest) -> Shop:
    """A place with an engine, whose stores are empty."""
    return Shop(request.param)


@pytest.fixture(params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest) -> str:
    """The name of an engine, for a place with variables of its own."""
    name: str = request.param
    return name


@pytest_asyncio.fixture(autouse=True)
async def closed_stores() -> AsyncIterator[None]:
    """Close what a test has opened."""
    yield
    await close_opened()
