"""The records of one kind of entity in memory, with everything that is ordered by them."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable
from datetime import timedelta
from operator import attrgetter
from typing import Any

from runtime.model.lifecycles import Transition
from runtime.stores.contract import HistoryEntry
from runtime.stores.memory.claim_index import ClaimIndex
from runtime.stores.memory.due_index import DueIndex
from runtime.stores.memory.listing import MemoryListing
from runtime.stores.semantics.creation import forgotten_at, unique_until, unique_values
from runtime.stores.semantics.leases import is_in_index
from runtime.stores.semantics.rules import EPOCH, Rules, to_moment
from runtime.stores.wakeups import Wakeups

MOST_HISTORY, MOST_OF_ONE = 100_000, 1000
"""Entries of the history of all entities, and of one; beyond that the oldest are forgotten."""
_Line = tuple[Any, ...]
"""An entry of the history: the edge, or the state of a new entity; actor, moment, and what else there is."""


class MemoryTable:
    """Records and indexes. Nothing here decides anything; every change is one call of a method."""

    def __init__(self, rules: Rules, now: int, *, max_terminal: int = 0) -> None:
        self.rules = rules
        self.opened = now
        self.paused: frozenset[int] = frozenset()
        self.records: dict[str, Any] = {}
        self.listing = MemoryListing()
        self.wakeups = Wakeups()
        self.claims = ClaimIndex(rules) if rules.lease else None
        self.dues: dict[int, DueIndex] = {
            clock.number: DueIndex(rules, clock) for clock in rules.clocks if clock.due.at is not None
        }
        self._max_terminal = max_terminal
        self._terminal = rules.lifecycle.terminal
        self._ended: OrderedDict[str, int | None] = OrderedDict()
        """Those that have ended, in that order, and when each is forgotten."""
        self._ending: list[tuple[int, str]] = []
        """A heap of those times; some entries are stale."""
        self._keeps_ended = bool(max_terminal) or rules.retained_s is not None
        self._unique: dict[tuple[str, Any], tuple[str, int | None]] = {}
        self._history: OrderedDict[str, tuple[_Line, ...]] = OrderedDict()
        """Tuples of plain values: the collector leaves them alone, and there are many."""
        self._history_size = 0
        self._forgotten: dict[str, int] = {}
        ceiling = rules.lifecycle.ceiling
        self._ceiling_index = rules.indexes[ceiling.index] if ceiling else None
        self.ceiling_count = 0
        self._is_indexed = bool(self.claims or self.dues or self._ceiling_index)
        listed_by = rules.lifecycle.listed_by
        self.listed_at = _listed_at(listed_by, is_instant=listed_by in rules.instants)

    # Changes.

    def add(self, key: str, record: Any, now: int) -> None:
        """Add a new entity."""
        rules = self.rules
        self.records[key] = record
        self.listing.add(rules.state(record), self.listed_at(record), key)
        if rules.unique:
            for name, value in unique_values(rules, record).items():
                self._unique[name, value] = (key, unique_until(rules, name, now))
        self._follow(key, None, record)
        self._retain(key, record, now)

    def put(self, key: str, old: Any, new: Any, now: int) -> None:
        """Replace the record of an entity."""
        state, listed_at = self.rules.state, self.listed_at
        self.records[key] = new
        source, target = state(old), state(new)
        self.listing.move(source, listed_at(old), target, listed_at(new), key)
        self._follow(key, old, new)
        if source != target and self._keeps_ended:
            self._retain(key, new, now)

    def drop(self, key: str) -> None:
        """Remove an entity, and all that is known of it."""
        record = self.records.pop(key)
        self.listing.remove(self.rules.state(record), self.listed_at(record), key)
        self._follow(key, record, None)
        self._ended.pop(key, None)
        self._history_size -= len(self._history.pop(key, ()))
        self._forgotten.pop(key, None)
        if self.rules.unique:
            for pair in unique_values(self.rules, record).items():
                if self._unique.get(pair, ("",))[0] == key:
                    del self._unique[pair]

    def pause(self, value: int) -> None:
        """Serve a value no more."""
        self.paused |= {value}

    def resume(self, value: int) -> None:
        """Serve a value again."""
        self.paused -= {value}
        self.wakeups.announce_work()

    def deletable(self) -> list[tuple[str, Any]]:
        """Return the keys and records of those whose state lets them be deleted."""
        state, deletable = self.rules.state, self.rules.lifecycle.deletable
        return [(key, record) for key, record in self.records.items() if state(record) in deletable]

    def find_unique(self, record: Any, now: int) -> Any | None:
        """Return the entity that has one of a record's unique values; None where nothing has."""
        for pair in unique_values(self.rules, record).items():
            found = self._unique.get(pair)
            if found is None:
                continue
            key, until = found
            if until is None or until > now:
                return self.records[key]
        return None

    def forget(self, now: int) -> None:
        """Drop those that have ended long enough ago."""
        ending = self._ending
        while ending and ending[0][0] <= now:
            until, key = heapq.heappop(ending)
            if self._ended.get(key) == until:
                self.drop(key)

    def is_under_ceiling(self, record: Any | None) -> bool:
        """Whether a record is in the index that has a ceiling."""
        index = self._ceiling_index
        return index is not None and record is not None and is_in_index(self.rules, index, record)

    def _follow(self, key: str, old: Any | None, new: Any | None) -> None:
        if not self._is_indexed:
            if self.wakeups.watched:
                self.wakeups.announce(key, is_claimable=False)
            return
        is_claimable = False
        if self.claims is not None:
            is_claimable = self.claims.replace(key, old, new)
        for due in self.dues.values():
            due.replace(key, new)
        if self._ceiling_index is not None:
            self.ceiling_count += self.is_under_ceiling(new) - self.is_under_ceiling(old)
        self.wakeups.announce(key, is_claimable=is_claimable)

    def _retain(self, key: str, record: Any, now: int) -> None:
        """Bound those that have ended, by number and by time."""
        if not self._keeps_ended or self.rules.state(record) not in self._terminal:
            return
        until = self._ended[key] = forgotten_at(self.rules, now)
        if until is not None:
            heapq.heappush(self._ending, (until, key))
        while self._max_terminal and len(self._ended) > self._max_terminal:
            self.drop(next(iter(self._ended)))

    # History.

    def write_history(self, key: str, edge: Transition | None, actor: str, now: int, *more: Any) -> None:
        """Add an entry: fence, owner, reason and trace may follow."""
        entries = (
            *self._history.get(key, ()),
            (edge or self.rules.state(self.records[key]), actor, now, *more),
        )
        if len(entries) > MOST_OF_ONE:
            self._forgotten[key] = self._forgotten.get(key, 0) + 1
            entries = entries[1:]
        else:
            self._history_size += 1
        self._history[key] = entries
        while self._history_size > MOST_HISTORY:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        key, entries = self._history.popitem(last=False)
        self._history_size -= len(entries)
        if self.rules.state(self.records[key]) in self._terminal:
            self._forgotten.pop(key, None)
        else:  # More will follow, and has to be numbered.
            self._forgotten[key] = self._forgotten.get(key, 0) + len(entries)

    def read_history(self, key: str, creation: str) -> list[HistoryEntry]:
        """Return the entries of an entity."""
        start = self._forgotten.get(key, 0) + 1
        found = []
        for sequence, (edge, actor, at, *more) in enumerate(self._history.get(key, ()), start):
            is_first = isinstance(edge, int)
            name = creation if is_first else edge.name
            source, target = (None, edge) if is_first else (edge.source, edge.target)
            moment = EPOCH + timedelta(microseconds=at)
            found.append(HistoryEntry(sequence, name, source, target, actor, moment, *more))
        return found


def _listed_at(name: str | None, *, is_instant: bool) -> Callable[[Any], int]:
    """Return the function for the time by which a record is listed."""
    if name is None:
        return lambda _: 0
    field = attrgetter(name)
    if is_instant:
        return lambda record: to_moment(field(record)) or 0
    return lambda record: (field(record) or 0) * 1000
