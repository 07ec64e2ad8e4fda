"""What this process last wrote of entities, so that it can change them again without reading them.

An object that still has the tag of our own write is what we wrote: a lease that is in it is still ours.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Generic

from runtime.stores.s3.entities import Entities
from runtime.stores.s3.guarded import Build, Changed, Unchanged
from runtime.stores.s3.rows import Snapshot
from runtime.stores.store import Held, Record

_KNOWN = 10_000


@dataclass(slots=True)
class _Own(Generic[Record]):
    snapshot: Snapshot[Record] | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Holding(Generic[Record]):
    """The last writes of this process."""

    def __init__(self, entities: Entities[Record]) -> None:
        self._entities = entities
        self._own: OrderedDict[str, _Own[Record]] = OrderedDict()

    def keep(self, key: str, snapshot: Snapshot[Record]) -> None:
        """Remembers what was written."""
        self._of(key).snapshot = snapshot

    def forget(self, key: str) -> None:
        """What was written is of no use any more."""
        own = self._own.get(key)
        if own is not None:
            own.snapshot = None
            if not own.turn.locked():
                del self._own[key]

    async def change(
        self, key: str, held: Held | None, build: Build[Record]
    ) -> Changed[Record] | Unchanged[Record]:
        """Changes an entity, of which a lease must be held where one is named; one change after the other."""
        changes = self._entities.changes
        own = self._of(key)
        async with own.turn:
            known = own.snapshot
            token = None
            if held is not None and known is not None and changes.holds(known.record, held):
                token = changes.token(known.record)

            def build_if_held(record: Record) -> Record | None:
                if held is not None and not changes.holds(record, held, token):
                    return None
                return build(record)

            result = await self._entities.guarded.change(key, build_if_held, known)
            if own.snapshot is known:
                own.snapshot = result.after if isinstance(result, Changed) else None
            return result

    def _of(self, key: str) -> _Own[Record]:
        own = self._own.get(key)
        if own is None:
            own = self._own[key] = _Own()
            while len(self._own) > _KNOWN and not next(iter(self._own.values())).turn.locked():
                self._own.popitem(last=False)
        else:
            self._own.move_to_end(key)
        return own
