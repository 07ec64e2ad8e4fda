"""Tells those who wait for something to be acquired that it may be there."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class News:
    """News of one kind of entity, within the one process that has the file."""

    def __init__(self) -> None:
        self._told = 0
        self._seen = 0
        self._event = asyncio.Event()

    def told(self, is_news: bool) -> None:
        """Something has changed."""
        if is_news:
            self._told += 1
            self._event.set()
            self._event = asyncio.Event()

    def looked(self) -> None:
        """Somebody looks: news from before that moment are none any more."""
        self._seen = self._told

    async def awaited(self, timeout_s: float) -> bool:
        """Waits for news; True if there are any since the last look."""
        if self._told == self._seen:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._event.wait()
        return self._told != self._seen
