"""Databases with a stage and workers, for the tests of one module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.orchestrator.conftest import NewDatabase
from tests.support.orchestrator.worker_processes import Crew


@pytest.fixture(scope="module")
def crew(new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    """A database for all tests of a module; the module starts the workers."""
    with Crew(new_database(), tmp_path_factory.mktemp("stage")) as crew:
        yield crew


@pytest.fixture
def fresh_crew(database: str, tmp_path: Path) -> Iterator[Crew]:
    """A database for one test."""
    with Crew(database, tmp_path / "stage") as crew:
        yield crew
