"""Those that a clock will find due, by their times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sortedcontainers import SortedList

from runtime.stores.semantics.clocks import applies_by_clock, due_at
from runtime.stores.semantics.rules import Clock, Rules


class DueIndex:
    """The entities that one clock is about, longest overdue first."""

    def __init__(self, rules: Rules, clock: Clock) -> None:
        self._rules = rules
        self._clock = clock
        self._entries: SortedList[tuple[int, str]] = SortedList()
        self._placed: dict[str, tuple[int, str]] = {}

    def replace(self, key: str, new: Any | None) -> None:
        """Follow a change of an entity."""
        entry = None
        if new is not None and applies_by_clock(self._rules, self._clock, new):
            at = due_at(self._rules, self._clock.due, new)
            entry = None if at is None else (at, key)
        placed = self._placed.get(key)
        if placed == entry:
            return
        if placed is not None:
            self._entries.remove(placed)
            del self._placed[key]
        if entry is not None:
            self._entries.add(entry)
            self._placed[key] = entry

    def due(self, now: int, most: int) -> list[str]:
        """Return the keys of those that are due, at most so many."""
        found = []
        for at, key in self._head(most):
            if at >= now:
                break
            found.append(key)
        return found

    def _head(self, most: int) -> Iterator[tuple[int, str]]:
        return iter(self._entries.islice(0, most))
