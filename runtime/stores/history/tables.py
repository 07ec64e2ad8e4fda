"""The tables of the history of one entity, which are migrated before their first use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runtime.stores.history.entries import OutboxEntry, encode_columns
from runtime.stores.postgres.database import LONG_S, Database, run
from runtime.stores.postgres.schema.migrations import migrate
from runtime.stores.postgres.statements import load_statements

EXPIRED_AT_ONCE = 500
"""Batch size of the removal of expired history."""


class HistoryTables:
    """The statements of one entity. All of them raise PostgresUnavailable while the database is away."""

    def __init__(self, system: str, entity: str, database: Database) -> None:
        self._system = system
        self._database = database
        self._statements = load_statements(system, entity)
        self._ready = False
        self.changes, self.ended = (self._statements[name] for name in ("write_changes", "write_ended"))

    async def ensure_ready(self) -> None:
        """Migrate the tables once."""
        if not self._ready:
            await migrate(self._database, self._system)
            self._ready = True

    async def write(self, entries: Sequence[OutboxEntry]) -> None:
        """Write changes and the records that ended with them, atomically and idempotently."""
        latest: dict[str, OutboxEntry] = {}
        # Order the rows to avoid a deadlock of two copies that write the same ones.
        ordered = sorted(entries, key=lambda each: (each.key, each.sequence))
        for each in ordered:
            if each.ended is not None:
                latest[each.key] = each
        rows = [each.change for each in ordered]
        records = [each.ended for each in latest.values() if each.ended is not None]
        async with self._database.transaction() as connection:
            await run(connection, self.changes.text, *encode_columns(rows), timeout=LONG_S)
            if records:
                await run(connection, self.ended.text, *encode_columns(records), timeout=LONG_S)

    async def get(self, key: str) -> Mapping[str, Any] | None:
        """Read the record of an ended entity, by the names of its columns."""
        rows = await self._fetch("get", key)
        return rows[0] if rows else None

    async def history(self, key: str) -> Sequence[Any]:
        """Read the changes of an entity, oldest first."""
        return await self._fetch("history", key)

    async def expire(self, seconds: float) -> int:
        """Delete a batch of entities that ended so long ago; return how many."""
        await self.ensure_ready()
        text = self._statements["forget"].text
        return len(await self._database.fetch(text, seconds, EXPIRED_AT_ONCE, timeout=LONG_S))

    async def _fetch(self, name: str, *arguments: Any) -> Sequence[Any]:
        await self.ensure_ready()
        return await self._database.fetch(self._statements[name].text, *arguments)
