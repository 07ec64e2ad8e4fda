"""What is close to each other is measured several times in a round, in turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.peers.findings import Pickup, Rate, Sizes
from bench.peers.programs import Producing, Program
from bench.peers.run import Run
from bench.peers.shared_measures import Contestant
from bench.percentiles import LatencyHistogram

SIZES = Sizes(rounds=2, single=1, crowded=1, bulk=1, drain=1, drain_at_most_s=1.0, pickups=1, aged=0, turns=3)
TIMES = LatencyHistogram()
TIMES.record(0.001)
PICKUP = Pickup(waited=TIMES.summarize(), histogram=TIMES.encode())
RATE = Rate(per_s=1.0, cpu_us=1.0, count=1)


@dataclass
class Queue:
    """A contestant whose programs are never run."""

    name: str
    workers: Mapping[str, Program]
    producers: Mapping[str, Producing] = field(default_factory=dict)
    pickups: Mapping[str, tuple[str, Program]] = field(default_factory=dict)

    def prepare(self, aged: bool) -> None: ...

    def age(self, jobs: int) -> str:
        return ""


@dataclass
class Bench:
    """Notes who was measured."""

    singly: list[str] = field(default_factory=list)
    drained: list[str] = field(default_factory=list)
    picked: list[str] = field(default_factory=list)

    def submits(self, queue: Contestant, name: str, kind: str, count: int, width: int) -> Rate:
        if (kind, width) == ("single", 1):
            self.singly.append(name)
        return RATE

    async def drain(self, queue: Queue, name: str, jobs: int, at_most_s: float) -> Rate:
        self.drained.append(name)
        return RATE

    async def pickup(self, queue: Contestant, name: str, count: int) -> Pickup:
        self.picked.append(name)
        return PICKUP


class Bare:
    """A ceiling of nothing."""

    name = "bare"
    drains: Sequence[str] = ()

    def prepare(self, aged: bool) -> None: ...

    def age(self, jobs: int) -> str:
        return ""

    def submits(self, kind: str, count: int, width: int) -> Rate:
        return RATE

    def drain(self, name: str, jobs: int) -> Rate:
        return RATE


async def test_those_that_are_close_take_turns() -> None:
    """The others are measured once in a round, so that a run takes little longer."""
    program = Program((), {})
    producing = Producing(program, "")
    either = {"e": ("", program), "f": ("", program)}
    queues = [
        Queue("theirs", {"a": program, "b": program}, {"g": producing}),
        Queue("ours", {"c": program, "d": program}, {"h": producing}, either),
    ]
    bench = Bench()
    close = {"close_singles": "h", "close_drains": "bd", "close_pickups": "f"}
    run = Run(bench, queues, Bare(), SIZES, lambda _: None, **close)
    half = await run.half(aged=False)
    assert "".join(bench.singly) == 2 * "ghhh"
    assert "".join(bench.drained) == 2 * "abcdbdbd"
    drains = half.rates["drain"]
    assert {name: len(each.rounds) for name, each in drains.items()} == {"a": 2, "b": 6, "c": 2, "d": 6}
    assert "".join(bench.picked) == 2 * "efff"
    assert {name: each.waited.count for name, each in half.pickups.items()} == {"e": 2, "f": 6}
