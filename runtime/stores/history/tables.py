"""The tables of the history of one entity: brought up to date before their first use, filled and read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runtime.stores.history.entries import OutboxEntry, columns
from runtime.stores.postgres.database import LONG_S, Database, run
from runtime.stores.postgres.schema.migrations import migrate
from runtime.stores.postgres.statements import statements

FORGOTTEN_AT_ONCE = 500
"""How many are taken away in one step."""


class HistoryTables:
    """What the statements of one entity do. Everything raises Unavailable while the database is away."""

    def __init__(self, system: str, entity: str, database: Database) -> None:
        self._system = system
        self._database = database
        self._statements = statements(system, entity)
        self._ready = False
        self.changes, self.ended = (self._statements[name] for name in ("write_changes", "write_ended"))

    async def ready(self) -> None:
        """Makes sure that the tables are there."""
        if not self._ready:
            await migrate(self._database, self._system)
            self._ready = True

    async def write(self, entries: Sequence[OutboxEntry]) -> None:
        """Writes changes and the records that ended with them, all or none; once more changes nothing."""
        latest: dict[str, OutboxEntry] = {}
        # Always in the same order, so that two who write the same never wait for each other in a circle.
        ordered = sorted(entries, key=lambda each: (each.key, each.sequence))
        for each in ordered:
            if each.ended is not None:
                latest[each.key] = each
        rows = [each.change for each in ordered]
        records = [each.ended for each in latest.values() if each.ended is not None]
        async with self._database.transaction() as connection:
            await run(connection, self.changes.text, *columns(rows), timeout=LONG_S)
            if records:
                await run(connection, self.ended.text, *columns(records), timeout=LONG_S)

    async def get(self, key: str) -> Mapping[str, Any] | None:
        """The record of one that ended, by the names of its columns."""
        rows = await self._fetch("get", key)
        return rows[0] if rows else None

    async def history(self, key: str) -> Sequence[Any]:
        """Every change of one, oldest first."""
        return await self._fetch("history", key)

    async def forget(self, seconds: float) -> int:
        """Takes away some of those that ended so long ago; how many."""
        await self.ready()
        text = self._statements["forget"].text
        return len(await self._database.fetch(text, seconds, FORGOTTEN_AT_ONCE, timeout=LONG_S))

    async def _fetch(self, name: str, *arguments: Any) -> Sequence[Any]:
        await self.ready()
        return await self._database.fetch(self._statements[name].text, *arguments)
