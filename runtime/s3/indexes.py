"""The small objects that hint at entities: written after the entity has changed, and in the background.

They are hints. One that is missing or wrong costs time and never an entity, so nobody waits for them and
their failures change nothing; what one process does to the entries of one entity happens in its order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import orjson

from runtime.kept_in_s3 import KeptInS3
from runtime.lifecycles import Lifecycle
from runtime.log import Log
from runtime.s3.errors import ObjectError
from runtime.s3.keys import Keys
from runtime.s3.objects import Objects
from runtime.tables import Event

INDEX_NOT_WRITTEN = Event("index_not_written", "WARNING")
_AT_ONCE = 32
_YOUNG_S = 0.5
"""For so long a lease has no entry: if it ends before, there is none to write and none to remove."""
_MOST_WAITING = 1000
"""Entities that may wait for their entries before their changes have to wait too."""


class _Work(NamedTuple):
    """An entry to write, or one to remove: the very one of an ETag, where there is one."""

    body: bytes | None
    etag: str | None = None


class Indexes:
    """The entries of one kind of entity."""

    def __init__(self, lifecycle: Lifecycle, kept: KeptInS3, keys: Keys, objects: Objects) -> None:
        self._status = lifecycle.status
        self._entity = lifecycle.entity
        self._keys = keys
        self._objects = objects
        self._shown = shown_in_hints(lifecycle, kept)
        self._leased = lifecycle.lease.state if lifecycle.lease else None
        self._later: dict[str, tuple[asyncio.TimerHandle, str, _Work]] = {}
        self._waiting: dict[str, dict[str, _Work]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._failed = 0
        self._lagging: set[str] = set()
        self.failures = 0
        """How many entries could not be written or removed since the start."""
        self.is_failing = False
        """Whether the last one was among them."""
        self.log: Log | None = None

    def entries(self, record: Any) -> Mapping[str, str]:
        """The entries that a record has, by index."""
        return self._keys.entries(record, getattr(record, self._status)) if record is not None else {}

    def follow(self, key: str, before: Any, after: Any) -> None:
        """Lets the entries say what a change has made of an entity; None is one that is not there."""
        old, new = self.entries(before).values(), self.entries(after).values()
        # Most leases are short. Whoever dies with one so young is found by the next repair.
        is_leased = (
            before is not None and after is not None and self._is_leased(before) < self._is_leased(after)
        )
        for entry in new:
            if entry not in old:
                self.write(key, entry, after, after_s=_YOUNG_S if is_leased else 0.0)
        for entry in old:
            if entry not in new:
                self.remove(key, entry)

    def write(self, key: str, entry: str, record: Any, *, after_s: float = 0.0) -> None:
        """Writes an entry soon, or after some time unless it is removed before."""
        # The body tells an entry from a later one of the same minute: it is only removed as what it was read.
        work = _Work(orjson.dumps({name: getattr(record, name) for name in self._shown}))
        if after_s:
            begin = partial(self._begin, entry)
            timer = asyncio.get_running_loop().call_later(after_s, begin)
            self._later[entry] = (timer, key, work)
        else:
            self._add(key, entry, work)

    def remove(self, key: str, entry: str, etag: str | None = None) -> None:
        """Removes an entry some time soon."""
        waiting = self._waiting.get(key)
        if entry in self._later:
            self._later.pop(entry)[0].cancel()
        elif waiting and (begun := waiting.get(entry)) and begun.body is not None:
            del waiting[entry]  # It was not written yet, so there is nothing to remove.
        else:
            self._add(key, entry, _Work(None, etag))

    async def room(self) -> None:
        """Waits while too much of it has to be written."""
        while len(self._waiting) > _MOST_WAITING and self._tasks:
            await asyncio.wait(list(self._tasks.values()), return_when=asyncio.FIRST_COMPLETED)

    async def written(self) -> None:
        """Waits for what is being written now."""
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def drained(self) -> int:
        """Waits until all of it is done; how many entries failed since this was last asked."""
        for entry in list(self._later):
            self._begin(entry)
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))
        failed, self._failed = self._failed, 0
        return failed

    async def close(self, patience_s: float) -> None:
        """Waits until all of it is done, for so long; what is then left is for the next repair."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await self.drained()
        self._waiting.clear()
        for task in list(self._tasks.values()):
            task.cancel()

    async def hinted(self, key: str) -> bool:
        """Waits until the entries of an entity are written; whether they were."""
        for entry in [entry for entry, (_, each, _) in self._later.items() if each == key]:
            self._begin(entry)
        while (task := self._tasks.get(key)) is not None:
            await asyncio.wait([task])
            await asyncio.sleep(0)
        return key not in self._lagging

    def _begin(self, entry: str) -> None:
        """Does now what was to be done after some time."""
        timer, key, work = self._later.pop(entry)
        timer.cancel()
        self._add(key, entry, work)

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
            # It came between the last look of the task and its end.
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
                    if not self.is_failing:
                        self._tell(entry, error)
                    self.is_failing = True
                else:
                    self.is_failing = False
                    self._lagging.discard(key)
        self._waiting.pop(key, None)

    def _lag(self, key: str) -> None:
        if len(self._lagging) >= _MOST_WAITING:
            self._lagging.clear()
        self._lagging.add(key)

    def _tell(self, entry: str, error: Exception) -> None:
        if self.log is not None:
            self.log.write(
                INDEX_NOT_WRITTEN,
                f"an index of {self._entity} lags behind until the next sweep: {error}",
                fields={"entity": self._entity, "entry": entry},
            )


def shown_in_hints(lifecycle: Lifecycle, kept: KeptInS3) -> tuple[str, ...]:
    """What an entry says of its entity: how often it was leased and has failed, and which write made it."""
    counts = sorted({edge.counts for edge in lifecycle.edges.values() if edge.counts})
    fence = [lifecycle.lease.fence] if lifecycle.lease else []
    return (*fence, *counts, kept.revision)
