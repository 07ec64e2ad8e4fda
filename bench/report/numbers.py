"""Aggregates over the repeats of a step: medians of rates with their spread, times in one histogram."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.designs.results import DesignResult, StepResult
from bench.percentiles import LatencyHistogram, Summary
from bench.workload import RequestKind


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, least and most of several repeats."""

    middle: float
    least: float
    most: float

    @classmethod
    def from_values(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Level:
    """All repeats of one step at one level, of one design."""

    step: str
    level: float
    repeats: tuple[StepResult, ...]

    @property
    def title(self) -> str:
        return self.repeats[0].load.title

    @property
    def requests_per_s(self) -> Spread:
        return self._spread(lambda each: each.primary.per_s)

    @property
    def jobs_per_s(self) -> Spread:
        return self._spread(lambda each: each.jobs.done_per_s)

    @property
    def latency(self) -> Summary:
        return LatencyHistogram(each.primary.histogram for each in self.repeats).summarize()

    @property
    def end_to_end(self) -> LatencyHistogram:
        return LatencyHistogram(each.jobs.end_to_end_histogram for each in self.repeats)

    @property
    def observed(self) -> LatencyHistogram:
        return LatencyHistogram(each.jobs.observed_histogram for each in self.repeats)

    @property
    def listings(self) -> Summary | None:
        found = [each.secondary.histogram for each in self.repeats if each.secondary is not None]
        return LatencyHistogram(found).summarize() if found else None

    @property
    def listings_per_s(self) -> float:
        found = [each.secondary.per_s for each in self.repeats if each.secondary is not None]
        return statistics.median(found) if found else 0.0

    @property
    def failed(self) -> int:
        return sum(
            count
            for each in self.repeats
            for codes in each.primary.failed.values()
            for count in codes.values()
        )

    @property
    def backlog(self) -> float:
        """Fraction of the jobs submitted in the window that were not over at its end."""
        submitted = sum(each.jobs.submitted for each in self.repeats)
        return sum(each.jobs.backlog for each in self.repeats) / submitted if submitted else 0.0

    @property
    def client_share(self) -> float:
        return statistics.median(each.client_cpu_share for each in self.repeats)

    @property
    def others_share(self) -> float:
        """Fraction of the CPU time in the window that other processes used."""
        others = sum(each.other_cpu_s or 0.0 for each in self.repeats)
        ours = sum(each.client_cpu_s + sum(node.cpu_s for node in each.nodes) for each in self.repeats)
        return others / (others + ours) if others + ours else 0.0

    @property
    def memory_mb(self) -> float:
        """Memory of all nodes."""
        return statistics.median(sum(node.rss_mb for node in each.nodes) for each in self.repeats)

    def by_kind(self, kind: RequestKind) -> Summary | None:
        """Summarize the latency of one kind of request."""
        found = [each.primary.histograms[kind] for each in self.repeats if kind in each.primary.histograms]
        return LatencyHistogram(found).summarize() if found else None

    def cpu_us(self) -> dict[str, float]:
        """Compute the CPU time of each node, and of the clients, for one primary request.

        Empty where the nodes were not measured.
        """
        answered = sum(each.primary.answered for each in self.repeats) or 1
        found = {
            name: sum(node.cpu_s for each in self.repeats for node in each.nodes if node.name == name)
            for name in (node.name for node in self.repeats[0].nodes)
        }
        if not found:
            return {}
        found["clients"] = sum(each.client_cpu_s for each in self.repeats)
        return {name: seconds / answered * 1e6 for name, seconds in found.items()}

    def _spread(self, value: Callable[[StepResult], float]) -> Spread:
        return Spread.from_values([value(each) for each in self.repeats])


def list_levels(design: DesignResult, step: str) -> list[Level]:
    """List the levels of a step, lowest first."""
    found = sorted({each.load.level for each in design.select(step)})
    return [Level(step, level, tuple(design.select(step, level))) for level in found]


def list_all_levels(design: DesignResult) -> list[Level]:
    """List all levels of all steps, in the order of the workload."""
    return [
        each
        for step in dict.fromkeys(one.load.step for one in design.steps)
        for each in list_levels(design, step)
    ]


def list_closed_steps(design: DesignResult) -> list[str]:
    """List the steps with a closed loop and no listings, which make a ladder."""
    return _list_steps(design, lambda each: each.load.loop == "closed" and not each.load.mix.list)


def list_open_steps(design: DesignResult) -> list[str]:
    """List the steps with arrivals at a rate."""
    return _list_steps(design, lambda each: each.load.loop == "open")


def _list_steps(design: DesignResult, wanted: Callable[[StepResult], bool]) -> list[str]:
    return list(dict.fromkeys(each.load.step for each in design.steps if wanted(each)))
