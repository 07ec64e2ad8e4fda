"""Background maintenance of a store: migrate, listen for wake-ups, and count entities by state."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import asyncpg

from runtime.model.lifecycles import Lifecycle
from runtime.model.system import Event
from runtime.observe.log import Log
from runtime.stores.layouts.postgres import KeptInPostgres
from runtime.stores.postgres.database import LOST, Database, PostgresUnavailable
from runtime.stores.postgres.measures import PostgresMeasures
from runtime.stores.postgres.schema.migrations import find_missing, migrate

_PAUSE_S = 1.0
_COUNT_SHARE = 50
"""Pause after a slow count of a large table, in multiples of its duration."""
_QUICK_COUNT_S = 1.0
"""A count that is no slower than this is repeated for every scrape, without a pause."""
_LISTENING_CHECK_S = 30.0

STORE_READY = Event("store_ready", "INFO")
STORE_UNAVAILABLE = Event("store_unavailable", "WARNING", always=True)


Census = Callable[[], Awaitable[Sequence[Any]]]


class PostgresMaintenance:
    """The background tasks of one store."""

    def __init__(
        self, database: Database, series: str, lifecycle: Lifecycle, measures: PostgresMeasures, count: Census
    ) -> None:
        self._database = database
        self._series = series
        self._lifecycle = lifecycle
        kept = lifecycle.stored_as(KeptInPostgres)
        self._channel = kept.table if kept else ""
        self._measures = measures
        self._count_states = count
        self._tasks: list[asyncio.Task[None]] = []
        self._wakeups = 0
        self._seen = 0
        self._news = asyncio.Event()
        self._counted_until = 0.0
        self._counting: asyncio.Task[None] | None = None
        self._ready = False
        self._log: Log | None = None

    async def open(self, log: Log) -> None:
        """Migrate and begin to listen; while the database is away, both are retried in the background."""
        self._log = log
        try:
            await self._prepare()
        except PostgresUnavailable as error:
            self._log_event(
                STORE_UNAVAILABLE, f"the database is not available yet ({error}); connecting is retried"
            )
            self._tasks.append(asyncio.create_task(self._prepare_later()))
        self.start_listening()

    def start_listening(self) -> None:
        """Listen for wake-ups until the store is closed."""
        self._tasks.append(asyncio.create_task(self._listen()))

    async def close(self) -> None:
        """Cancel all background tasks."""
        if self._counting is not None:
            self._tasks.append(self._counting)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    def note_claim(self) -> bool:
        """Note the beginning of a claim; return whether there was a wake-up since the last one."""
        is_woken, self._seen = self._wakeups != self._seen, self._wakeups
        return is_woken

    async def wait(self, timeout_s: float) -> bool:
        """Wait for a wake-up; True if there was one since the last claim."""
        if self._wakeups == self._seen:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._news.wait()
        return self._wakeups != self._seen

    async def health(self) -> str | None:
        """Return why the database is unusable; None when it answers and has the schema."""
        try:
            lacking = await find_missing(self._database, self._series)
        except PostgresUnavailable:
            return "the database does not answer"
        except asyncpg.PostgresError:
            return "the database refuses to answer"
        return "the database lacks the schema of this release" if lacking else None

    def census(self) -> Iterable[tuple[str, str, int, float]]:
        """Return the result of the last count."""
        return self._measures.census()

    async def recount(self) -> None:
        """Count the entities by state for a scrape; concurrent scrapes share a count.

        A count that began before this scrape may be outdated, so it is awaited and not shared. In the pause
        after a slow count there is none, and the scrape shows the last one.
        """
        if (earlier := self._counting) is not None:
            await asyncio.wait([earlier])
        loop = asyncio.get_running_loop()
        if self._counting is None:
            if not self._ready or loop.time() < self._counted_until:
                return
            self._counting = loop.create_task(self._count())
        await asyncio.wait([self._counting])

    async def _prepare(self) -> None:
        await migrate(self._database, self._series)
        self._ready = True
        # Counting a large table takes a while: do it in the background.
        self._counting = asyncio.create_task(self._count())
        self._log_event(STORE_READY, "the database has the schema")

    async def _prepare_later(self) -> None:
        while True:
            await asyncio.sleep(_PAUSE_S)
            with suppress(PostgresUnavailable, asyncpg.PostgresError):
                await self._prepare()
                return

    async def _count(self) -> None:
        loop, lifecycle = asyncio.get_running_loop(), self._lifecycle
        began = loop.time()
        try:
            with suppress(PostgresUnavailable, asyncpg.PostgresError):
                rows = {row[0]: (row[1], row[2]) for row in await self._count_states()}
                self._measures.states = [
                    (lifecycle.entity, name, *rows.get(name, (0, 0.0))) for name in lifecycle.states.values()
                ]
        finally:
            took = loop.time() - began
            if took > _QUICK_COUNT_S:
                self._counted_until = loop.time() + _COUNT_SHARE * took
            self._counting = None

    async def _listen(self) -> None:
        """Keep one connection that listens for notifications of claimable entities; reconnect on loss."""
        while True:
            with suppress(PostgresUnavailable, asyncpg.PostgresError, *LOST):
                connection = await self._database.dedicated()
                try:
                    terminated = asyncio.Event()
                    connection.add_termination_listener(lambda _, ended=terminated: ended.set())
                    await connection.add_listener(self._channel, self._notified)
                    # Notifications may have been missed before: wake up once.
                    self._wake()
                    while not terminated.is_set():
                        with suppress(TimeoutError):
                            async with asyncio.timeout(_LISTENING_CHECK_S):
                                await terminated.wait()
                                break
                        await connection.execute("SELECT 1", timeout=_PAUSE_S)
                finally:
                    connection.terminate()
            await asyncio.sleep(_PAUSE_S)

    def _notified(self, *_: object) -> None:
        self._wake()

    def _wake(self) -> None:
        self._wakeups += 1
        self._news.set()
        self._news = asyncio.Event()

    def _log_event(self, event: Event, message: str) -> None:
        if self._log is not None:
            self._log.write(event, message, fields={"entity": self._lifecycle.entity})
