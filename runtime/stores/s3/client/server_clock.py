"""How far the clock of a server is ahead of ours, from the `Date` of its answers."""

from __future__ import annotations

from email.utils import parsedate_to_datetime


class ServerClock:
    """Bounds of the distance between two clocks.

    `Date` has whole seconds. Each answer says between which bounds the distance is, and those of many answers
    together are close to each other.
    """

    _KEEP_S = 60.0

    def __init__(self) -> None:
        self._bounds: tuple[float, float] | None = None
        self._since = 0.0

    @property
    def offset_s(self) -> float | None:
        return None if self._bounds is None else sum(self._bounds) / 2

    def heard(self, date: str, asked_at: float, answered_at: float) -> None:
        """One answer: when it was asked for and when it was there by our clock."""
        try:
            theirs = parsedate_to_datetime(date).timestamp()
        except (ValueError, TypeError):
            return
        low, high = theirs - answered_at, theirs + 1 - asked_at
        if self._bounds is not None and abs(answered_at - self._since) < self._KEEP_S:
            closer = max(low, self._bounds[0]), min(high, self._bounds[1])
            if closer[0] <= closer[1]:
                self._bounds = closer
                return
        # The first answer, a clock that was set since, or bounds that are too old.
        self._bounds, self._since = (low, high), answered_at
