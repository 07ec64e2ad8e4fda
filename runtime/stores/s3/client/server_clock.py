"""The offset of a server's clock from ours, by the `Date` headers of its responses."""

from __future__ import annotations

from email.utils import parsedate_to_datetime


class ServerClock:
    """Bounds of the offset between two clocks.

    `Date` has whole seconds. Each response bounds the offset, and the bounds of many responses together are
    close to each other.
    """

    _KEEP_S = 60.0

    def __init__(self) -> None:
        self._bounds: tuple[float, float] | None = None
        self._since = 0.0

    @property
    def offset_s(self) -> float | None:
        return None if self._bounds is None else sum(self._bounds) / 2

    def observe(self, date: str, sent_at: float, received_at: float) -> None:
        """Narrow the bounds by the `Date` of one response, and when it was requested and received."""
        try:
            theirs = parsedate_to_datetime(date).timestamp()
        except (ValueError, TypeError):
            return
        low, high = theirs - received_at, theirs + 1 - sent_at
        if self._bounds is not None and abs(received_at - self._since) < self._KEEP_S:
            closer = max(low, self._bounds[0]), min(high, self._bounds[1])
            if closer[0] <= closer[1]:
                self._bounds = closer
                return
        # The first response, a clock that was set since, or bounds that are too old.
        self._bounds, self._since = (low, high), received_at
