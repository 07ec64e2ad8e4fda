"""Writes the changes of Redis' entities to PostgreSQL, from the stream that every script appends to.

Any number of copies share the stream through a consumer group. What one has taken and not finished, because
it died or PostgreSQL is away, it or another takes again; the database knows what it has already. An entry
leaves the stream only after the commit, so that nothing is lost and nothing is there twice.
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
from runtime.stores.history.entries import EntryShape, Misshapen, OutboxEntry
from runtime.stores.history.measures import HistoryMeasures
from runtime.stores.history.stream import OutboxStream, Raw
from runtime.stores.history.tables import HistoryTables
from runtime.stores.layouts.redis import KeptInRedis
from runtime.stores.postgres.database import Database, PostgresUnavailable
from runtime.stores.store import StoreUnusable

PAUSE_S = (0.1, 5.0)
"""The least and the greatest pause after something failed."""
TIDY_S = 5.0
"""How often the stream is looked over, and old history taken away."""

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
        self._stream = OutboxStream(client, prefix + kept.outbox.stream, _own_name())
        self._tables = HistoryTables(system.name, lifecycle.entity, database)
        self._shape = EntryShape(lifecycle, self._tables.changes, self._tables.ended)
        self._measures = HistoryMeasures(metrics, lifecycle.entity)
        self._keeps_s = float(values[kept.outbox.expires]) if kept.outbox.expires else 0.0
        self._pause = 0.0
        self._unfinished = True
        self._tidy_at = 0.0

    async def run(self, call: Call, stopping: asyncio.Event) -> None:
        """Writes until it is told to stop; what it has taken by then it finishes."""
        while not stopping.is_set():
            try:
                await self._tables.ready()
                await self.step(call)
                await self._tidy(call)
                self._pause = 0.0
            except _AWAY as error:
                self._unfinished = True
                await self._wait(call, error, stopping)
        with suppress(*_AWAY):  # whoever goes on takes what is left
            await self._stream.leave()

    async def step(self, call: Call) -> int:
        """Takes what is there, waiting for it a moment, and writes it; how many changes that were."""
        taken = await self._stream.take(unfinished=self._unfinished)
        await self._keep(taken, call)
        self._unfinished = self._unfinished and bool(taken)
        return len(taken)

    async def _keep(self, taken: Sequence[Raw], call: Call) -> None:
        if not taken:
            return
        good: list[OutboxEntry] = []
        bad: list[tuple[Raw, str]] = []
        for raw in filter(_is_there, taken):
            try:
                good.append(self._shape.entry(raw.name, raw.fields))
            except Misshapen as error:
                bad.append((raw, str(error)))
        refused = await self._write(good)
        bad += [(raw, refused[raw.name]) for raw in taken if raw.name in refused]
        await self._stream.done([*dict.fromkeys(raw.id for raw in taken)], bad)
        self._measures.refused(len(bad))
        for raw, why in bad:
            key = raw.fields.get(b"key", b"").decode("utf-8", "replace")
            call.tell(events.HISTORY_REFUSED, f"entry {raw.id} of {key!r} is set aside: {why}")

    async def _write(self, entries: Sequence[OutboxEntry]) -> dict[str, str]:
        """Writes all at once, or in halves if the database does not take one of them; why, by entry."""
        if not entries:
            return {}
        try:
            await self._tables.write(entries)
        except _REFUSED as error:
            if (half := len(entries) // 2) > 0:
                return await self._write(entries[:half]) | await self._write(entries[half:])
            why = f"{type(error).__name__}: {error}"
            if entries[0].ended is not None:
                # The record may be what is wrong; the change itself shall not be missing for that.
                await self._write([replace(entries[0], ended=None)])
            return {entries[0].name: why}
        self._measures.wrote(len(entries), sum(each.ended is not None for each in entries))
        return {}

    async def _tidy(self, call: Call) -> None:
        """From time to time: takes over what dead copies left, and takes old history away."""
        now = asyncio.get_running_loop().time()
        if now < self._tidy_at:
            return
        while taken := await self._stream.take_over():
            await self._keep(taken, call)
        await self._stream.heal()
        while self._keeps_s and await self._tables.forget(self._keeps_s):
            pass
        self._tidy_at = now + call.world.uniform(0.5 * TIDY_S, TIDY_S)

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


def _is_there(raw: Raw) -> bool:
    """Whether there is anything to be written: what somebody deleted has no fields any more."""
    return bool(raw.fields)


def _own_name() -> str:
    """No two copies have the same name, not even those that run on one machine after each other."""
    return f"{socket.gethostname()}:{os.getpid()}:{os.urandom(4).hex()}"
