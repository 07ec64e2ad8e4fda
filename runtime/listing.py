"""An ordered index by state: any page of any mix of states, without sorting.

Entries are ordered by a time and then by key, and the key ascends in both directions of time. A page costs
the logarithm of what is held plus the page itself.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from typing import Protocol

from sortedcontainers import SortedList

Entry = tuple[int, str]


class Listing:
    """Keys by state and time."""

    def __init__(self) -> None:
        self._by_state: dict[int, SortedList[Entry]] = {}

    def add(self, state: int, at: int, key: str) -> None:
        """Adds a key under a state."""
        self._by_state.setdefault(state, SortedList()).add((at, key))

    def move(self, source: int, target: int, at: int, key: str) -> None:
        """Puts a key under another state."""
        self.remove(source, at, key)
        self.add(target, at, key)

    def remove(self, state: int, at: int, key: str) -> None:
        """Takes a key out."""
        self._by_state[state].remove((at, key))

    def count(self, state: int) -> int:
        """How many keys a state has."""
        return len(self._by_state.get(state, ()))

    def oldest(self, state: int) -> int | None:
        """The least time under a state."""
        entries = self._by_state.get(state)
        return entries[0][0] if entries else None

    def page(
        self, states: Collection[int], offset: int, size: int, *, newest_first: bool
    ) -> tuple[list[str], bool]:
        """Keys of a part of the listing, and whether there is more after it; no states means all of them."""
        wanted = set(states) or set(self._by_state)
        lists = [self._by_state[state] for state in sorted(wanted) if self._by_state.get(state)]
        views: list[_View] = [_Descending(each) if newest_first else _Ascending(each) for each in lists]
        if offset >= sum(len(view) for view in views):
            return [], False
        starts = _starts(views, offset)
        merged = heapq.merge(*(_from(view, start) for view, start in zip(views, starts, strict=True)))
        found = [key for _, (_, key) in zip(range(size + 1), merged, strict=False)]
        return found[:size], len(found) > size


class _View(Protocol):
    """A list in the order of a listing."""

    def __len__(self) -> int: ...

    def __getitem__(self, position: int) -> Entry: ...


class _Ascending:
    def __init__(self, entries: SortedList[Entry]) -> None:
        self._entries = entries

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, position: int) -> Entry:
        return self._entries[position]


class _Descending:
    """The same list with the latest time first. Keys of equal time still ascend: it is no mere reversal."""

    def __init__(self, entries: SortedList[Entry]) -> None:
        self._entries = entries

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, position: int) -> Entry:
        total = len(self._entries)
        at = self._entries[total - 1 - position][0]
        first, behind = self._entries.bisect_left((at, "")), self._entries.bisect_left((at + 1, ""))
        found = self._entries[first + position - (total - behind)]
        return (-found[0], found[1])


def _from(view: _View, start: int) -> Iterator[Entry]:
    for position in range(start, len(view)):
        yield view[position]


def _starts(views: list[_View], offset: int) -> list[int]:
    """How many entries of each list belong to the first `offset` entries of all of them together.

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
