"""Turns of a comparison: contestants with close results are measured several times in a round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.peers.findings import JobRate, Pickup, RunSizes
from bench.peers.programs import ProducerCommand, Program
from bench.peers.rounds import ComparisonRun
from bench.peers.server_bench import Contestant
from bench.percentiles import LatencyHistogram

SIZES = RunSizes(
    rounds=2, single=1, crowded=1, bulk=1, drain=1, drain_at_most_s=1.0, pickups=1, aged=0, turns=3
)
TIMES = LatencyHistogram()
TIMES.record(0.001)
PICKUP = Pickup(waited=TIMES.summarize(), histogram=TIMES.encode())
RATE = JobRate(per_s=1.0, cpu_us=1.0, count=1)


@dataclass
class Queue:
    """A contestant whose programs are never run."""

    name: str
    workers: Mapping[str, Program]
    producers: Mapping[str, ProducerCommand] = field(default_factory=dict)
    pickups: Mapping[str, tuple[str, Program]] = field(default_factory=dict)

    def prepare(self, aged: bool) -> None: ...

    def age(self, jobs: int) -> str:
        return ""


@dataclass
class Bench:
    """Bench that records the names it measures."""

    singly: list[str] = field(default_factory=list)
    drained: list[str] = field(default_factory=list)
    picked: list[str] = field(default_factory=list)

    def measure_submits(self, queue: Contestant, name: str, kind: str, count: int, width: int) -> JobRate:
        if (kind, width) == ("single", 1):
            self.singly.append(name)
        return RATE

    async def drain(self, queue: Queue, name: str, jobs: int, at_most_s: float) -> JobRate:
        self.drained.append(name)
        return RATE

    async def measure_pickup(self, queue: Contestant, name: str, count: int) -> Pickup:
        self.picked.append(name)
        return PICKUP


class NoCeiling:
    """A ceiling that measures nothing."""

    name = "bare"
    drains: Sequence[str] = ()

    def prepare(self, aged: bool) -> None: ...

    def age(self, jobs: int) -> str:
        return ""

    def measure_submits(self, kind: str, count: int, width: int) -> JobRate:
        return RATE

    def drain(self, name: str, jobs: int) -> JobRate:
        return RATE


async def test_those_that_are_close_take_turns() -> None:
    """The others are measured once in a round, so that a run takes little longer."""
    program = Program((), {})
    producing = ProducerCommand(program, "")
    either = {"e": ("", program), "f": ("", program)}
    queues = [
        Queue("theirs", {"a": program, "b": program}, {"g": producing}),
        Queue("ours", {"c": program, "d": program}, {"h": producing}, either),
    ]
    bench = Bench()
    close = {"close_singles": "h", "close_drains": "bd", "close_pickups": "f"}
    run = ComparisonRun(bench, queues, NoCeiling(), SIZES, lambda _: None, **close)
    half = await run.measure_half(aged=False)
    assert "".join(bench.singly) == 2 * "ghhh"
    assert "".join(bench.drained) == 2 * "abcdbdbd"
    drains = half.rates["drain"]
    assert {name: len(each.rounds) for name, each in drains.items()} == {"a": 2, "b": 6, "c": 2, "d": 6}
    assert "".join(bench.picked) == 2 * "efff"
    assert {name: each.waited.count for name, each in half.pickups.items()} == {"e": 2, "f": 6}
