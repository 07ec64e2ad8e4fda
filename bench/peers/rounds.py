"""Rounds of a comparison: every contestant in each of them, so that a drift of the machine affects all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from bench.peers.findings import HalfFindings, JobRate, Measure, MedianRate, Pickup, RunSizes, merge_pickups
from bench.peers.goals import TITLES
from bench.peers.server_bench import Contestant

PrintLine = Callable[[str], None]
QueueT = TypeVar("QueueT", bound=Contestant)
ContestantT_contra = TypeVar("ContestantT_contra", bound=Contestant, contravariant=True)
BULK = 1000
"""Jobs of a call: the most that our APIs accept."""
SUBMITS: Mapping[Measure, tuple[str, str, int]] = {
    "single-1": ("single", "single", 1),
    "single-16": ("single", "crowded", 16),
    "bulk": ("bulk", "bulk", BULK),
}
"""By measure, the producer's kind, the size with the number of jobs, and how many at a time."""


class ContestantBench(Protocol[ContestantT_contra]):
    """Bench that measures a contestant."""

    def measure_submits(self, queue: Contestant, name: str, kind: str, count: int, width: int) -> JobRate: ...

    async def drain(self, queue: ContestantT_contra, name: str, jobs: int, at_most_s: float) -> JobRate: ...

    async def measure_pickup(self, queue: Contestant, name: str, count: int) -> Pickup: ...


class CeilingBench(Protocol):
    """The most that the server can do, with a program that does nothing else."""

    @property
    def name(self) -> str: ...

    @property
    def drains(self) -> Sequence[str]: ...

    def prepare(self, aged: bool) -> None: ...

    def age(self, jobs: int) -> str: ...

    def measure_submits(self, kind: str, count: int, width: int) -> JobRate: ...

    def drain(self, name: str, jobs: int) -> JobRate: ...


class ComparisonRun(Generic[QueueT]):
    """The measurements of one invocation."""

    def __init__(
        self,
        bench: ContestantBench[QueueT],
        queues: Sequence[QueueT],
        ceiling: CeilingBench,
        sizes: RunSizes,
        print_line: PrintLine,
        *,
        close_singles: Collection[str] = (),
        close_drains: Collection[str] = (),
        close_pickups: Collection[str] = (),
    ) -> None:
        """Each round measures the contestants of `close_…` several times, in turns."""
        self._bench = bench
        self._queues = queues
        self._ceiling = ceiling
        self._sizes = sizes
        self._print_line = print_line
        self._close_singles = close_singles
        self._close_drains = close_drains
        self._close_pickups = close_pickups

    def age(self) -> None:
        """Fill every queue with the other jobs of the second half."""
        for each in self._queues:
            self._print_line(each.age(self._sizes.aged))
        self._print_line(self._ceiling.age(self._sizes.aged))

    async def measure_half(self, aged: bool) -> HalfFindings:
        """Measure everything, with an empty or an aged table."""
        rates: dict[Measure, dict[str, list[JobRate]]] = {}
        pickups: dict[str, list[Pickup]] = {}
        for number in range(self._sizes.rounds):
            self._print_line(f"round {number + 1} of {self._sizes.rounds}, {'aged' if aged else 'empty'}")
            for measure, (kind, size, width) in SUBMITS.items():
                count: int = getattr(self._sizes, size)
                self._measure_submits(rates.setdefault(measure, {}), measure, kind, count, width, aged)
            await self._measure_drains(rates.setdefault("drain", {}), aged)
            await self._measure_pickups(pickups, aged)
        return HalfFindings(
            rates={
                measure: {name: MedianRate.from_rounds(each) for name, each in results.items()}
                for measure, results in rates.items()
            },
            pickups={name: merge_pickups(each) for name, each in pickups.items()},
        )

    def _measure_submits(
        self,
        results: dict[str, list[JobRate]],
        measure: Measure,
        kind: str,
        count: int,
        width: int,
        aged: bool,
    ) -> None:
        close = self._close_singles if measure == "single-1" else ()
        for queue, name in self._list_turns(lambda queue: queue.producers, close):
            queue.prepare(aged)
            self._record(results, measure, name, self._bench.measure_submits(queue, name, kind, count, width))
        self._ceiling.prepare(aged)
        self._record(results, measure, self._ceiling.name, self._ceiling.measure_submits(kind, count, width))

    async def _measure_drains(self, results: dict[str, list[JobRate]], aged: bool) -> None:
        sizes = self._sizes
        for queue, name in self._list_turns(lambda queue: queue.workers, self._close_drains):
            queue.prepare(aged)
            rate = await self._bench.drain(queue, name, sizes.drain, sizes.drain_at_most_s)
            self._record(results, "drain", name, rate)
        for name in self._ceiling.drains:
            self._ceiling.prepare(aged)
            self._record(results, "drain", name, self._ceiling.drain(name, sizes.drain))

    async def _measure_pickups(self, results: dict[str, list[Pickup]], aged: bool) -> None:
        for queue, name in self._list_turns(lambda queue: queue.pickups, self._close_pickups):
            queue.prepare(aged)
            pickup = await self._bench.measure_pickup(queue, name, self._sizes.pickups)
            results.setdefault(name, []).append(pickup)
            waited = pickup.waited
            self._print_line(f"  pickup: {name}: p50 {waited.p50_ms:.2f} p99 {waited.p99_ms:.1f} ms")

    def _list_turns(
        self, names: Callable[[QueueT], Iterable[str]], close: Collection[str]
    ) -> Iterator[tuple[QueueT, str]]:
        """List the turns of a round: all contestants once, and then the close ones again."""
        for turn in range(self._sizes.turns):
            for queue in self._queues:
                for name in names(queue):
                    if not turn or name in close:
                        yield queue, name

    def _record(self, results: dict[str, list[JobRate]], measure: Measure, name: str, rate: JobRate) -> None:
        results.setdefault(name, []).append(rate)
        self._print_line(
            f"  {TITLES[measure]}: {name}: {rate.per_s:,.0f}/s, {rate.cpu_us:,.0f} µs of CPU a job"
        )
