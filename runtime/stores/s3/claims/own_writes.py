"""Cache of the last writes of this process, which spares reading an entity before its next change.

An object that still has the ETag of our own write is what we wrote: a lease in it is still ours.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Generic

from runtime.stores.contract import Record
from runtime.stores.s3.client.errors import ObjectError
from runtime.stores.s3.codec import Snapshot
from runtime.stores.s3.conditional_writes import Build, Changed, ConditionalWrites, Unchanged

_KNOWN = 10_000


@dataclass(slots=True)
class _Own(Generic[Record]):
    snapshot: Snapshot[Record] | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class OwnWrites(Generic[Record]):
    """The entities with a lease of this process, as it has last written them."""

    def __init__(self, writes: ConditionalWrites[Record]) -> None:
        self._writes = writes
        self._own: OrderedDict[str, _Own[Record]] = OrderedDict()

    def keep(self, key: str, snapshot: Snapshot[Record]) -> None:
        """Cache a written entity."""
        self._own_of(key).snapshot = snapshot

    def replace(self, key: str, snapshot: Snapshot[Record]) -> None:
        """Replace the cached entity, if there is one."""
        own = self._own.get(key)
        if own is not None and own.snapshot is not None:
            own.snapshot = snapshot

    def forget(self, key: str) -> None:
        """Remove an entity from the cache."""
        own = self._own.get(key)
        if own is not None:
            own.snapshot = None
            if not own.turn.locked():
                del self._own[key]

    async def change(self, key: str, build: Build[Record]) -> Changed[Record] | Unchanged[Record]:
        """Change an entity from its cached form; changes of one entity are serialized."""
        own = self._own_of(key)
        async with own.turn:
            known = own.snapshot
            try:
                result = await self._writes.change(key, build, known)
            except ObjectError:
                raise  # The next try may find that this one was carried out.
            except Exception:
                own.snapshot = None
                raise
            if own.snapshot is known:
                own.snapshot = result.after if isinstance(result, Changed) else None
            return result

    def _own_of(self, key: str) -> _Own[Record]:
        own = self._own.get(key)
        if own is None:
            own = self._own[key] = _Own()
            while len(self._own) > _KNOWN and not next(iter(self._own.values())).turn.locked():
                self._own.popitem(last=False)
        else:
            self._own.move_to_end(key)
        return own
