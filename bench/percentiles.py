"""Histograms of times and their percentiles by nearest rank.

Times are kept in microseconds to three digits, which HDR histograms do in constant space.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from hdrh.histogram import HdrHistogram
from pydantic import BaseModel, ConfigDict

_LONGEST_US = 600_000_000
_DIGITS = 3


class Times:
    """A histogram that can be sent to another process and added to others."""

    def __init__(self, encoded: Iterable[str] = ()) -> None:
        self._histogram = HdrHistogram(1, _LONGEST_US, _DIGITS)
        for each in encoded:
            self._histogram.decode_and_add(each)

    def record(self, seconds: float) -> None:
        """Adds a time. What is longer than ten minutes counts as ten minutes."""
        self._histogram.record_value(min(max(round(seconds * 1e6), 1), _LONGEST_US))

    def add(self, other: Times) -> None:
        """Adds all times of another."""
        self._histogram.add(other._histogram)

    @property
    def count(self) -> int:
        return int(self._histogram.get_total_count())

    def encode(self) -> str:
        """Text that `Times([text])` reads again."""
        return str(self._histogram.encode().decode())

    def take(self) -> str:
        """The text, and nothing left behind."""
        text = self.encode()
        self._histogram.reset()
        return text

    def ranks(self, percents: Sequence[float]) -> list[float]:
        """Milliseconds by nearest rank: the least time that so many percent of all are not longer than.

        The histogram's own percentiles round the rank, where nearest rank goes up.
        """
        wanted = [max(1, math.ceil(each / 100 * self.count)) for each in percents]
        found = dict.fromkeys(wanted, 0.0)
        left = sorted(found)
        for row in self._histogram.get_recorded_iterator() if left and self.count else ():
            while left and row.total_count_to_this_value >= left[0]:
                found[left.pop(0)] = row.value_iterated_to / 1000
            if not left:
                break
        return [found[rank] for rank in wanted]

    def distribution(self) -> list[tuple[float, float]]:
        """Points (milliseconds, share of all that took no longer)."""
        if not self.count:
            return []
        return [
            (row.value_iterated_to / 1000, row.total_count_to_this_value / self.count)
            for row in self._histogram.get_recorded_iterator()
        ]

    def summary(self) -> Summary:
        """What is told of it."""
        p50, p95, p99, longest = self.ranks((50, 95, 99, 100))
        mean = self._histogram.get_mean_value() / 1000 if self.count else 0.0
        return Summary(
            count=self.count,
            mean_ms=round(mean, 3),
            p50_ms=p50,
            p95_ms=p95,
            p99_ms=p99,
            max_ms=longest,
        )


class Summary(BaseModel):
    """A distribution of times in a few numbers, in milliseconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    count: int
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
