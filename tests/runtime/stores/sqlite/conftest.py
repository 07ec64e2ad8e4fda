"""A system that a file keeps, generated once for all tests of a session, and stores of it on fresh files."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

import generated
from codegen.__main__ import main as codegen
from tests.runtime.stores.sqlite.kit import Kit

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def laundry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of what was generated; its modules can be imported beside those of the other systems."""
    root = tmp_path_factory.mktemp("laundry")
    shutil.copytree(ROOT / "tests/specs/laundry", root / "spec/laundry")
    assert codegen(["generate", "--root", str(root)]) == 0
    folder = root / "generated"
    generated.__path__.append(str(folder))
    yield folder / "laundry"
    generated.__path__.remove(str(folder))


@pytest_asyncio.fixture
async def kit(laundry: Path, tmp_path: Path) -> AsyncIterator[Kit]:
    """Shirts and socks in an empty file, and a clock that stands still."""
    async with Kit(tmp_path / "book.db") as made:
        yield made
