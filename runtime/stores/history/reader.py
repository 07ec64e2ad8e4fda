"""Reads back what Redis has forgotten."""

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
    """The history of the entities of one kind. Raises Unavailable while PostgreSQL is away."""

    def __init__(self, system: str, lifecycle: Lifecycle, record: type[Record], database: Database) -> None:
        kept = lifecycle.stored_as(KeptInRedis)
        if kept is None:
            raise ValueError(f"{lifecycle.entity} is not kept in Redis")
        self._tables = HistoryTables(system, lifecycle.entity, database)
        self._record: Callable[..., Record] = record
        self._status, self._terminal = lifecycle.status, lifecycle.terminal
        self._states = {word: state for state, word in kept.words[lifecycle.status].items()}
        self._edges = {ends: edge.name for ends, edge in lifecycle.edges.items()}
        self._convert = {name: _conversion(kept, name) for name in record.__struct_fields__}

    async def get(self, key: str) -> Record | None:
        """The record of one that ended for good, as it was then; None if nobody knows of one.

        Redis forgets those by itself. One that could still go on, and is not there any more, was deleted.
        """
        row = await self._tables.get(key) if _can_be(key) else None
        if row is None:
            return None
        # What was not set is as it is in a new record.
        values = {name: value for name, value in row.items() if name in self._convert and value is not None}
        found = self._record(**{name: self._convert[name](value) for name, value in values.items()})
        return found if getattr(found, self._status) in self._terminal else None

    async def history(self, key: str) -> list[HistoryEntry]:
        """Every change that was written so far, oldest first."""
        rows = await self._tables.history(key) if _can_be(key) else ()
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


def _conversion(kept: KeptInRedis, name: str) -> Callable[[Any], Any]:
    """What the value of a column becomes in the record."""
    if kept.types[name].startswith("repeated "):
        return lambda value: tuple(json.loads(value))
    if name in kept.words:
        numbers = {word: number for number, word in kept.words[name].items()}
        return lambda value: numbers.get(value, 0)
    return lambda value: value


def _can_be(key: str) -> bool:
    """Whether a text can be a key of the table at all."""
    return "\0" not in key and key.isprintable()
