"""Retention: the schedule of sweeps for ended entities beyond their retention time or number."""

from __future__ import annotations

from msgspec import Struct


class Retention(Struct):
    """The bounds of ended entities, and the time of the last sweep.

    An entity that ends after a sweep is due so many seconds later at the earliest, whichever process ends it.
    So the next sweep is necessary when the first known entity is due, or the first that has ended since.
    """

    seconds: float | None
    most: int
    """Most ended entities; 0 for any number. There may be a hundredth more between two sweeps."""
    _swept_ms: int | None = None
    _next_ms: float = 0.0
    _accesses: int = 0

    @property
    def is_bounded(self) -> bool:
        """Whether ended entities are ever removed."""
        return self.seconds is not None or self.most > 0

    def is_due(self, now_ms: int) -> bool:
        """Note an access; return whether it has to sweep."""
        self._accesses += 1
        if self._swept_ms is None or now_ms < self._swept_ms:
            return self.is_bounded  # The clock was set back: entities that end now are due earlier.
        is_many = self.most > 0 and self._accesses > self.most // 100
        return is_many or (self.seconds is not None and now_ms >= self._next_ms)

    def note_sweep(self, at_ms: int, remaining_s: float | None) -> None:
        """Note a sweep, and the remaining seconds of the first ended entity; None if there is none."""
        self._swept_ms, self._accesses = at_ms, 0
        if self.seconds is not None:
            remaining_s = self.seconds if remaining_s is None else min(remaining_s, self.seconds)
            self._next_ms = at_ms + remaining_s * 1000
