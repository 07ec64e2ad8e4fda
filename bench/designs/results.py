"""What is written down of a measurement: the files in `bench/results/<stamp>/`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from bench.percentiles import Summary, Times
from bench.workload import SECONDARY, Kind, Load


class Record(BaseModel):
    """Immutable, and with exactly the fields that a reader expects."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Requests(Record):
    """Requests of some kinds, taken together and one by one."""

    per_s: float
    """Good answers in the window, each second."""
    answered: int
    failed: Mapping[Kind, Mapping[str, int]]
    latency: Summary
    by_kind: Mapping[Kind, Summary]
    histogram: str
    histograms: Mapping[Kind, str]


class Jobs(Record):
    """Jobs by their records: what the queue did, where the requests are what clients saw."""

    done_per_s: float
    """Jobs that reached DONE in the window, each second."""
    done: int
    submitted: int
    backlog: int
    """Jobs submitted in the window that were not over at its end."""
    unfinished: int
    """Of those, the ones that were not over when waiting for them was given up."""
    end_to_end: Summary
    """From creation to end, by the stamps of jobs that were submitted in the window."""
    end_to_end_histogram: str
    waited: Summary
    """From creation to start, likewise."""
    observed: Summary
    """From a submit to the answer by which a client learned that the job had ended."""
    observed_histogram: str


class NodeUse(Record):
    """What one node used in the window."""

    name: str
    cpu_s: float
    rss_mb: float
    calls: Mapping[str, int]
    """Calls that it answered, over the network or within the process, by method."""


class Moment(Record):
    """What clients saw within half a second."""

    seconds: float
    per_s: float
    p50_ms: float
    p99_ms: float


class StepResult(Record):
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
    """What everything else on the machine used in the window: it should be next to nothing.

    None where the nodes were not measured."""
    lag: Summary
    """How much later than intended requests were sent."""
    keyed: int
    moments: tuple[Moment, ...]

    @property
    def client_cpu_share(self) -> float:
        """Processors that the clients used, of all that were used."""
        used = self.client_cpu_s + sum(node.cpu_s for node in self.nodes)
        return self.client_cpu_s / used if used else 0.0


class DesignResult(Record):
    """Everything that was measured of one design."""

    deployment: str
    steps: tuple[StepResult, ...]

    def of(self, step: str, level: float | None = None) -> list[StepResult]:
        """The repeats of a step at a level."""
        return [
            each
            for each in self.steps
            if each.load.step == step and (level is None or each.load.level == level)
        ]


def requests(
    kinds: Mapping[Kind, Times],
    answered: Mapping[Kind, int],
    failed: Mapping[Kind, Mapping[str, int]],
    seconds: float,
    *,
    secondary: bool,
) -> Requests:
    """The requests of either sort: listings, or all the others."""
    wanted = {kind: times for kind, times in kinds.items() if (kind in SECONDARY) == secondary}
    together = Times()
    for times in wanted.values():
        together.add(times)
    count = sum(number for kind, number in answered.items() if (kind in SECONDARY) == secondary)
    return Requests(
        per_s=round(count / seconds, 2),
        answered=count,
        failed={kind: dict(codes) for kind, codes in failed.items() if (kind in SECONDARY) == secondary},
        latency=together.summary(),
        by_kind={kind: times.summary() for kind, times in wanted.items()},
        histogram=together.encode(),
        histograms={kind: times.encode() for kind, times in wanted.items()},
    )


def write(folder: Path, name: str, record: BaseModel) -> Path:
    """Writes a record as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(record.model_dump_json(indent=1) + "\n")
    return path
