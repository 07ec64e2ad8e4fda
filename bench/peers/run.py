"""One run: every contestant in every round of every measurement, so that a drift of the machine hits all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bench.peers.bare import BULK, DRAINS, PGBENCH, Bare
from bench.peers.contestants import Queue
from bench.peers.findings import Half, Measure, Middle, Pickup, Rate, Sizes, together
from bench.peers.goals import TITLES
from bench.peers.measure import Bench

Tell = Callable[[str], None]
SUBMITS: Mapping[Measure, tuple[str, str, int]] = {
    "single-1": ("single", "single", 1),
    "single-16": ("single", "crowded", 16),
    "bulk": ("bulk", "bulk", BULK),
}
"""What a producer does, which size says how often, and how many at a time."""


class Run:
    """The measurements of one invocation."""

    def __init__(self, bench: Bench, queues: Sequence[Queue], bare: Bare, sizes: Sizes, tell: Tell) -> None:
        self._bench = bench
        self._queues = queues
        self._bare = bare
        self._sizes = sizes
        self._tell = tell

    def age(self) -> None:
        """Gives every queue a past: so many finished jobs, with all that they leave behind."""
        known: list[Queue | Bare] = [*self._queues, self._bare]
        for each in known:
            each.prepare(aged=False)
            each.database.run("age", jobs=self._sizes.aged)
            self._tell(f"{each.database.kind}: {self._sizes.aged:,} finished jobs are in the table")

    async def half(self, aged: bool) -> Half:
        """Everything, with a table that is empty or has a past."""
        rates: dict[Measure, dict[str, list[Rate]]] = {}
        pickups: dict[str, list[Pickup]] = {}
        for number in range(self._sizes.rounds):
            self._tell(f"round {number + 1} of {self._sizes.rounds}, {'aged' if aged else 'empty'} tables")
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
        for queue in self._queues:
            for name in queue.producers:
                queue.prepare(aged)
                self._add(found, measure, name, self._bench.submits(queue, name, kind, count, width))
        self._bare.prepare(aged)
        self._add(found, measure, PGBENCH, self._bare.submits(kind, count, width))

    async def _drains(self, found: dict[str, list[Rate]], aged: bool) -> None:
        sizes = self._sizes
        for queue in self._queues:
            for name in queue.workers:
                queue.prepare(aged)
                rate = await self._bench.drain(queue, name, sizes.drain, sizes.drain_at_most_s)
                self._add(found, "drain", name, rate)
        for name in DRAINS:
            self._bare.prepare(aged)
            self._add(found, "drain", name, self._bare.drain(name, sizes.drain))

    async def _pickups(self, found: dict[str, list[Pickup]], aged: bool) -> None:
        for queue in self._queues:
            for name in queue.pickups:
                queue.prepare(aged)
                picked = await self._bench.pickup(queue, name, self._sizes.pickups)
                found.setdefault(name, []).append(picked)
                waited = picked.waited
                self._tell(f"  pickup: {name}: p50 {waited.p50_ms:.1f} p99 {waited.p99_ms:.1f} ms")

    def _add(self, found: dict[str, list[Rate]], measure: Measure, name: str, rate: Rate) -> None:
        found.setdefault(name, []).append(rate)
        self._tell(f"  {TITLES[measure]}: {name}: {rate.per_s:,.0f}/s, {rate.cpu_us:,.0f} µs of CPU a job")
