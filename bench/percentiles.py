"""Latency histograms, and their percentiles by nearest rank.

Times are stored in microseconds to three digits, which HDR histograms do in constant space.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from hdrh.histogram import HdrHistogram
from pydantic import BaseModel, ConfigDict

_LONGEST_US = 600_000_000
_DIGITS = 3


class LatencyHistogram:
    """A histogram of times that can be sent to another process and added to others."""

    def __init__(self, encoded: Iterable[str] = ()) -> None:
        self._histogram = HdrHistogram(1, _LONGEST_US, _DIGITS)
        for each in encoded:
            self._histogram.decode_and_add(each)

    def record(self, seconds: float) -> None:
        """Add a time; one of more than ten minutes counts as ten minutes."""
        self._histogram.record_value(min(max(round(seconds * 1e6), 1), _LONGEST_US))

    def add(self, other: LatencyHistogram) -> None:
        """Add all times of another histogram."""
        self._histogram.add(other._histogram)

    @property
    def count(self) -> int:
        return int(self._histogram.get_total_count())

    def encode(self) -> str:
        """Encode as text that `LatencyHistogram([text])` decodes."""
        return str(self._histogram.encode().decode())

    def encode_and_reset(self) -> str:
        """Encode as text, and remove all times."""
        text = self.encode()
        self._histogram.reset()
        return text

    def percentiles(self, percents: Sequence[float]) -> list[float]:
        """Compute percentiles in milliseconds by nearest rank: the least time that covers that many percent.

        The histogram's own percentiles round the rank, where nearest rank goes up.
        """
        return _compute_percentiles(self._list_buckets(), self.count, percents)

    def to_distribution(self) -> list[tuple[float, float]]:
        """Convert to points of the cumulative distribution: (milliseconds, fraction that took no longer)."""
        points, passed = [], 0
        for milliseconds, count in self._list_buckets():
            passed += count
            points.append((milliseconds, passed / self.count))
        return points

    def summarize(self) -> Summary:
        """Summarize as the few numbers that reports show."""
        buckets = self._list_buckets()
        p50, p95, p99, longest = _compute_percentiles(buckets, self.count, (50, 95, 99, 100))
        total = sum(milliseconds * count for milliseconds, count in buckets)
        return Summary(
            count=self.count,
            mean_ms=round(total / self.count, 3) if self.count else 0.0,
            p50_ms=p50,
            p95_ms=p95,
            p99_ms=p99,
            max_ms=longest,
        )

    def _list_buckets(self) -> list[tuple[float, int]]:
        """List (milliseconds, count) of every bucket with times; the library's own iterator is slow."""
        histogram = self._histogram
        return [
            (histogram.get_highest_equivalent_value(histogram.get_value_from_index(index)) / 1000, count)
            for index, count in enumerate(histogram.counts[:])
            if count
        ]


class Summary(BaseModel):
    """A distribution of times in a few numbers, in milliseconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    count: int
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


def _compute_percentiles(
    buckets: Sequence[tuple[float, int]], count: int, percents: Sequence[float]
) -> list[float]:
    wanted = [max(1, math.ceil(each / 100 * count)) for each in percents]
    found, left, passed = dict.fromkeys(wanted, 0.0), sorted(set(wanted)), 0
    for milliseconds, times in buckets:
        passed += times
        while left and passed >= left[0]:
            found[left.pop(0)] = milliseconds
    return [found[rank] for rank in wanted]
