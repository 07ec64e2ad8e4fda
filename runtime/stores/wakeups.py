"""Wake-ups: hints to those who wait that there may be work, or that an entity has changed."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class Wakeups:
    """The subscriptions of one kind of entity, within one event loop."""

    def __init__(self) -> None:
        self._claimable = asyncio.Event()
        self.watched: dict[str, asyncio.Event] = {}
        """By key: the events of those who wait for the next change of an entity."""
        self.position = 0
        """How often something has become claimable."""
        self._vain = -1

    def announce(self, key: str, *, is_claimable: bool) -> None:
        """Wake those who wait for an entity, and, where it can be claimed, those who wait for work."""
        if self.watched and (event := self.watched.pop(key, None)) is not None:
            event.set()
        if is_claimable:
            self.announce_work()

    def announce_work(self) -> None:
        """Wake those who wait for work."""
        self.position += 1
        self._claimable.set()
        self._claimable = asyncio.Event()

    def found_nothing(self, position: int) -> None:
        """Note that a claim which began at a position found nothing: what came until then is no news."""
        self._vain = max(self._vain, position)

    @property
    def has_news(self) -> bool:
        """Whether something has become claimable since a claim has last found nothing."""
        return self.position != self._vain

    async def wait_for_work(self, timeout_s: float) -> bool:
        """Wait for work; True as soon as there may be some."""
        return self.has_news or await _within(timeout_s, self._claimable)

    async def wait_for(self, key: str, timeout_s: float) -> bool:
        """Wait for the next change of an entity."""
        return await _within(timeout_s, self.watched.setdefault(key, asyncio.Event()))


async def _within(seconds: float, event: asyncio.Event) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            return await event.wait()
    return False
