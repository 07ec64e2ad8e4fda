"""Creations beside those of a killed process, whose last statement may be committed after its end."""

from __future__ import annotations

from runtime.call import Call
from runtime.stores.contract import EntityStore, Record
from runtime.stores.store import GuardBreach


async def create_or_find(store: EntityStore[Record], record: Record, key: str, call: Call) -> Record:
    """Create an entity that this process does not know; return what has its key."""
    try:
        return (await store.create(record, call)).record
    except GuardBreach:
        if (found := await store.get(key)) is None:
            raise
        return found
