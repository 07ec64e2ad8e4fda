"""What a run finds, as it is written to `bench/results`."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from bench.designs.results import ResultRecord


class Goal(ResultRecord):
    """What a ratio should be."""

    at_least: float


class Compared(ResultRecord):
    """Two things that were measured in turns, so many times each."""

    title: str
    first: str
    second: str
    first_per_s: Sequence[float]
    second_per_s: Sequence[float]
    first_cpu_us: float
    """Of the server, for each of what was done."""
    second_cpu_us: float
    first_p50_ms: float
    second_p50_ms: float
    goal: Goal

    @property
    def ratios(self) -> list[float]:
        """The second over the first, of each round."""
        return [right / left for left, right in zip(self.first_per_s, self.second_per_s, strict=True)]

    @property
    def ratio(self) -> float:
        """The middle of them."""
        return statistics.median(self.ratios)

    @property
    def met(self) -> bool:
        return self.ratio >= self.goal.at_least


class Findings(ResultRecord):
    """One run."""

    stamp: str
    commit: str
    quick: bool
    machine: Mapping[str, Any]
    comparisons: Mapping[str, Compared]
    figures: Mapping[str, float]

    @property
    def missed(self) -> list[str]:
        """The comparisons whose goal was not met."""
        return [each.title for each in self.comparisons.values() if not each.met]
