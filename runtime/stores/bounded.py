"""Bounded map: the oldest entries are evicted first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class BoundedMap(Generic[Value]):
    """A map that evicts in the order of insertion (FIFO); reading an entry does not make it younger.

    `weigh` returns the weight of an entry; a bound of 0 keeps everything.
    """

    def __init__(self, bound: int, weigh: Callable[[Value], int] = lambda _: 1) -> None:
        self._bound = bound
        self._weigh = weigh
        # A plain dict finds its oldest entry ever more slowly when entries are removed at the front.
        self._entries: OrderedDict[str, Value] = OrderedDict()
        self._weight = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def weight(self) -> int:
        """The total weight of all entries."""
        return self._weight

    def get(self, key: str) -> Value | None:
        """Return the entry of a key, if it has not been evicted."""
        return self._entries.get(key)

    def add(self, key: str, value: Value) -> None:
        """Add an entry with a new key; beyond the bound the oldest are evicted, never this one."""
        if key in self._entries:
            raise KeyError(f"{key} is held already")
        self._entries[key] = value
        self._weight += self._weigh(value)
        while self._bound and self._weight > self._bound and len(self._entries) > 1:
            self.remove(next(iter(self._entries)))

    def remove(self, key: str) -> None:
        """Remove a key; one that is not there is no error."""
        value = self._entries.pop(key, None)
        if value is not None:
            self._weight -= self._weigh(value)
