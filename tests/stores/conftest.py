"""What the contract suite runs on: every engine."""

from __future__ import annotations

import pytest

from tests.support.stores.engines import ENGINES
from tests.support.stores.shop import Shop


@pytest.fixture(params=sorted(ENGINES))
def shop(request: pytest.FixtureRequest) -> Shop:
    """A place with an engine, whose stores are empty."""
    return Shop(request.param)


@pytest.fixture(params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest) -> str:
    """The name of an engine, for a place with variables of its own."""
    name: str = request.param
    return name
