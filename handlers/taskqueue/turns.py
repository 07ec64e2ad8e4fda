"""Turns: of the calls with the same key one goes on, and the others wait for it."""

from __future__ import annotations

import asyncio
from types import TracebackType


class Turns:
    """The turns of one component. What is read under a key is still so when it is written."""

    def __init__(self) -> None:
        self._locks: dict[str, _Turn] = {}

    def of(self, key: str) -> _Turn:
        """Return the turn of a key, to be entered by `async with`."""
        turn = self._locks.get(key)
        if turn is None:
            turn = self._locks[key] = _Turn(self._locks, key)
        turn.callers += 1
        return turn


class _Turn:
    """A lock that is gone when nobody has it or waits for it."""

    def __init__(self, locks: dict[str, _Turn], key: str) -> None:
        self.callers = 0
        self._locks = locks
        self._key = key
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> None:
        try:
            await self._lock.acquire()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self._lock.release()
        self._leave()

    def _leave(self) -> None:
        self.callers -= 1
        if not self.callers:
            del self._locks[self._key]
