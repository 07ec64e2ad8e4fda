"""The writer of index entries, small objects that hint at entities: in the background, after each change.

A missing or wrong entry costs time and never an entity, so callers do not wait for them and their failures
change nothing. The writes of one process to the entries of one entity are ordered.

An entry is removed only after its replacement is written. So an entity that has had one keeps one as long as
it is free or leased, wherever the process dies that changes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import orjson

from runtime.model.lifecycles import Lifecycle
from runtime.model.system import Event
from runtime.observe.log import Log
from runtime.stores.s3.client.errors import ObjectError
from runtime.stores.s3.client.objects import Objects
from runtime.stores.s3.keys import Keys

INDEX_NOT_WRITTEN = Event("index_not_written", "WARNING")
_AT_ONCE = 32
_YOUNG_S = 0.5
"""Age at which a lease gets its own entry: one that ends before needs none to be written or removed.
Until then the entry stays by which the entity was found when it was free."""
_MOST_WAITING = 1000
"""Entities with entries to write, beyond which changes have to wait (backpressure)."""


class _Work(NamedTuple):
    """An entry to write, or one to remove, where given only with this ETag."""

    body: bytes | None
    etag: str | None = None


class _Young(NamedTuple):
    """The postponed work on the entries of an entity with a young lease: writes, then removals."""

    timer: asyncio.TimerHandle
    works: dict[str, _Work]


class IndexWriter:
    """The entries of one kind of entity."""

    def __init__(self, lifecycle: Lifecycle, keys: Keys, objects: Objects) -> None:
        self._status = lifecycle.status
        self._entity = lifecycle.entity
        self._keys = keys
        self._objects = objects
        self._fields = hint_fields(lifecycle)
        self._leased = lifecycle.lease.state if lifecycle.lease else None
        self._young: dict[str, _Young] = {}
        self._waiting: dict[str, dict[str, _Work]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._failed = 0
        self._lagging: set[str] = set()
        self.failures = 0
        """Failed writes and removals since the start."""
        self.is_failing = False
        """Whether the last write or removal failed."""
        self.log: Log | None = None

    def entries(self, record: Any) -> Mapping[str, str]:
        """Return the entries of a record, by index."""
        return self._keys.entries(record, getattr(record, self._status)) if record is not None else {}

    def follow(self, key: str, before: Any, after: Any) -> None:
        """Update the entries after a change of an entity; None stands for a missing entity."""
        old, new = self.entries(before).values(), self.entries(after).values()
        works = {entry: self._encode_entry(after) for entry in new if entry not in old}
        works |= {entry: _Work(None) for entry in old if entry not in new}
        if not works:
            return
        if (young := self._young.pop(key, None)) is not None:
            young.timer.cancel()
            works = _merge(young.works, works)
        is_leased = (
            before is not None and after is not None and self._is_leased(before) < self._is_leased(after)
        )
        if is_leased and any(work.body is None for work in works.values()):
            timer = asyncio.get_running_loop().call_later(_YOUNG_S, self._begin, key)
            self._young[key] = _Young(timer, works)
        else:
            self._schedule(key, works)

    def write(self, key: str, entry: str, record: Any) -> None:
        """Schedule the write of an entry."""
        self._add(key, entry, self._encode_entry(record))

    def remove(self, key: str, entry: str, etag: str | None = None) -> None:
        """Schedule the removal of an entry."""
        young, waiting = self._young.get(key), self._waiting.get(key)
        if young is not None and (planned := young.works.get(entry)) is not None:
            if planned.body is None:
                young.works[entry] = _Work(None, etag)  # Removed when the lease has its own entry.
            else:
                del young.works[entry]
        elif waiting and (begun := waiting.get(entry)) and begun.body is not None:
            del waiting[entry]  # It was not written yet, so there is nothing to remove.
        else:
            self._add(key, entry, _Work(None, etag))

    def replace(self, key: str, record: Any, entry: str, etag: str | None) -> None:
        """Remove a stale entry of an entity after its current ones are written."""
        if key in self._young:
            return  # It was leased by this process, which is about to replace the entry.
        for other in self.entries(record).values():
            self.write(key, other, record)
        self.remove(key, entry, etag)

    def remove_with_lease(self, key: str, entry: str, etag: str) -> None:
        """Remove the entry by which a leased entity was found, once the lease has its own."""
        if (young := self._young.get(key)) is not None:
            young.works[entry] = _Work(None, etag)
        else:
            self.remove(key, entry, etag)

    async def room(self) -> None:
        """Wait while too many entries are waiting to be written."""
        while len(self._waiting) > _MOST_WAITING and self._tasks:
            await asyncio.wait(list(self._tasks.values()), return_when=asyncio.FIRST_COMPLETED)

    async def wait_in_flight(self) -> None:
        """Wait for the writes in flight."""
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def drain(self) -> int:
        """Wait until all scheduled work is done; return the failures since the last call."""
        for key in list(self._young):
            self._begin(key)
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))
        failed, self._failed = self._failed, 0
        return failed

    async def close(self, patience_s: float) -> None:
        """Wait so long for the scheduled work and cancel the rest, which the next repair does."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await self.drain()
        self._waiting.clear()
        for task in list(self._tasks.values()):
            task.cancel()

    async def wait_written(self, key: str) -> bool:
        """Wait until the entries of an entity are written; return whether they were."""
        if key in self._young:
            self._begin(key)
        while (task := self._tasks.get(key)) is not None:
            await asyncio.wait([task])
            await asyncio.sleep(0)
        return key not in self._lagging

    def _begin(self, key: str) -> None:
        """Begin the postponed work of a lease that is not young any more."""
        young = self._young.pop(key)
        young.timer.cancel()
        self._schedule(key, young.works)

    def _schedule(self, key: str, works: Mapping[str, _Work]) -> None:
        for entry, work in works.items():
            if work.body is None:
                self.remove(key, entry, work.etag)
            else:
                self._add(key, entry, work)

    def _encode_entry(self, record: Any) -> _Work:
        # Two entries of one minute differ in body and so in ETag: removals are conditional.
        return _Work(orjson.dumps({name: getattr(record, name) for name in self._fields}))

    def _is_leased(self, record: Any) -> bool:
        return bool(getattr(record, self._status) == self._leased)

    def _add(self, key: str, entry: str, work: _Work) -> None:
        self._waiting.setdefault(key, {})[entry] = work
        if key not in self._tasks:
            task = self._tasks[key] = asyncio.create_task(self._run(key))
            task.add_done_callback(lambda _: self._done(key))

    def _done(self, key: str) -> None:
        del self._tasks[key]
        if self._waiting.get(key):
            # It was added between the last iteration of the task and its end.
            task = self._tasks[key] = asyncio.create_task(self._run(key))
            task.add_done_callback(lambda _: self._done(key))

    async def _run(self, key: str) -> None:
        while waiting := self._waiting.get(key):
            async with self._at_once:
                if not waiting:
                    continue
                entry = next(iter(waiting))
                work = waiting.pop(entry)
                try:
                    if work.body is None:
                        await self._objects.delete(entry, work.etag)
                    else:
                        await self._objects.put(entry, work.body)
                except ObjectError as error:
                    self._failed += 1
                    self.failures += 1
                    self._lag(key)
                    if work.body is not None:
                        _cancel_removals(waiting)
                    if not self.is_failing:
                        self._log_failure(entry, error)
                    self.is_failing = True
                else:
                    self.is_failing = False
                    self._lagging.discard(key)
        self._waiting.pop(key, None)

    def _lag(self, key: str) -> None:
        if len(self._lagging) >= _MOST_WAITING:
            self._lagging.clear()
        self._lagging.add(key)

    def _log_failure(self, entry: str, error: Exception) -> None:
        if self.log is not None:
            self.log.write(
                INDEX_NOT_WRITTEN,
                f"an index of {self._entity} lags behind until the next sweep: {error}",
                fields={"entity": self._entity, "entry": entry},
            )


def _merge(young: Mapping[str, _Work], works: Mapping[str, _Work]) -> dict[str, _Work]:
    """Merge the postponed work of two changes of one entity: writes, then removals."""
    unwritten = {entry for entry, work in young.items() if work.body is not None}
    merged = {entry: work for entry, work in works.items() if work.body is not None}
    merged |= {entry: young[entry] for entry in unwritten if entry not in works}
    removed = {entry: work for entry, work in young.items() if work.body is None}
    removed |= {entry: work for entry, work in works.items() if work.body is None and entry not in unwritten}
    return merged | {entry: work for entry, work in removed.items() if entry not in merged}


def _cancel_removals(waiting: dict[str, _Work]) -> None:
    """Cancel the removals after a failed write: one of them may be the only entry left."""
    for entry in [entry for entry, work in waiting.items() if work.body is None]:
        del waiting[entry]


def hint_fields(lifecycle: Lifecycle) -> tuple[str, ...]:
    """Return the fields in the body of an entry: fence, attempts and revision of its entity."""
    counts = sorted({edge.increment for edge in lifecycle.edges.values() if edge.increment})
    fence = [lifecycle.lease.fence] if lifecycle.lease else []
    return (*fence, *counts, *([lifecycle.revision] if lifecycle.revision else []))
