"""One generated system and one served node for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from runtime.tables import System
from tests.runtime.http.counter import Served, bearer, counter_project


@pytest.fixture(scope="package")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with counter_project(tmp_path_factory.mktemp("counter")) as system:
        yield system


@pytest.fixture(scope="package")
def kiosk(counter: System) -> Iterator[Served]:
    """A node that hosts everything, and takes couriers without proof."""
    with Served(counter, "kiosk", "kiosk") as served:
        yield served


@pytest.fixture
def http(kiosk: Served) -> Iterator[httpx.Client]:
    """Somebody at the kiosk who shows nothing."""
    with httpx.Client(base_url=kiosk.url) as client:
        yield client


@pytest.fixture
def clerk(kiosk: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=kiosk.url, headers=bearer("clerk")) as client:
        yield client
