"""The retention of result envelopes by their bytes: beyond a bound the oldest are deleted.

Each envelope has the bytes of all that were ever stored up to it, so that the newest and the oldest tell how
many are retained, and nothing is added up after a restart.
"""

from __future__ import annotations

from contextlib import suppress

from msgspec.structs import replace

from generated.taskqueue.messages import PRESENT
from generated.taskqueue.records import EnvelopeRecord
from runtime.call import Call
from runtime.stores.contract import EntityStore
from runtime.stores.store import NoSuchEntity
from runtime.world import World


class EnvelopeRetention:
    """Adds envelopes to a store, and takes the oldest out. A bound of 0 keeps all."""

    def __init__(self, store: EntityStore[EnvelopeRecord], bound: int, world: World) -> None:
        self._store = store
        self._bound = bound
        self._world = world
        self._newest: EnvelopeRecord | None = None
        """The one that was added last, or is about to be; None until the store was read."""
        self._deleted_bytes = 0

    async def add(self, envelope: EnvelopeRecord, call: Call) -> None:
        """Add an envelope, which stays, and delete the oldest as far as there are too many bytes."""
        newest = self._newest or await self._read_ends()
        at_ms = max(newest.stored_at_ms + 1, self._world.now_ms())
        stored_bytes = newest.stored_bytes + _measure(envelope)
        placed = self._newest = replace(envelope, stored_at_ms=at_ms, stored_bytes=stored_bytes)
        await self._store.create(placed, call)
        while self._bound and self._newest.stored_bytes - self._deleted_bytes > self._bound:
            oldest = (await self._store.find(size=2, newest_first=False)).records
            if len(oldest) < 2:
                break
            with suppress(NoSuchEntity):  # Another call deletes, too.
                await self._store.delete(oldest[0].job_id, PRESENT, call)
            self._deleted_bytes = max(self._deleted_bytes, oldest[0].stored_bytes)

    async def _read_ends(self) -> EnvelopeRecord:
        """Read the newest and the oldest, and return the newest, or that of a call that was faster."""
        newest = (await self._store.find(size=1)).records
        oldest = (await self._store.find(size=1, newest_first=False)).records
        if self._newest is None:
            self._newest = newest[0] if newest else EnvelopeRecord(job_id="")
            self._deleted_bytes = oldest[0].stored_bytes - _measure(oldest[0]) if oldest else 0
        return self._newest


def _measure(envelope: EnvelopeRecord) -> int:
    return len(envelope.output_bytes) + len(envelope.output_summary.encode()) + len(envelope.checksum)
