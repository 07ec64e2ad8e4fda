"""The order of listings in SQLite."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any

from runtime.stores.semantics.rules import Rules, to_moment
from runtime.stores.sqlite.rows import Rows
from runtime.stores.sqlite.statements import EQUAL
from runtime.stores.steps.table import ListingSpan

Entry = tuple[int, str]


class RowListing:
    """Keys by state and time, from the indexes of the table."""

    def __init__(self, rules: Rules, rows: Rows) -> None:
        self._rules, self._rows = rules, rows
        self._listed_by = rules.lifecycle.listed_by
        self._unit = 1 if self._listed_by in rules.instants else 1000
        """Microseconds of one unit of the time by which entities are listed."""

    def iterate(
        self,
        states: Collection[int],
        offset: int,
        *,
        newest_first: bool,
        span: ListingSpan,
        equal: Mapping[str, object],
    ) -> Iterator[Entry]:
        """Iterate over a part of the listing; no states means all of them."""
        # What is skipped is counted before anything is compared.
        pushed = equal if not offset else {}
        conditions, given = self._conditions(span, pushed, newest_first=newest_first)
        status = self._rows.statements.column(self._rules.lifecycle.status)
        wanted = sorted({*states})
        name = "find_newest" if newest_first else "find_oldest"
        if len(wanted) < 2:
            for state in wanted:
                conditions.append(f"{status} = :state")
                given["state"] = self._rows.codec.word[state]
            found = self._rows.find(name, conditions, {**given, "size": -1, "offset": offset})
            return (self._entry(key, record) for key, record in found)
        parts = [
            self._rows.find(
                name,
                [*conditions, f"{status} = :state"],
                {**given, "state": self._rows.codec.word[state], "size": -1, "offset": 0},
            )
            for state in wanted
        ]
        sign = -1 if newest_first else 1
        entries = [((sign * at, key) for at, key in self._entries(part)) for part in parts]
        merged = ((sign * at, key) for at, key in heapq.merge(*entries))
        return islice(merged, offset, None)

    def count(self, state: int, since: int | None = None) -> int:
        """Return how many entities are in a state, or have been since a time."""
        if since is not None:
            span = ListingSpan(since=since)
            return sum(1 for _ in self.iterate((state,), 0, newest_first=True, span=span, equal={}))
        word = self._rows.codec.word[state]
        return next((count for each, count in self._rows.execute("count") if each == word), 0)

    def oldest(self, state: int) -> int | None:
        """Return the least time of those in a state."""
        if self._listed_by is None:
            return None
        (least,) = self._rows.execute("oldest", {"state": self._rows.codec.word[state]}).fetchone()
        return None if least is None else least * self._unit

    def _entries(self, rows: Iterator[tuple[str, Any]]) -> Iterator[Entry]:
        return (self._entry(key, record) for key, record in rows)

    def _entry(self, key: str, record: Any) -> Entry:
        return (to_moment(getattr(record, self._listed_by)) or 0 if self._listed_by else 0, key)

    def _conditions(
        self, span: ListingSpan, equal: Mapping[str, object], *, newest_first: bool
    ) -> tuple[list[str], dict[str, Any]]:
        statements, codec = self._rows.statements, self._rows.codec
        conditions: list[str] = []
        given: dict[str, Any] = {}
        for name, value in equal.items():
            conditions.append(f"{statements.column(name)} IS :{EQUAL}{name}")
            given[f"{EQUAL}{name}"] = codec.encode(name, value)
        key = statements.column(self._rules.lifecycle.key)
        if self._listed_by is None:
            if span.after is not None:
                conditions.append(f"{key} > :after_key")
                given["after_key"] = span.after[1]
            return conditions, given
        at = statements.column(self._listed_by)
        if span.since is not None:
            conditions.append(f"{at} >= :since")
            given["since"] = self._round_up(span.since)
        if span.until is not None:
            conditions.append(f"{at} < :until")
            given["until"] = self._round_up(span.until)
        if span.after is not None:
            beyond = "<" if newest_first else ">"
            conditions.append(f"{at} {beyond}= :after_at")
            conditions.append(f"({at} {beyond} :after_at OR {key} > :after_key)")
            given["after_at"], given["after_key"] = span.after[0] // self._unit, span.after[1]
        return conditions, given

    def _round_up(self, moment: int) -> int:
        return -(-moment // self._unit)
