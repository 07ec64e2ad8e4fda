"""A table in one JSON file: every question looks through all rows, and every step writes the file anew."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from runtime.model.lifecycles import Transition
from runtime.stores.contract import HistoryEntry
from runtime.stores.semantics import clocks, creation, leases
from runtime.stores.semantics.rules import EPOCH, Clock, Rules
from runtime.stores.steps.table import ListingSpan
from runtime.stores.wakeups import Wakeups

R = TypeVar("R")


class Row(msgspec.Struct, Generic[R]):
    """One entity: its record, its history, and what is remembered of it."""

    record: R
    history: list[HistoryEntry] = []
    unique_until: dict[str, int | None] = {}
    """By unique field: until when its value is remembered; None for as long as there is the entity."""
    ended: int | None = None
    """Its place in the order of ends."""
    forgotten_at: int | None = None


class Document(msgspec.Struct, Generic[R]):
    """All of one kind of entity."""

    rows: dict[str, Row[R]] = {}
    paused: list[int] = []
    ends: int = 0


class JsonTable:
    """The rows of one kind of entity, its listing, its claims and its clocks."""

    def __init__(self, rules: Rules, record: type[Any], path: Path, opened: int, max_terminal: int) -> None:
        self.rules, self.opened = rules, opened
        self.wakeups = Wakeups()
        self.records = self.listing = self
        self.claims = self if rules.lease is not None else None
        timed = [clock for clock in rules.clocks if clock.due.at is not None]
        self.dues = {clock.number: DueRows(self, clock) for clock in timed}
        self._path, self._max_terminal = path, max_terminal
        self._decoder = msgspec.json.Decoder(Document[record])  # type: ignore[valid-type]
        self._saved = path.read_bytes() if path.exists() else msgspec.json.encode(Document())
        self._document: Document[Any] = self._decoder.decode(self._saved)
        self._is_changed = False

    # The file.

    def save(self) -> None:
        """Replace the file by what a step has made of it; where that fails the step has not happened."""
        if not self._is_changed:
            return
        self._is_changed = False
        new, content = self._path.with_suffix(".new"), msgspec.json.encode(self._document)
        try:
            new.write_bytes(content)
            new.replace(self._path)
            self._saved = content
        except OSError:
            self._document = self._decoder.decode(self._saved)
            raise

    def iterate_rows(self) -> Iterator[tuple[str, Any]]:
        """Iterate over all keys and records."""
        return ((key, row.record) for key, row in self._document.rows.items())

    # Records.

    def get(self, key: str) -> Any | None:
        row = self._document.rows.get(key)
        return None if row is None else row.record

    def __getitem__(self, key: str) -> Any:
        return self._document.rows[key].record

    def __contains__(self, key: object) -> bool:
        return key in self._document.rows

    def add(self, key: str, record: Any, now: int) -> None:
        rules = self.rules
        names = creation.unique_values(rules, record)
        unique = {name: creation.unique_until(rules, name, now) for name in names}
        self._document.rows[key] = Row(record, [], unique)
        self._changed(key)
        self._retain(key, now)

    def put(self, key: str, old: Any, new: Any, now: int) -> None:
        self._document.rows[key].record = new
        self._changed(key)
        if self.rules.state(old) != self.rules.state(new):
            self._retain(key, now)

    def drop(self, key: str) -> None:
        del self._document.rows[key]
        self._changed(key)

    def _changed(self, key: str) -> None:
        self._is_changed = True
        record = self.get(key)
        self.wakeups.announce(key, is_claimable=record is not None and leases.is_free(self.rules, record))

    def _retain(self, key: str, now: int) -> None:
        """Bound those that have ended, by number and by time."""
        row, rows = self._document.rows[key], self._document.rows
        if self.rules.state(row.record) not in self.rules.lifecycle.terminal:
            return
        self._document.ends += 1
        row.ended, row.forgotten_at = self._document.ends, creation.forgotten_at(self.rules, now)
        ended = sorted((each.ended, name) for name, each in rows.items() if each.ended is not None)
        for _, name in ended[: -self._max_terminal] if self._max_terminal else ():
            self.drop(name)

    def forget(self, now: int) -> None:
        for key, row in [*self._document.rows.items()]:
            if row.forgotten_at is not None and row.forgotten_at <= now:
                self.drop(key)

    def deletable(self) -> list[tuple[str, Any]]:
        state, deletable = self.rules.state, self.rules.lifecycle.deletable
        return [(key, record) for key, record in self.iterate_rows() if state(record) in deletable]

    def find_unique(self, record: Any, now: int) -> Any | None:
        for name, value in creation.unique_values(self.rules, record).items():
            for row in self._document.rows.values():
                until = row.unique_until.get(name, 0)
                if getattr(row.record, name) == value and (until is None or until > now):
                    return row.record
        return None

    # The ceiling.

    @property
    def ceiling_count(self) -> int:
        return sum(self.is_under_ceiling(record) for _, record in self.iterate_rows())

    def is_under_ceiling(self, record: Any | None) -> bool:
        ceiling = self.rules.lifecycle.ceiling
        if ceiling is None or record is None:
            return False
        return leases.is_in_index(self.rules, self.rules.indexes[ceiling.index], record)

    # History.

    def write_history(self, key: str, edge: Transition | None, actor: str, now: int, *more: Any) -> None:
        entries = self._document.rows[key].history
        source, target = (edge.source, edge.target) if edge else (None, self.rules.state(self.records[key]))
        at, name = EPOCH + timedelta(microseconds=now), edge.name if edge else ""
        entries.append(HistoryEntry(len(entries) + 1, name, source, target, actor, at, *more))
        self._is_changed = True

    def read_history(self, key: str, creation: str) -> list[HistoryEntry]:
        row = self._document.rows.get(key)
        return [each._replace(edge=each.edge or creation) for each in row.history] if row else []

    # The listing.

    def iterate(
        self,
        states: Collection[int],
        offset: int,
        *,
        newest_first: bool,
        span: ListingSpan,
        equal: Mapping[str, object],
    ) -> Iterator[tuple[int, str]]:
        del equal  # The step compares.
        sign = -1 if newest_first else 1
        behind = None if span.after is None else (sign * span.after[0], span.after[1])
        entries = sorted(
            (sign * at, key)
            for key, record in self.iterate_rows()
            if not states or self.rules.state(record) in states
            if (span.since or 0) <= (at := self._listed_at(record))
            if span.until is None or at < span.until
            if behind is None or (sign * at, key) > behind
        )
        return ((sign * at, key) for at, key in entries[offset:])

    def count(self, state: int, since: int | None = None) -> int:
        records = [record for _, record in self.iterate_rows() if self.rules.state(record) == state]
        return sum(since is None or self._listed_at(record) >= since for record in records)

    def oldest(self, state: int) -> int | None:
        records = [record for _, record in self.iterate_rows() if self.rules.state(record) == state]
        return min(map(self._listed_at, records), default=None)

    def _listed_at(self, record: Any) -> int:
        name = self.rules.lifecycle.listed_by
        return (self.rules.moment_at(record, name) or 0) if name else 0

    # Claims.

    def candidates(self, now: int, offered: frozenset[str] | None, paused: Collection[int]) -> Iterator[str]:
        del paused  # The step looks at them.
        rules = self.rules
        order = sorted(
            (leases.claim_rank(rules, record) or 0, leases.claim_age(rules, record), key)
            for key, record in self._free()
            if leases.free_at(rules, record) <= now and leases.is_able(leases.needs(rules, record), offered)
        )
        return (key for _, _, key in order)

    def sizes(self, now: int) -> dict[int, tuple[int, int]]:
        found: dict[int, tuple[int, int]] = {}
        for _, record in self._free():
            rank, age = leases.claim_rank(self.rules, record) or 0, leases.claim_age(self.rules, record)
            if leases.free_at(self.rules, record) <= now:
                count, oldest = found.get(rank, (0, age))
                found[rank] = (count + 1, min(oldest, age))
        return found

    def next_free(self) -> int | None:
        if self.rules.not_before is None:
            return None
        return min((leases.free_at(self.rules, record) for _, record in self._free()), default=None)

    def held_by(self, owner: str) -> set[str]:
        return {key for key, held in self._held() if held == owner}

    def held(self) -> list[str]:
        return sorted(key for key, _ in self._held())

    def _free(self) -> list[tuple[str, Any]]:
        return [(key, record) for key, record in self.iterate_rows() if leases.is_free(self.rules, record)]

    def _held(self) -> list[tuple[str, str]]:
        lease, state = self.rules.lease, self.rules.state
        held = [each for each in self.iterate_rows() if lease and state(each[1]) == lease.state]
        return [(key, getattr(record, lease.owner) or "") for key, record in held if lease]

    @property
    def paused(self) -> frozenset[int]:
        return frozenset(self._document.paused)

    def pause(self, value: int) -> None:
        self._document.paused, self._is_changed = sorted(self.paused | {value}), True

    def resume(self, value: int) -> None:
        self._document.paused, self._is_changed = sorted(self.paused - {value}), True
        self.wakeups.announce_work()


class DueRows:
    """The rows that one clock is about."""

    def __init__(self, table: JsonTable, clock: Clock) -> None:
        self._table, self._clock = table, clock

    def due(self, now: int, most: int) -> list[str]:
        rules, clock = self._table.rules, self._clock
        times = sorted(
            (at, key)
            for key, record in self._table.iterate_rows()
            if clocks.applies_by_clock(rules, clock, record)
            if (at := clocks.due_at(rules, clock.due, record)) is not None and at < now
        )
        return [key for _, key in times[:most]]
