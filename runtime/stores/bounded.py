"""A map that forgets its oldest entries when it holds too much."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class BoundedMap(Generic[Value]):
    """Entries in the order of their first insertion; reading one does not make it younger.

    `weigh` says how much an entry counts; a bound of 0 keeps everything.
    """

    def __init__(self, bound: int, weigh: Callable[[Value], int] = lambda _: 1) -> None:
        self._bound = bound
        self._weigh = weigh
        # A plain dict finds its oldest entry ever more slowly when entries leave at the front.
        self._held: OrderedDict[str, Value] = OrderedDict()
        self._weight = 0

    def __len__(self) -> int:
        return len(self._held)

    @property
    def weight(self) -> int:
        """What all entries count together."""
        return self._weight

    def get(self, key: str) -> Value | None:
        """The entry of a key, if it is still known."""
        return self._held.get(key)

    def add(self, key: str, value: Value) -> None:
        """Adds an entry that is not there yet; beyond the bound the oldest are forgotten, never this one."""
        if key in self._held:
            raise KeyError(f"{key} is held already")
        self._held[key] = value
        self._weight += self._weigh(value)
        while self._bound and self._weight > self._bound and len(self._held) > 1:
            self.remove(next(iter(self._held)))

    def remove(self, key: str) -> None:
        """Forgets a key; one that is not held is no matter."""
        value = self._held.pop(key, None)
        if value is not None:
            self._weight -= self._weigh(value)
