"""Reader of the history, for entities that Redis has expired."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Generic

from runtime.model.lifecycles import Lifecycle
from runtime.stores.contract import CREATION, HistoryEntry, Record
from runtime.stores.history.tables import HistoryTables
from runtime.stores.layouts.redis import KeptInRedis
from runtime.stores.postgres.database import Database


class HistoryReader(Generic[Record]):
    """The history of the entities of one kind. Raises PostgresUnavailable while PostgreSQL is away."""

    def __init__(self, system: str, lifecycle: Lifecycle, record: type[Record], database: Database) -> None:
        kept = lifecycle.stored_as(KeptInRedis)
        if kept is None:
            raise ValueError(f"{lifecycle.entity} is not stored in Redis")
        self._tables = HistoryTables(system, lifecycle.entity, database)
        self._record: Callable[..., Record] = record
        self._status, self._terminal = lifecycle.status, lifecycle.terminal
        self._states = {word: state for state, word in kept.words[lifecycle.status].items()}
        self._edges = {ends: edge.name for ends, edge in lifecycle.edges.items()}
        self._converters = {name: _make_converter(kept, name) for name in record.__struct_fields__}

    async def get(self, key: str) -> Record | None:
        """Read the last record of an entity that has ended; None if there is none.

        Redis expires those by itself. One in a state that is not terminal was deleted there.
        """
        row = await self._tables.get(key) if _is_valid_key(key) else None
        if row is None:
            return None
        # Unset fields have the defaults of a new record.
        values = {
            name: value for name, value in row.items() if name in self._converters and value is not None
        }
        found = self._record(**{name: self._converters[name](value) for name, value in values.items()})
        return found if getattr(found, self._status) in self._terminal else None

    async def history(self, key: str) -> list[HistoryEntry]:
        """Read the changes written so far, oldest first."""
        rows = await self._tables.history(key) if _is_valid_key(key) else ()
        return [self._to_entry(row) for row in rows]

    def _to_entry(self, row: Any) -> HistoryEntry:
        source = self._states.get(row["from_state"] or "")
        target = self._states[row["to_state"]]
        return HistoryEntry(
            sequence=row["sequence"],
            edge=CREATION if source is None else self._edges.get((source, target), ""),
            source=source,
            target=target,
            actor=row["actor"],
            at=row["at"],
            fence=row["fence"],
            owner=row["owner"] or "",
            reason=row["reason"] or "",
            trace=row["trace"] or "",
        )


def _make_converter(kept: KeptInRedis, name: str) -> Callable[[Any], Any]:
    """Return the function that converts the value of a column to that of the record's field."""
    if kept.types[name].startswith("repeated "):
        return lambda value: tuple(json.loads(value))
    if name in kept.words:
        numbers = {word: number for number, word in kept.words[name].items()}
        return lambda value: numbers.get(value, 0)
    return lambda value: value


def _is_valid_key(key: str) -> bool:
    """Whether a text is a valid key of the table."""
    return "\0" not in key and key.isprintable()
