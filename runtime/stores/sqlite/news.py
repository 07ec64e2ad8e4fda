"""Tells those who wait that something may be there to be acquired, or has changed at all."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class News:
    """News of one kind of entity, within the one process that has the file."""

    def __init__(self) -> None:
        self._told = 0
        self._in_vain = -1
        self._acquirable = asyncio.Event()
        self._changed = asyncio.Event()

    @property
    def position(self) -> int:
        """How often something has become acquirable so far."""
        return self._told

    def tell(self, *, acquirable: bool) -> None:
        """Something has changed its state."""
        self._changed.set()
        self._changed = asyncio.Event()
        if acquirable:
            self._told += 1
            self._acquirable.set()
            self._acquirable = asyncio.Event()

    def found_nothing(self, position: int) -> None:
        """A look that began at a position was in vain: what was told until then is no news any more."""
        self._in_vain = max(self._in_vain, position)

    async def awaited(self, timeout_s: float) -> bool:
        """Waits until something has become acquirable since the last look that was in vain."""
        if self._told == self._in_vain:
            await _within(timeout_s, self._acquirable)
        return self._told != self._in_vain

    async def changed(self, timeout_s: float) -> bool:
        """Waits for the next change of any kind."""
        return await _within(timeout_s, self._changed)


async def _within(seconds: float, event: asyncio.Event) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            return await event.wait()
    return False
