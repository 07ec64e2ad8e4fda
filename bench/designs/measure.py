"""One design under every load of the workload in turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.designs.nodes import Reading, used
from bench.designs.records import read_jobs, settled
from bench.designs.results import Jobs, Moment, StepResult, requests
from bench.designs.sites import Launch, Place, Site
from bench.generator.fleet import Fleet, Outcome, Tick, Window
from bench.workload import Load, Workload

Watch = Callable[[Load, Tick], None]
Finished = Callable[[StepResult], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """A launch and what was measured of it."""

    launch: Launch
    steps: tuple[StepResult, ...]


async def measure(
    deployment: str,
    workload: Workload,
    repeat: int,
    place: Place,
    *,
    watch: Watch | None = None,
    finished: Finished | None = None,
) -> Measured:
    """Puts each load on a design, in the place where it is brought up or found."""
    async with (
        place.open(deployment, workload.tls) as site,
        Fleet(site.target, workload.clients) as fleet,
    ):
        bench = _Bench(site, fleet, workload, watch or _unwatched)
        steps = []
        for load in workload.loads():
            steps.append(await bench.step(load, repeat))
            if finished is not None:
                finished(steps[-1])
        return Measured(site.launch, tuple(steps))


@dataclass(frozen=True, slots=True)
class _Bench:
    site: Site
    fleet: Fleet
    workload: Workload
    watch: Watch

    async def step(self, load: Load, repeat: int) -> StepResult:
        """Puts one load on the deployment, and waits until it has worked it off."""
        meter, readings = self.site.meter, list[Reading]()

        async def read(window: Window) -> None:
            await asyncio.sleep(window.start - time.monotonic())
            readings.append(await meter.before())
            await asyncio.sleep(window.end - time.monotonic())
            readings.append(await meter.after())

        since_ms = int(time.time() * 1000)
        outcome = await self.fleet.send(load, watch=lambda tick: self.watch(load, tick), meanwhile=read)
        await settled(self.site.client, self.workload.drain_s)
        jobs = await read_jobs(self.site.client, outcome, since_ms)
        return _result(load, repeat, outcome, jobs, readings[0], readings[1])


def _result(
    load: Load, repeat: int, outcome: Outcome, jobs: Jobs, before: Reading, after: Reading
) -> StepResult:
    nodes = used(before, after)
    others = after.machine_s - before.machine_s - outcome.cpu_s - sum(each.cpu_s for each in nodes)
    kinds, answered, failures = outcome.latencies, outcome.answered, outcome.failures
    listings = requests(kinds, answered, failures, load.run_s, secondary=True)
    return StepResult(
        load=load,
        repeat=repeat,
        primary=requests(kinds, answered, failures, load.run_s, secondary=False),
        secondary=listings if listings.latency.count else None,
        jobs=jobs,
        nodes=nodes,
        clients=outcome.clients,
        client_cpu_s=round(outcome.cpu_s, 3),
        other_cpu_s=round(max(0.0, others), 3) if nodes else None,
        lag=outcome.lag.summary(),
        keyed=outcome.keyed,
        moments=_moments(outcome),
    )


def _moments(outcome: Outcome) -> tuple[Moment, ...]:
    found, before = [], 0.0
    for tick in outcome.ticks:
        p50, p99 = tick.times.ranks((50, 99))
        per_s = tick.calls / (tick.seconds - before)
        found.append(Moment(seconds=tick.seconds, per_s=round(per_s, 1), p50_ms=p50, p99_ms=p99))
        before = tick.seconds
    return tuple(found)


def _unwatched(_load: Load, _tick: Tick) -> None:
    """What stands where nobody watches."""
