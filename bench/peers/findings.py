"""Findings of a comparison with peers, as they are stored in `bench/results`."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from bench.designs.results import ResultRecord
from bench.percentiles import LatencyHistogram, Summary

Table = Literal["empty", "aged", "shallow", "deep"]
"""The other content of a queue: nothing or finished jobs, nothing or jobs that no worker claims."""
Measure = Literal["single-1", "single-16", "bulk", "drain"]


class JobRate(ResultRecord):
    """A rate per second, and the CPU time of all processes for each job."""

    per_s: float
    cpu_us: float
    count: int


class Pickup(ResultRecord):
    """Pickup latency: the times from submit to start."""

    waited: Summary
    histogram: str


class MedianRate(ResultRecord):
    """The median rate of several rounds."""

    per_s: float
    least: float
    most: float
    cpu_us: float
    rounds: tuple[JobRate, ...]

    @classmethod
    def from_rounds(cls, rates: Sequence[JobRate]) -> MedianRate:
        return cls(
            per_s=round(statistics.median(each.per_s for each in rates), 1),
            least=min(each.per_s for each in rates),
            most=max(each.per_s for each in rates),
            cpu_us=round(statistics.median(each.cpu_us for each in rates), 1),
            rounds=tuple(rates),
        )


class HalfFindings(ResultRecord):
    """The measurements with one kind of table."""

    rates: Mapping[Measure, Mapping[str, MedianRate]]
    pickups: Mapping[str, Pickup]


class PeerGoal(ResultRecord):
    """A goal of the comparison, for a ratio or a number; met if `value` is beyond `bar`."""

    name: str
    table: Table
    ours: str
    theirs: str
    value: float
    bar: float
    less: bool = False
    """Whether less is better."""
    equal: bool = False
    """Whether the bar itself is enough."""

    @property
    def is_met(self) -> bool:
        if self.equal and self.value == self.bar:
            return True
        return self.value < self.bar if self.less else self.value > self.bar

    @property
    def bar_text(self) -> str:
        """The condition of the bar as text."""
        return f"{'<' if self.less else '>'}{'=' if self.equal else ''} {self.bar:g}"


class RunSizes(ResultRecord):
    """Numbers of jobs and rounds of a run."""

    rounds: int
    single: int
    """Submits one at a time."""
    crowded: int
    """Submits with 16 in flight."""
    bulk: int
    drain: int
    drain_at_most_s: float
    pickups: int
    aged: int
    """Other jobs in the queue in the second half."""
    turns: int = 1
    """How often a round repeats a short measurement of close contestants."""

    def with_sizes(self, **given: int | None) -> RunSizes:
        """Copy with other sizes; those that are None do not change anything."""
        return self.model_copy(update={name: each for name, each in given.items() if each is not None})


class PeerFindings(ResultRecord):
    """Findings of one invocation."""

    system: str = "orchestrator"
    """Which of our systems is compared."""

    stamp: str
    command: str
    commit: str
    quick: bool
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    sizes: RunSizes
    halves: Mapping[Table, HalfFindings]
    guards: Mapping[str, MedianRate] = {}
    """Our drain with all guards, and without one guard each, where that was measured."""
    goals: tuple[PeerGoal, ...]

    @property
    def missed(self) -> list[PeerGoal]:
        return [each for each in self.goals if not each.is_met]


def merge_pickups(pickups: Sequence[Pickup]) -> Pickup:
    """Merge the pickups of several rounds."""
    times = LatencyHistogram(each.histogram for each in pickups)
    return Pickup(waited=times.summarize(), histogram=times.encode())
