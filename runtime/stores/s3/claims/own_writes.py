"""The last writes of this process, so that it can change entities again without reading them.

An object that still has the tag of our own write is what we wrote: a lease that is in it is still ours.
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
    """The entities that this process holds leases of, as it has last written them."""

    def __init__(self, writes: ConditionalWrites[Record]) -> None:
        self._writes = writes
        self._own: OrderedDict[str, _Own[Record]] = OrderedDict()

    def keep(self, key: str, snapshot: Snapshot[Record]) -> None:
        """Remember what was written."""
        self._of(key).snapshot = snapshot

    def replace(self, key: str, snapshot: Snapshot[Record]) -> None:
        """Replace what is remembered of an entity, if anything is."""
        own = self._own.get(key)
        if own is not None and own.snapshot is not None:
            own.snapshot = snapshot

    def forget(self, key: str) -> None:
        """Forget what was written."""
        own = self._own.get(key)
        if own is not None:
            own.snapshot = None
            if not own.turn.locked():
                del self._own[key]

    async def change(self, key: str, build: Build[Record]) -> Changed[Record] | Unchanged[Record]:
        """Change an entity from what is known of it; one change after the other."""
        own = self._of(key)
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

    def _of(self, key: str) -> _Own[Record]:
        own = self._own.get(key)
        if own is None:
            own = self._own[key] = _Own()
            while len(self._own) > _KNOWN and not next(iter(self._own.values())).turn.locked():
                self._own.popitem(last=False)
        else:
            self._own.move_to_end(key)
        return own
