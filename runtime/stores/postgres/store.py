"""The PostgreSQL store: claims and settlements are guarded statements, checked again by triggers."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from runtime.observe import log as events
from runtime.stores.contract import CREATION, NOTHING, Cursor, HistoryEntry, Record, RecordPage
from runtime.stores.postgres.claims import PostgresClaims
from runtime.stores.postgres.maintenance import PostgresMaintenance
from runtime.stores.semantics.leases import equals
from runtime.stores.semantics.rules import EPOCH, to_moment

_POLL_S = 0.05
"""Poll interval of a caller that waits for the next change of an entity."""
_MOST_SKIPPED = 2**62
"""Largest offset: with a page size added it is still a bigint."""


class PostgresStore(PostgresClaims[Record]):
    """The entities of one kind. Any number of processes may have one over the same table."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._maintenance = PostgresMaintenance(
            self._database, self._series, self._lifecycle, self._measures, self._count_states
        )
        self._cursor.note_claim = self._maintenance.note_claim
        self._metrics.add_census(self._maintenance, self._maintenance.recount)

    async def open(self, log: events.Log) -> None:
        """Prepare the database and start to listen; both are retried in the background while it is away."""
        await self._maintenance.open(log)

    async def close(self) -> None:
        """Stop listening and counting; the engine closes the connections."""
        await self._maintenance.close()

    # Reading.

    async def get(self, key: str) -> Record | None:
        if not self._codec.is_key(key):
            return None
        own = self._codec.as_key(key)
        await self._access(own)
        rows = await self._answer(self._run("get", key=own))
        return self._codec.decode(rows[0]) if rows else None

    async def find(
        self,
        *,
        states: Collection[int] = (),
        equal: Mapping[str, object] = NOTHING,
        since: datetime | int | None = None,
        until: datetime | int | None = None,
        after: Cursor | None = None,
        offset: int = 0,
        size: int = 50,
        newest_first: bool = True,
    ) -> RecordPage[Record]:
        arguments = self._narrow(equal)
        await self._forget()
        wanted = [self._codec.state_name(state) for state in states or self._lifecycle.states]
        arguments |= {"states": [*dict.fromkeys(wanted)], "size": size + 1}
        arguments["offset"] = min(offset, _MOST_SKIPPED)
        arguments |= {"since": self._listed_time(since), "until": self._listed_time(until)}
        if after is not None:
            arguments |= {"after_at": self._cursor_time(after.at), "after_key": self._codec.as_key(after.key)}
        work = self._run("find_newest" if newest_first else "find_oldest", **arguments)
        records = [self._codec.decode(row) for row in await self._answer(work)]
        page = records[:size]
        found = [each for each in page if equals(each, equal)]
        return RecordPage(found, self._cursor_of(page[-1]) if len(records) > size and page else None)

    async def history(self, key: str) -> list[HistoryEntry]:
        if not self._codec.is_key(key):
            return []
        await self._forget()
        rows = await self._answer(self._run("history", key=self._codec.as_key(key)))
        return [self._to_entry(number, row) for number, row in enumerate(rows, 1)]

    async def count(
        self, states: Collection[int] = (), *, since: datetime | int | None = None
    ) -> dict[int, int]:
        await self._forget()
        is_all = since is None or self._lifecycle.listed_by is None
        work = self._count_states() if is_all else self._run("count_since", since=self._listed_time(since))
        rows = {row[0]: row[1] for row in await self._answer(work)}
        return {
            state: rows.get(self._codec.state_name(state), 0) for state in states or self._lifecycle.states
        }

    async def wait(self, timeout_s: float, *, key: str | None = None) -> bool:
        if key is None:
            return await self._wait_for_work(timeout_s)
        loop = asyncio.get_running_loop()
        before, end = await self.get(key), loop.time() + timeout_s
        while (remaining_s := end - loop.time()) > 0:
            await asyncio.sleep(min(remaining_s, _POLL_S))
            if await self.get(key) != before:
                return True
        return False

    async def _wait_for_work(self, timeout_s: float) -> bool:
        """Wait for a wake-up, or until the next entity is free."""
        if "next_free" not in self._statements:
            return await self._maintenance.wait(timeout_s)
        (row,) = await self._answer(self._run("next_free"))
        free_in_s = timeout_s + 1 if row[0] is None else max(0.0, row[0])
        return await self._maintenance.wait(min(free_in_s, timeout_s)) or free_in_s <= timeout_s

    async def health(self) -> str | None:
        return await self._maintenance.health()

    # Parts.

    async def _count_states(self) -> Any:
        return await self._run("census")

    def _to_entry(self, number: int, row: Any) -> HistoryEntry:
        """Decode a row of the history; where it does not name the edge, the states determine it."""
        codec, lifecycle = self._codec, self._lifecycle
        source = None if row[0] is None else codec.state_number(row[0])
        target = codec.state_number(row[1])
        edge = CREATION if source is None else row[5] or lifecycle.edges[source, target].name
        owner, reason, trace = (row[column] or "" for column in (6, 7, 8))
        return HistoryEntry(number, edge, source, target, row[2], row[4], row[3], owner, reason, trace)

    def _cursor_of(self, record: Any) -> Cursor:
        name = self._lifecycle.listed_by
        at = self._rules.moment_at(record, name) if name else 0
        return Cursor(at or 0, self._rules.key(record))

    def _cursor_time(self, at: int) -> Any:
        name = self._lifecycle.listed_by
        if name is None:
            return None
        return EPOCH + timedelta(microseconds=at) if name in self._rules.instants else at // 1000

    def _listed_time(self, value: datetime | int | None) -> Any:
        moment = to_moment(value)
        return None if moment is None else self._cursor_time(moment)
