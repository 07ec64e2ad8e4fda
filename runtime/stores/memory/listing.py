"""An ordered index by state: any page of any mix of states, without sorting.

Entries are ordered by a time and then by key, and the key ascends in both directions of time. A page costs
the logarithm of what is held plus the page itself.

A change is only noted at first. An entity passes through several states within moments, and in the order it
need only be moved from where it was at the last look to where it is now.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from sortedcontainers import SortedList

from runtime.stores.contract import NOTHING
from runtime.stores.steps.table import EVERYTHING, ListingSpan

Entry = tuple[int, str]
_NOWHERE = None
_MOST_NOTED = 512
"""Changes that are noted at most, so that a look never has to place many of them."""


class MemoryListing:
    """Keys by state and time."""

    def __init__(self) -> None:
        self._by_state: dict[int, SortedList[Entry]] = {}
        self._counts: dict[int, int] = {}
        self._noted: dict[str, tuple[int | None, int, int | None, int]] = {}
        """By key: the state and time under which it is ordered, and those that it has."""

    def add(self, state: int, at: int, key: str) -> None:
        """Add a key under a state."""
        self._counts[state] = self._counts.get(state, 0) + 1
        self._note(key, _NOWHERE, 0, state, at)

    def move(self, source: int, source_at: int, target: int, at: int, key: str) -> None:
        """Put a key under another state, or another time."""
        if source != target:
            counts = self._counts
            counts[source] -= 1
            counts[target] = counts.get(target, 0) + 1
        self._note(key, source, source_at, target, at)

    def remove(self, state: int, at: int, key: str) -> None:
        """Remove a key."""
        self._counts[state] -= 1
        self._note(key, state, at, _NOWHERE, 0)

    def count(self, state: int, since: int | None = None) -> int:
        """Return how many keys a state has, or has from a time on."""
        if since is None:
            return self._counts.get(state, 0)
        self._place()
        entries = self._by_state.get(state)
        return len(entries) - entries.bisect_left((since, "")) if entries else 0

    def oldest(self, state: int) -> int | None:
        """Return the least time under a state. It changes nothing, as another thread may ask."""
        noted = dict(self._noted)
        times = [at for _, _, target, at in noted.values() if target == state]
        for at, key in self._by_state.get(state, ()):
            if key not in noted:
                times.append(at)
                break
        return min(times, default=None)

    def iterate(
        self,
        states: Collection[int],
        offset: int,
        *,
        newest_first: bool,
        span: ListingSpan = EVERYTHING,
        equal: Mapping[str, object] = NOTHING,
    ) -> Iterator[Entry]:
        """Iterate over a part of the listing, behind an offset; no states means all of them."""
        del equal  # Whoever asks compares the records.
        self._place()
        wanted = set(states) or set(self._by_state)
        lists = [self._by_state[state] for state in sorted(wanted) if self._by_state.get(state)]
        views: list[_View] = [
            _Descending(each, span) if newest_first else _Ascending(each, span) for each in lists
        ]
        if offset >= sum(len(view) for view in views):
            return iter(())
        starts = _starts(views, offset)
        merged = heapq.merge(*(_from(view, start) for view, start in zip(views, starts, strict=True)))
        return ((-at, key) for at, key in merged) if newest_first else merged

    def _note(self, key: str, source: int | None, source_at: int, target: int | None, at: int) -> None:
        noted = self._noted
        earlier = noted.get(key)
        if earlier is not None:
            source, source_at, _, _ = earlier
        noted[key] = (source, source_at, target, at)
        if len(noted) >= _MOST_NOTED:
            self._place()

    def _place(self) -> None:
        """Put all that has been noted in its place."""
        added: dict[int, list[Entry]] = {}
        for key, (source, source_at, target, at) in self._noted.items():
            if source == target and source_at == at:
                continue
            if source is not None:
                self._by_state[source].remove((source_at, key))
            if target is not None:
                added.setdefault(target, []).append((at, key))
        for state, entries in added.items():
            if state not in self._by_state:
                self._by_state[state] = SortedList()
            self._by_state[state].update(entries)
        self._noted.clear()


class _View(Protocol):
    """A part of a list in the order of a listing."""

    def __len__(self) -> int: ...

    def __getitem__(self, position: int) -> Entry: ...


class _Ascending:
    def __init__(self, entries: SortedList[Entry], span: ListingSpan) -> None:
        self._entries = entries
        self._start = 0 if span.since is None else entries.bisect_left((span.since, ""))
        if span.after is not None:
            self._start = max(self._start, entries.bisect_right(span.after))
        self._end = len(entries) if span.until is None else entries.bisect_left((span.until, ""))

    def __len__(self) -> int:
        return max(0, self._end - self._start)

    def __getitem__(self, position: int) -> Entry:
        return self._entries[self._start + position]


class _Descending:
    """The same list with the latest time first. Keys of equal time still ascend: it is no mere reversal."""

    def __init__(self, entries: SortedList[Entry], span: ListingSpan) -> None:
        self._entries = entries
        total = len(entries)
        self._start = 0 if span.until is None else total - entries.bisect_left((span.until, ""))
        if span.after is not None:
            at, _ = span.after
            later = total - entries.bisect_left((at + 1, ""))
            before = entries.bisect_right(span.after) - entries.bisect_left((at, ""))
            self._start = max(self._start, later + before)
        self._end = total if span.since is None else total - entries.bisect_left((span.since, ""))

    def __len__(self) -> int:
        return max(0, self._end - self._start)

    def __getitem__(self, position: int) -> Entry:
        position += self._start
        total = len(self._entries)
        at = self._entries[total - 1 - position][0]
        first, behind = self._entries.bisect_left((at, "")), self._entries.bisect_left((at + 1, ""))
        found = self._entries[first + position - (total - behind)]
        return (-found[0], found[1])


def _from(view: _View, start: int) -> Iterator[Entry]:
    for position in range(start, len(view)):
        yield view[position]


def _starts(views: list[_View], offset: int) -> list[int]:
    """Return how many entries of each list belong to the first `offset` entries of all of them together.

    Of as many steps ahead in each list as could still all be needed, the list whose entry there is the least
    can go that far: nothing of what it passes can belong behind the offset.
    """
    starts = [0] * len(views)
    left = offset
    while left:
        open_lists = [number for number, view in enumerate(views) if starts[number] < len(view)]
        step = max(1, left // len(open_lists))
        ahead = {number: min(step, len(views[number]) - starts[number]) for number in open_lists}
        least = min(open_lists, key=lambda number: views[number][starts[number] + ahead[number] - 1])
        starts[least] += ahead[least]
        left -= ahead[least]
    return starts
