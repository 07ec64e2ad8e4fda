"""One design, launched afresh, under every load of the workload in turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.designs.nodes import Meter, Reading, used
from bench.designs.records import read_jobs, settled
from bench.designs.results import Jobs, Moment, StepResult, requests
from bench.generator.fleet import Fleet, Outcome, Target, Tick, Window
from bench.workload import Load, Workload
from runtime.client import Client
from runtime.launch import Launched, launched

Watch = Callable[[Load, Tick], None]
Finished = Callable[[StepResult], None]


@dataclass(frozen=True, slots=True)
class Launch:
    """Which processes were started, where they listen, and what they were given."""

    deployment: str
    addresses: tuple[str, ...]
    nodes: Mapping[str, str]
    slots: int


@dataclass(frozen=True, slots=True)
class Measured:
    """A launch and what was measured of it."""

    launch: Launch
    steps: tuple[StepResult, ...]


async def measure(
    deployment: str,
    workload: Workload,
    repeat: int,
    *,
    settings: Mapping[str, str] | None = None,
    watch: Watch | None = None,
    finished: Finished | None = None,
) -> Measured:
    """Launches a design, puts each load on it, and takes it down."""
    async with (
        launched(deployment, ports="auto", tls=workload.tls, settings=settings) as running,
        running.client() as client,
        Fleet(Target.of(running.env), workload.clients) as fleet,
    ):
        bench = _Bench(running, client, fleet, workload, watch or _unwatched)
        steps = []
        for load in workload.loads():
            steps.append(await bench.step(load, repeat))
            if finished is not None:
                finished(steps[-1])
        return Measured(launch_of(running), tuple(steps))


def launch_of(running: Launched) -> Launch:
    """What there is to know of a launch."""
    return Launch(
        running.name,
        Target.of(running.env).addresses,
        {name: process.planned.address or "" for name, process in running.processes.items()},
        slots(running),
    )


def slots(running: Launched) -> int:
    """How many jobs all processes together run at a time, by the variables that they really have."""
    variable = running.deployment.slots_variable
    return sum(
        int(process.planned.variables[variable])
        for process in running.processes.values()
        if variable is not None and variable in process.planned.variables
    )


@dataclass(frozen=True, slots=True)
class _Bench:
    running: Launched
    client: Client
    fleet: Fleet
    workload: Workload
    watch: Watch

    async def step(self, load: Load, repeat: int) -> StepResult:
        """Puts one load on the deployment, and waits until it has worked it off."""
        meter, readings = Meter(self.running), list[Reading]()

        async def read(window: Window) -> None:
            await asyncio.sleep(window.start - time.monotonic())
            readings.append(await meter.before())
            await asyncio.sleep(window.end - time.monotonic())
            readings.append(await meter.after())

        since_ms = int(time.time() * 1000)
        outcome = await self.fleet.send(load, watch=lambda tick: self.watch(load, tick), meanwhile=read)
        await settled(self.client, self.workload.drain_s)
        jobs = await read_jobs(self.client, outcome, since_ms)
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
        other_cpu_s=round(max(0.0, others), 3),
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
