"""A system that a file keeps, generated once for all tests of a session, and stores of it on fresh files."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

import generated
from tests.runtime.stores.sqlite.kit import Kit
from tests.support.specs.modules import generate_modules

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="session")
def generated_laundry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what was generated."""
    root = tmp_path_factory.mktemp("laundry")
    shutil.copytree(ROOT / "tests/specs/laundry", root / "spec/laundry")
    generate_modules(root)
    return root / "generated"


@pytest.fixture(scope="module")
def laundry(generated_laundry: Path) -> Iterator[Path]:
    """The folder of the system; its modules can be imported beside those of the other systems."""
    generated.__path__.append(str(generated_laundry))
    yield generated_laundry / "laundry"
    generated.__path__.remove(str(generated_laundry))


@pytest_asyncio.fixture
async def kit(laundry: Path, tmp_path: Path) -> AsyncIterator[Kit]:
    """Shirts and socks in an empty file, and a clock that stands still."""
    async with Kit(tmp_path / "book.db") as made:
        yield made
