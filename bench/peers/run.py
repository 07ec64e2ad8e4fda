"""One run: every contestant in every round of every measurement, so that a drift of the machine hits all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from bench.peers.findings import Half, Measure, Middle, Pickup, Rate, Sizes, together
from bench.peers.goals import TITLES
from bench.peers.shared_measures import Contestant

Tell = Callable[[str], None]
QueueT = TypeVar("QueueT", bound=Contestant)
TakenT_contra = TypeVar("TakenT_contra", bound=Contestant, contravariant=True)
BULK = 1000
"""Jobs of a call; what our APIs take at most."""
SUBMITS: Mapping[Measure, tuple[str, str, int]] = {
    "single-1": ("single", "single", 1),
    "single-16": ("single", "crowded", 16),
    "bulk": ("bulk", "bulk", BULK),
}
"""What a producer does, which size says how often, and how many at a time."""


class Measures(Protocol[TakenT_contra]):
    """Measures one thing of one contestant."""

    def submits(self, queue: Contestant, name: str, kind: str, count: int, width: int) -> Rate: ...

    async def drain(self, queue: TakenT_contra, name: str, jobs: int, at_most_s: float) -> Rate: ...

    async def pickup(self, queue: Contestant, name: str, count: int) -> Pickup: ...


class Ceiling(Protocol):
    """What the server can do at most, by a program that does nothing else."""

    @property
    def name(self) -> str: ...

    @property
    def drains(self) -> Sequence[str]: ...

    def prepare(self, aged: bool) -> None: ...

    def age(self, jobs: int) -> str: ...

    def submits(self, kind: str, count: int, width: int) -> Rate: ...

    def drain(self, name: str, jobs: int) -> Rate: ...


class Run(Generic[QueueT]):
    """The measurements of one invocation."""

    def __init__(
        self,
        bench: Measures[QueueT],
        queues: Sequence[QueueT],
        bare: Ceiling,
        sizes: Sizes,
        tell: Tell,
        *,
        close_singles: Collection[str] = (),
        close_drains: Collection[str] = (),
        close_pickups: Collection[str] = (),
    ) -> None:
        """Those that are close to each other each round measures several times, in turns."""
        self._bench = bench
        self._queues = queues
        self._bare = bare
        self._sizes = sizes
        self._tell = tell
        self._close_singles = close_singles
        self._close_drains = close_drains
        self._close_pickups = close_pickups

    def age(self) -> None:
        """Give every queue so many jobs to carry along, all at once."""
        for each in self._queues:
            self._tell(each.age(self._sizes.aged))
        self._tell(self._bare.age(self._sizes.aged))

    async def half(self, aged: bool) -> Half:
        """Everything, with a table that is empty or has a past."""
        rates: dict[Measure, dict[str, list[Rate]]] = {}
        pickups: dict[str, list[Pickup]] = {}
        for number in range(self._sizes.rounds):
            self._tell(f"round {number + 1} of {self._sizes.rounds}, {'aged' if aged else 'empty'}")
            for measure, (kind, size, width) in SUBMITS.items():
                count: int = getattr(self._sizes, size)
                self._submits(rates.setdefault(measure, {}), measure, kind, count, width, aged)
            await self._drains(rates.setdefault("drain", {}), aged)
            await self._pickups(pickups, aged)
        return Half(
            rates={
                measure: {name: Middle.of(each) for name, each in found.items()}
                for measure, found in rates.items()
            },
            pickups={name: together(each) for name, each in pickups.items()},
        )

    def _submits(
        self, found: dict[str, list[Rate]], measure: Measure, kind: str, count: int, width: int, aged: bool
    ) -> None:
        close = self._close_singles if measure == "single-1" else ()
        for queue, name in self._turns(lambda queue: queue.producers, close):
            queue.prepare(aged)
            self._add(found, measure, name, self._bench.submits(queue, name, kind, count, width))
        self._bare.prepare(aged)
        self._add(found, measure, self._bare.name, self._bare.submits(kind, count, width))

    async def _drains(self, found: dict[str, list[Rate]], aged: bool) -> None:
        sizes = self._sizes
        for queue, name in self._turns(lambda queue: queue.workers, self._close_drains):
            queue.prepare(aged)
            rate = await self._bench.drain(queue, name, sizes.drain, sizes.drain_at_most_s)
            self._add(found, "drain", name, rate)
        for name in self._bare.drains:
            self._bare.prepare(aged)
            self._add(found, "drain", name, self._bare.drain(name, sizes.drain))

    async def _pickups(self, found: dict[str, list[Pickup]], aged: bool) -> None:
        for queue, name in self._turns(lambda queue: queue.pickups, self._close_pickups):
            queue.prepare(aged)
            picked = await self._bench.pickup(queue, name, self._sizes.pickups)
            found.setdefault(name, []).append(picked)
            waited = picked.waited
            self._tell(f"  pickup: {name}: p50 {waited.p50_ms:.2f} p99 {waited.p99_ms:.1f} ms")

    def _turns(
        self, names: Callable[[QueueT], Iterable[str]], close: Collection[str]
    ) -> Iterator[tuple[QueueT, str]]:
        """Who is measured after whom: all of them once, and then those that are close again and again."""
        for turn in range(self._sizes.turns):
            for queue in self._queues:
                for name in names(queue):
                    if not turn or name in close:
                        yield queue, name

    def _add(self, found: dict[str, list[Rate]], measure: Measure, name: str, rate: Rate) -> None:
        found.setdefault(name, []).append(rate)
        self._tell(f"  {TITLES[measure]}: {name}: {rate.per_s:,.0f}/s, {rate.cpu_us:,.0f} µs of CPU a job")
