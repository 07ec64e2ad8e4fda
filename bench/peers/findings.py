"""What a run of a comparison finds, as it is written to `bench/results`."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from bench.designs.results import ResultRecord
from bench.percentiles import LatencyHistogram, Summary

Table = Literal["empty", "aged", "shallow", "deep"]
"""What the contestants carry along: nothing or finished jobs, nothing or jobs that wait and are not taken."""
Measure = Literal["single-1", "single-16", "bulk", "drain"]


class Rate(ResultRecord):
    """Something that was done so many times a second, and what it cost in all processes together."""

    per_s: float
    cpu_us: float
    count: int


class Pickup(ResultRecord):
    """Times from submit to start."""

    waited: Summary
    histogram: str


class Middle(ResultRecord):
    """A rate from several rounds."""

    per_s: float
    least: float
    most: float
    cpu_us: float
    rounds: tuple[Rate, ...]

    @classmethod
    def of(cls, rates: Sequence[Rate]) -> Middle:
        return cls(
            per_s=round(statistics.median(each.per_s for each in rates), 1),
            least=min(each.per_s for each in rates),
            most=max(each.per_s for each in rates),
            cpu_us=round(statistics.median(each.cpu_us for each in rates), 1),
            rounds=tuple(rates),
        )


class Half(ResultRecord):
    """Everything that was measured with one kind of table."""

    rates: Mapping[Measure, Mapping[str, Middle]]
    pickups: Mapping[str, Pickup]


class Goal(ResultRecord):
    """A goal of the comparison: of two numbers, or of one and a bound. Met if `value` is beyond `bar`."""

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
    def met(self) -> bool:
        if self.equal and self.value == self.bar:
            return True
        return self.value < self.bar if self.less else self.value > self.bar

    @property
    def told(self) -> str:
        """The bar as text."""
        return f"{'<' if self.less else '>'}{'=' if self.equal else ''} {self.bar:g}"


class Sizes(ResultRecord):
    """How much was measured."""

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
    """Jobs that are carried along in the second half."""
    turns: int = 1
    """How often a round measures what is so short, and so close, that once says little."""

    def but(self, **given: int | None) -> Sizes:
        """The same but for what is given."""
        return self.model_copy(update={name: each for name, each in given.items() if each is not None})


class Findings(ResultRecord):
    """One invocation."""

    system: str = "orchestrator"
    """Which of our systems is compared."""

    stamp: str
    command: str
    commit: str
    quick: bool
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    sizes: Sizes
    halves: Mapping[Table, Half]
    guards: Mapping[str, Middle] = {}
    """Our drain as it is, and without one guard each, where that was measured."""
    goals: tuple[Goal, ...]

    @property
    def missed(self) -> list[Goal]:
        return [each for each in self.goals if not each.met]


def together(pickups: Sequence[Pickup]) -> Pickup:
    """The pickups of several rounds as one."""
    times = LatencyHistogram(each.histogram for each in pickups)
    return Pickup(waited=times.summarize(), histogram=times.encode())
