"""An ordered index by state: any page of any mix of states, without sorting.

Entries are ordered by a time and then by key, and the key ascends in both directions of time. A page costs
the logarithm of what is held plus the page itself.

A change is only noted at first. An entity passes through several states within moments, and in the order it
need only be moved from where it was when somebody last looked to where it is now.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from typing import Protocol

from sortedcontainers import SortedList

Entry = tuple[int, str]

_NOWHERE = None
_MOST_NOTED = 512
"""Changes that are noted at most, so that whoever looks never waits for many of them."""


class Listing:
    """Keys by state and time."""

    def __init__(self) -> None:
        self._by_state: dict[int, SortedList[Entry]] = {}
        self._counts: dict[int, int] = {}
        self._noted: dict[str, tuple[int | None, int | None, int]] = {}
        """By key: the state under which it is ordered, the state that it has, and its time."""

    def add(self, state: int, at: int, key: str) -> None:
        """Adds a key under a state."""
        self._counts[state] = self._counts.get(state, 0) + 1
        self._note(_NOWHERE, state, at, key)

    def move(self, source: int, target: int, at: int, key: str) -> None:
        """Puts a key under another state."""
        counts = self._counts
        counts[source] -= 1
        counts[target] = counts.get(target, 0) + 1
        self._note(source, target, at, key)

    def remove(self, state: int, at: int, key: str) -> None:
        """Takes a key out."""
        self._counts[state] -= 1
        self._note(state, _NOWHERE, at, key)

    def count(self, state: int) -> int:
        """How many keys a state has."""
        return self._counts.get(state, 0)

    def oldest(self, state: int) -> int | None:
        """The least time under a state. It changes nothing, as another thread may ask."""
        noted = dict(self._noted)
        times = [at for _, target, at in noted.values() if target == state]
        for at, key in self._by_state.get(state, ()):
            if key not in noted:
                times.append(at)
                break
        return min(times, default=None)

    def page(
        self, states: Collection[int], offset: int, size: int, *, newest_first: bool
    ) -> tuple[list[str], bool]:
        """Keys of a part of the listing, and whether there is more after it; no states means all of them."""
        self._settle()
        wanted = set(states) or set(self._by_state)
        lists = [self._by_state[state] for state in sorted(wanted) if self._by_state.get(state)]
        views: list[_View] = [_Descending(each) if newest_first else _Ascending(each) for each in lists]
        if offset >= sum(len(view) for view in views):
            return [], False
        starts = _starts(views, offset)
        merged = heapq.merge(*(_from(view, start) for view, start in zip(views, starts, strict=True)))
        found = [key for _, (_, key) in zip(range(size + 1), merged, strict=False)]
        return found[:size], len(found) > size

    def _note(self, source: int | None, target: int | None, at: int, key: str) -> None:
        noted = self._noted
        earlier = noted.get(key)
        noted[key] = (source if earlier is None else earlier[0], target, at)
        if len(noted) >= _MOST_NOTED:
            self._settle()

    def _settle(self) -> None:
        """Puts everything that has been noted in its place."""
        come: dict[int, list[Entry]] = {}
        for key, (source, target, at) in self._noted.items():
            if source == target:
                continue
            if source is not None:
                self._by_state[source].remove((at, key))
            if target is not None:
                come.setdefault(target, []).append((at, key))
        for state, entries in come.items():
            if state not in self._by_state:
                self._by_state[state] = SortedList()
            self._by_state[state].update(entries)
        self._noted.clear()


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
