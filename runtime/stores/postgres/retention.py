"""Retention: when to look again for what has ended long enough ago, or before the last so many."""

from __future__ import annotations

from msgspec import Struct


class Retention(Struct):
    """The bounds of what is kept that has ended, and the time of the last look at it.

    Whatever ends after a look is due so many seconds later at the earliest, whichever process ends it. So
    there is nothing to look for before the first that was there is due, or the first that came since.
    """

    seconds: float | None
    most: int
    """How many are kept; 0 for any number. A hundredth more may be there between two looks."""
    _looked_ms: int | None = None
    _next_ms: float = 0.0
    _accesses: int = 0

    @property
    def is_bounded(self) -> bool:
        """Whether anything is ever forgotten."""
        return self.seconds is not None or self.most > 0

    def is_due(self, now_ms: int) -> bool:
        """Note an access; return whether it has to look."""
        self._accesses += 1
        if self._looked_ms is None or now_ms < self._looked_ms:
            return self.is_bounded  # The clock was put back: what ends now is due earlier than was thought.
        is_many = self.most > 0 and self._accesses > self.most // 100
        return is_many or (self.seconds is not None and now_ms >= self._next_ms)

    def looked(self, at_ms: int, left_s: float | None) -> None:
        """Note a look, and the seconds that the first entity has left then; None if there is none."""
        self._looked_ms, self._accesses = at_ms, 0
        if self.seconds is not None:
            left_s = self.seconds if left_s is None else min(left_s, self.seconds)
            self._next_ms = at_ms + left_s * 1000
