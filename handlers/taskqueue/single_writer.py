"""Tools of the single writer of some entities: their order of arrival, and a turn for each key."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Generic

from runtime.call import Call
from runtime.stores.contract import Cursor, EntityStore, Record
from runtime.stores.store import GuardBreach
from runtime.world import World

_PAGE = 500


class Arrivals(Generic[Record]):
    """Order entities by their arrival, on any engine and after any restart: no two have the same time."""

    def __init__(self, store: EntityStore[Record], field: str, world: World) -> None:
        self._store = store
        self._field = field
        self._world = world
        self._latest_ms = 0
        self._loading = asyncio.Lock()
        self._is_loaded = False

    async def load(self) -> Sequence[Record]:
        """Read the store, once: the first call gets all that is there, in its order, and others nothing."""
        return () if self._is_loaded else await self._load()

    def next_ms(self) -> int:
        """Return the time of what arrives now: that of the clock, or one later than the latest."""
        self._latest_ms = max(self._latest_ms + 1, self._world.now_ms())
        return self._latest_ms

    async def _load(self) -> Sequence[Record]:
        async with self._loading:
            found = () if self._is_loaded else await self._read()
            if found:
                self._latest_ms = max(self._latest_ms, getattr(found[-1], self._field))
            self._is_loaded = True
            return found

    async def _read(self) -> list[Record]:
        found: list[Record] = []
        after: Cursor | None = None
        while True:
            page = await self._store.find(size=_PAGE, newest_first=False, after=after)
            found += page.records
            if page.next is None:
                return found
            after = page.next


async def create_or_find(store: EntityStore[Record], record: Record, key: str, call: Call) -> Record:
    """Create an entity that this process does not know; return what has its key.

    A process that was killed may have created it: its last statement can be committed after its end.
    """
    try:
        return (await store.create(record, call)).record
    except GuardBreach:
        if (found := await store.get(key)) is None:
            raise
        return found


class Turns:
    """Let one call at a time use a key, so that what it has read there is still so when it writes."""

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
    """A lock that is removed when it has neither an owner nor waiters."""

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
