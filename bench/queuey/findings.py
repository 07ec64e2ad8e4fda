"""Findings of a run, as they are stored in `bench/results`."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from bench.designs.results import ResultRecord


class RatioGoal(ResultRecord):
    """Goal of a ratio."""

    at_least: float


class Comparison(ResultRecord):
    """Two sides that were measured in turns, in several rounds."""

    title: str
    first: str
    second: str
    first_per_s: Sequence[float]
    second_per_s: Sequence[float]
    first_cpu_us: float
    """CPU time of the server for each request or pair of requests."""
    second_cpu_us: float
    first_p50_ms: float
    second_p50_ms: float
    goal: RatioGoal

    @property
    def ratios(self) -> list[float]:
        """The rate of the second over that of the first, of each round."""
        return [right / left for left, right in zip(self.first_per_s, self.second_per_s, strict=True)]

    @property
    def ratio(self) -> float:
        """The median of the ratios."""
        return statistics.median(self.ratios)

    @property
    def is_met(self) -> bool:
        return self.ratio >= self.goal.at_least


class QueueyFindings(ResultRecord):
    """Findings of one run."""

    stamp: str
    commit: str
    quick: bool
    machine: Mapping[str, Any]
    comparisons: Mapping[str, Comparison]
    figures: Mapping[str, float]

    @property
    def missed(self) -> list[str]:
        """The comparisons whose goal was not met."""
        return [each.title for each in self.comparisons.values() if not each.is_met]
