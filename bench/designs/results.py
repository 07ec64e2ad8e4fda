"""Results of a measurement: the files in `bench/results/<stamp>/`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from bench.percentiles import LatencyHistogram, Summary
from bench.workload import SECONDARY, Load, RequestKind


class ResultRecord(BaseModel):
    """Base of stored results: immutable, and without unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Requests(ResultRecord):
    """Requests of some kinds, in sum and by kind."""

    per_s: float
    """Successful answers in the window, per second."""
    answered: int
    failed: Mapping[RequestKind, Mapping[str, int]]
    latency: Summary
    by_kind: Mapping[RequestKind, Summary]
    histogram: str
    histograms: Mapping[RequestKind, str]


class Jobs(ResultRecord):
    """Jobs by their records: the queue's side, where `Requests` are the clients' side."""

    done_per_s: float
    """Jobs that reached DONE in the window, per second."""
    done: int
    submitted: int
    backlog: int
    """Jobs submitted in the window that were not over at its end."""
    unfinished: int
    """Of those, the ones that were not over at the end of the drain time."""
    end_to_end: Summary
    """From creation to end, by the stamps of jobs that were submitted in the window."""
    end_to_end_histogram: str
    waited: Summary
    """From creation to start, likewise."""
    observed: Summary
    """From a submit to the answer by which a client learned that the job had ended."""
    observed_histogram: str


class NodeUse(ResultRecord):
    """Resource use of one node in the window."""

    name: str
    cpu_s: float
    rss_mb: float
    calls: Mapping[str, int]
    """Calls that it answered, over the network or within the process, by method."""


class IntervalResult(ResultRecord):
    """Results of clients within half a second."""

    seconds: float
    per_s: float
    p50_ms: float
    p99_ms: float


class StepResult(ResultRecord):
    """One load on one design."""

    load: Load
    repeat: int
    primary: Requests
    secondary: Requests | None
    """Listings: the designs may differ in them, so they are never among the primary."""
    jobs: Jobs
    nodes: tuple[NodeUse, ...]
    clients: int
    client_cpu_s: float
    other_cpu_s: float | None
    """CPU seconds of everything else on the machine in the window; should be next to nothing.

    None where the nodes were not measured."""
    lag: Summary
    """How much later than intended requests were sent."""
    keyed: int
    moments: tuple[IntervalResult, ...]

    @property
    def client_cpu_share(self) -> float:
        """The clients' fraction of the CPU time."""
        used = self.client_cpu_s + sum(node.cpu_s for node in self.nodes)
        return self.client_cpu_s / used if used else 0.0


class DesignResult(ResultRecord):
    """All steps of one design."""

    deployment: str
    steps: tuple[StepResult, ...]

    def select(self, step: str, level: float | None = None) -> list[StepResult]:
        """List the repeats of a step at a level."""
        return [
            each
            for each in self.steps
            if each.load.step == step and (level is None or each.load.level == level)
        ]


def summarize_requests(
    kinds: Mapping[RequestKind, LatencyHistogram],
    answered: Mapping[RequestKind, int],
    failed: Mapping[RequestKind, Mapping[str, int]],
    seconds: float,
    *,
    secondary: bool,
) -> Requests:
    """Summarize the requests of either sort: listings, or all the others."""
    wanted = {kind: times for kind, times in kinds.items() if (kind in SECONDARY) == secondary}
    merged = LatencyHistogram()
    for times in wanted.values():
        merged.add(times)
    count = sum(number for kind, number in answered.items() if (kind in SECONDARY) == secondary)
    return Requests(
        per_s=round(count / seconds, 2),
        answered=count,
        failed={kind: dict(codes) for kind, codes in failed.items() if (kind in SECONDARY) == secondary},
        latency=merged.summarize(),
        by_kind={kind: times.summarize() for kind, times in wanted.items()},
        histogram=merged.encode(),
        histograms={kind: times.encode() for kind, times in wanted.items()},
    )


def write_record(folder: Path, name: str, record: BaseModel) -> Path:
    """Write a record as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(record.model_dump_json(indent=1) + "\n")
    return path
