"""The one way in which these tests wait: for something to come true, and never for ever."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds; far more than anything takes, because the machine may be busy."""
_PAUSE = 0.02


async def eventually(
    look: Callable[[], Awaitable[T]], good: Callable[[T], bool] = bool, what: str = "what was awaited"
) -> T:
    """Looks again and again until what it sees is good, and returns that."""
    deadline = time.monotonic() + PATIENCE
    while not good(seen := await look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come about within {PATIENCE:g} s; last seen: {seen}")
        await asyncio.sleep(_PAUSE)
    return seen
