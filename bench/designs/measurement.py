"""Measurement of one design under every load of the workload in turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.designs.job_records import read_jobs, wait_until_idle
from bench.designs.nodes import Reading, compute_use
from bench.designs.results import IntervalResult, Jobs, StepResult, summarize_requests
from bench.designs.sites import Launch, Site, SiteProvider
from bench.generator.fleet import Fleet, LoadOutcome, Tick, Window
from bench.workload import Load, Workload

Watch = Callable[[Load, Tick], None]
Finished = Callable[[StepResult], None]


@dataclass(frozen=True, slots=True)
class Measurement:
    """A launch and the results of its steps."""

    launch: Launch
    steps: tuple[StepResult, ...]


async def measure(
    deployment: str,
    workload: Workload,
    repeat: int,
    provider: SiteProvider,
    *,
    watch: Watch | None = None,
    finished: Finished | None = None,
) -> Measurement:
    """Run each load against a design, on a site of the provider."""
    async with (
        provider.open(deployment, workload.tls) as site,
        Fleet(site.target, workload.clients) as fleet,
    ):
        bench = _StepRunner(site, fleet, workload, watch or _ignore_tick)
        steps = []
        for load in workload.loads():
            steps.append(await bench.run_step(load, repeat))
            if finished is not None:
                finished(steps[-1])
        return Measurement(site.launch, tuple(steps))


@dataclass(frozen=True, slots=True)
class _StepRunner:
    site: Site
    fleet: Fleet
    workload: Workload
    watch: Watch

    async def run_step(self, load: Load, repeat: int) -> StepResult:
        """Run one load against the deployment, and wait until it has drained."""
        meter, readings = self.site.meter, list[Reading]()

        async def read(window: Window) -> None:
            await asyncio.sleep(window.start - time.monotonic())
            readings.append(await meter.read_before())
            await asyncio.sleep(window.end - time.monotonic())
            readings.append(await meter.read_after())

        since_ms = int(time.time() * 1000)
        outcome = await self.fleet.send(load, watch=lambda tick: self.watch(load, tick), meanwhile=read)
        await wait_until_idle(self.site.client, self.workload.drain_s)
        jobs = await read_jobs(self.site.client, outcome, since_ms)
        return _build_result(load, repeat, outcome, jobs, readings[0], readings[1])


def _build_result(
    load: Load, repeat: int, outcome: LoadOutcome, jobs: Jobs, before: Reading, after: Reading
) -> StepResult:
    nodes = compute_use(before, after)
    others = after.machine_s - before.machine_s - outcome.cpu_s - sum(each.cpu_s for each in nodes)
    kinds, answered, failures = outcome.latencies, outcome.answered, outcome.failures
    listings = summarize_requests(kinds, answered, failures, load.run_s, secondary=True)
    return StepResult(
        load=load,
        repeat=repeat,
        primary=summarize_requests(kinds, answered, failures, load.run_s, secondary=False),
        secondary=listings if listings.latency.count else None,
        jobs=jobs,
        nodes=nodes,
        clients=outcome.clients,
        client_cpu_s=round(outcome.cpu_s, 3),
        other_cpu_s=round(max(0.0, others), 3) if nodes else None,
        lag=outcome.lag.summarize(),
        keyed=outcome.keyed,
        moments=_build_moments(outcome),
    )


def _build_moments(outcome: LoadOutcome) -> tuple[IntervalResult, ...]:
    moments, before = [], 0.0
    for tick in outcome.ticks:
        p50, p99 = tick.times.percentiles((50, 99))
        per_s = tick.calls / (tick.seconds - before)
        moments.append(IntervalResult(seconds=tick.seconds, per_s=round(per_s, 1), p50_ms=p50, p99_ms=p99))
        before = tick.seconds
    return tuple(moments)


def _ignore_tick(_load: Load, _tick: Tick) -> None:
    """Ignore a tick; the default for `watch`."""
