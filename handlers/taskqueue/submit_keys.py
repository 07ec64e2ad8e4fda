"""The keys of earlier submits, each with the job that it made. Beyond a bound the oldest is forgotten."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress

from generated.taskqueue.messages import PRESENCE_PRESENT
from generated.taskqueue.records import SubmitKeyRecord
from handlers.taskqueue.single_writer import Arrivals, create_or_find
from runtime.call import Call
from runtime.stores.contract import EntityStore
from runtime.stores.store import NoSuchEntity
from runtime.world import World


class SubmitKeys:
    """A map of keys to jobs. It is read from its store once, and outlives the process where that does."""

    def __init__(self, store: EntityStore[SubmitKeyRecord], bound: int, world: World) -> None:
        self._store = store
        self._bound = bound
        self._arrivals = Arrivals(store, "remembered_at_ms", world)
        self._job_ids: OrderedDict[str, str] = OrderedDict()

    async def get(self, key: str) -> str | None:
        """Return the job of a key, if it has not been forgotten."""
        for each in await self._arrivals.load():
            self._job_ids[each.client_request_id] = each.job_id
        return self._job_ids.get(key)

    async def add(self, key: str, job_id: str, call: Call) -> str:
        """Remember a key that `get` did not find; return the job that it stands for."""
        at_ms = self._arrivals.next_ms()
        record = SubmitKeyRecord(client_request_id=key, job_id=job_id, remembered_at_ms=at_ms)
        kept = await create_or_find(self._store, record, key, call)
        self._job_ids[key] = kept.job_id
        while len(self._job_ids) > self._bound:
            await self.remove(next(iter(self._job_ids)), call)
        return kept.job_id

    async def remove(self, key: str, call: Call) -> None:
        """Forget a key; one that is not known is no error."""
        self._job_ids.pop(key, None)
        with suppress(NoSuchEntity):
            await self._store.delete(key, PRESENCE_PRESENT, call)
