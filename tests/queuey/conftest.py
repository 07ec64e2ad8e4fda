"""A queue for each test that needs one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.support.queuey.in_process_queue import House


@pytest_asyncio.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A queue with its defaults and without periodic sweeps."""
    async with House(tmp_path / "queue.db") as house:
        yield house
