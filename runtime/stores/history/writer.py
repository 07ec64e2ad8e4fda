"""Writer of the history in PostgreSQL, from the outbox stream in Redis that every script appends to.

Any number of copies read the stream through a consumer group. Entries that one has read and not acknowledged,
because it died or PostgreSQL is away, are read again by it or by another copy; the writes are idempotent. An
entry is acknowledged only after the commit, so that no change is lost or duplicated.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import asyncpg
from msgspec.structs import replace
from redis.asyncio import Redis
from redis.exceptions import RedisError

from runtime.call.context import Call
from runtime.model.lifecycles import Lifecycle
from runtime.model.system import System
from runtime.observe import log as events
from runtime.observe.metrics import Metrics
from runtime.stores.history.entries import EntryShape, MalformedEntry, OutboxEntry
from runtime.stores.history.measures import HistoryMeasures
from runtime.stores.history.stream import OutboxStream, Raw
from runtime.stores.history.tables import HistoryTables
from runtime.stores.layouts.redis import KeptInRedis
from runtime.stores.postgres.database import Database, PostgresUnavailable
from runtime.stores.store import StoreUnusable

PAUSE_S = (0.1, 5.0)
"""Least and greatest backoff after a failure."""
MAINTENANCE_S = 5.0
"""Interval of the maintenance of the stream and of the expired history."""

_AWAY = (PostgresUnavailable, StoreUnusable, asyncpg.PostgresError, RedisError, OSError, TimeoutError)
_REFUSED = (asyncpg.PostgresError, asyncpg.DataError, ValueError)


class HistoryWriter:
    """One copy of the writer, for one entity."""

    def __init__(
        self,
        system: System,
        lifecycle: Lifecycle,
        client: Redis,
        database: Database,
        metrics: Metrics,
        values: Mapping[str, Any],
    ) -> None:
        kept = lifecycle.stored_as(KeptInRedis)
        if kept is None or kept.outbox is None:
            raise ValueError(f"{lifecycle.entity} has no history")
        prefix = str(values[kept.prefix] or "") if kept.prefix else ""
        self._stream = OutboxStream(client, prefix + kept.outbox.stream, _make_consumer_name())
        self._tables = HistoryTables(system.name, lifecycle.entity, database)
        self._shape = EntryShape(lifecycle, self._tables.changes, self._tables.ended)
        self._measures = HistoryMeasures(metrics, lifecycle.entity)
        self._keeps_s = float(values[kept.outbox.expires]) if kept.outbox.expires else 0.0
        self._pause = 0.0
        self._unfinished = True
        self._maintain_at = 0.0

    async def run(self, call: Call, stopping: asyncio.Event) -> None:
        """Write until `stopping` is set; finish the changes that were read by then."""
        while not stopping.is_set():
            try:
                await self._tables.ensure_ready()
                await self.step(call)
                await self._maintain(call)
                self._pause = 0.0
            except _AWAY as error:
                self._unfinished = True
                await self._wait(call, error, stopping)
        with suppress(*_AWAY):  # another copy claims the rest
            await self._stream.leave()

    async def step(self, call: Call) -> int:
        """Read some changes, with a short wait, and write them; return how many."""
        changes = await self._stream.read(unfinished=self._unfinished)
        await self._store(changes, call)
        self._unfinished = self._unfinished and bool(changes)
        return len(changes)

    async def _store(self, changes: Sequence[Raw], call: Call) -> None:
        if not changes:
            return
        good: list[OutboxEntry] = []
        bad: list[tuple[Raw, str]] = []
        for raw in filter(_has_fields, changes):
            try:
                good.append(self._shape.decode(raw.name, raw.fields))
            except MalformedEntry as error:
                bad.append((raw, str(error)))
        refused = await self._write(good)
        bad += [(raw, refused[raw.name]) for raw in changes if raw.name in refused]
        await self._stream.acknowledge([*dict.fromkeys(raw.id for raw in changes)], bad)
        self._measures.count_refused(len(bad))
        for raw, why in bad:
            key = raw.fields.get(b"key", b"").decode("utf-8", "replace")
            call.tell(events.HISTORY_REFUSED, f"entry {raw.id} of {key!r} is set aside: {why}")

    async def _write(self, entries: Sequence[OutboxEntry]) -> dict[str, str]:
        """Write all entries, bisecting a rejected batch; return the reasons of the rejected entries."""
        if not entries:
            return {}
        try:
            await self._tables.write(entries)
        except _REFUSED as error:
            if (half := len(entries) // 2) > 0:
                return await self._write(entries[:half]) | await self._write(entries[half:])
            why = f"{type(error).__name__}: {error}"
            if entries[0].ended is not None:
                # The record may be the cause: write the change itself without it.
                await self._write([replace(entries[0], ended=None)])
            return {entries[0].name: why}
        self._measures.count_written(len(entries), sum(each.ended is not None for each in entries))
        return {}

    async def _maintain(self, call: Call) -> None:
        """At an interval: claim the changes of dead copies, repair the stream, and delete expired history."""
        now = asyncio.get_running_loop().time()
        if now < self._maintain_at:
            return
        while changes := await self._stream.claim_abandoned():
            await self._store(changes, call)
        await self._stream.repair()
        while self._keeps_s and await self._tables.expire(self._keeps_s):
            pass
        self._maintain_at = now + call.world.uniform(0.5 * MAINTENANCE_S, MAINTENANCE_S)

    async def _wait(self, call: Call, error: Exception, stopping: asyncio.Event) -> None:
        if not self._pause:
            call.tell(
                events.HISTORY_WAITS, f"history is not written for now: {type(error).__name__}: {error}"
            )
        self._pause = min(max(self._pause * 2, PAUSE_S[0]), PAUSE_S[1])
        try:
            async with asyncio.timeout(call.world.uniform(0.5 * self._pause, self._pause)):
                await stopping.wait()
        except TimeoutError:
            pass


def _has_fields(raw: Raw) -> bool:
    """Whether a change has fields; a deleted entry has none."""
    return bool(raw.fields)


def _make_consumer_name() -> str:
    """Make a consumer name that is unique for each process."""
    return f"{socket.gethostname()}:{os.getpid()}:{os.urandom(4).hex()}"
