"""The order of arrival, on any engine and after any restart: by times of which no two are the same."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Generic

from runtime.call import Call
from runtime.stores.contract import Cursor, EntityStore, Record
from runtime.stores.store import GuardBreach
from runtime.world import World

_PAGE = 500


class Arrivals(Generic[Record]):
    """The entities of a store that this process alone has, each with a later time than all before it."""

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
