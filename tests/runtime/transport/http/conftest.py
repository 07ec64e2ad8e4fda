"""One generated system for all tests of this folder, and one served node for each module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from runtime.model.system import System
from tests.runtime.transport.http.counter import Served, bearer, importable, make_project
from tests.support.plain_http import NO_TLS


@pytest.fixture(scope="session")
def counter_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the system is generated, once for all modules."""
    return make_project(tmp_path_factory.mktemp("counter"))


@pytest.fixture(scope="module")
def counter(counter_root: Path) -> Iterator[System]:
    with importable(counter_root) as system:
        yield system


@pytest.fixture(scope="module")
def kiosk(counter: System) -> Iterator[Served]:
    """A node that hosts everything, and takes couriers without proof."""
    with Served(counter, "kiosk", "kiosk") as served:
        yield served


@pytest.fixture
def http(kiosk: Served) -> Iterator[httpx.Client]:
    """A client of the kiosk without proof."""
    with httpx.Client(base_url=kiosk.url, timeout=60, verify=NO_TLS) as client:
        yield client


@pytest.fixture
def clerk(kiosk: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=kiosk.url, headers=bearer("clerk"), timeout=60, verify=NO_TLS) as client:
        yield client
