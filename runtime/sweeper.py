"""Drives the changes that are due by the clock: looks from time to time, and works off all that is due."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Gauge

from runtime import log as events
from runtime.call import Call
from runtime.conditions import Failure


class Sweep(NamedTuple):
    """One change that the clock drives; `step` makes it to a bounded number and says to how many."""

    entity: str
    name: str
    step: Callable[[Call], Awaitable[int]]


class SweepMeasures:
    """What is known of the last look for each change, for whoever watches that they happen at all."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._at, self._took, self._changed, self._failed = _series(registry)

    def ran(self, sweep: Sweep, at_ms: int, took_s: float, changed: int, *, failed: bool) -> None:
        """Notes a look."""
        labels = (sweep.entity, sweep.name)
        self._at.labels(*labels).set(at_ms / 1000)
        self._took.labels(*labels).set(took_s)
        self._changed.labels(*labels).inc(changed)
        self._failed.labels(*labels).inc(failed)


async def sweep_regularly(
    sweeps: Sequence[Sweep],
    every_s: float,
    call: Call,
    stopping: asyncio.Event,
    measures: SweepMeasures | None = None,
    *,
    first_after_s: float = 0.0,
) -> None:
    """Looks every so many seconds, in any number of processes at once; the store keeps them apart.

    What goes by the same clock is done in the order of the spec, so that one change may lead to the next.
    """
    if first_after_s:
        await _pause(first_after_s, stopping)
    while not stopping.is_set():
        for sweep in sweeps:
            await sweep_all(sweep, call, stopping, measures)
        # Some earlier, some later: the sweepers of many processes shall not all come at the same moment.
        await _pause(call.world.uniform(0.8 * every_s, every_s), stopping)


async def sweep_all(
    sweep: Sweep, call: Call, stopping: asyncio.Event, measures: SweepMeasures | None = None
) -> int:
    """Changes everything that is due, a bounded batch at a time; how many that were."""
    changed, began, failed = 0, call.world.monotonic(), False
    try:
        while not stopping.is_set() and (batch := await sweep.step(call)):
            changed += batch
    except Failure as failure:
        failed = True
        call.tell(events.SWEEP_FAILED, f"{sweep.name}: {failure.message}", grpc_code=failure.grpc)
    took = call.world.monotonic() - began
    if measures is not None:
        measures.ran(sweep, call.world.now_ms(), took, changed, failed=failed)
    if not failed and call.log.wants(events.SWEPT):
        call.tell(
            events.SWEPT,
            f"{sweep.entity} {sweep.name}",
            entity=sweep.entity,
            changed=changed,
            seconds=round(took, 4),
        )
    return changed


async def _pause(seconds: float, stopping: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stopping.wait()
    except TimeoutError:
        pass


_known: WeakKeyDictionary[CollectorRegistry, tuple[Gauge, Gauge, Counter, Counter]] = WeakKeyDictionary()


def _series(registry: CollectorRegistry) -> tuple[Gauge, Gauge, Counter, Counter]:
    if registry not in _known:
        labels = ("entity", "change")
        _known[registry] = (
            Gauge(
                "charter_sweep_last_run_seconds",
                "When the last look for what is due ended, since the epoch.",
                labels,
                registry=registry,
            ),
            Gauge("charter_sweep_last_seconds", "How long the last look took.", labels, registry=registry),
            Counter("charter_swept", "Entities changed by the clock.", labels, registry=registry),
            Counter("charter_sweep_failures", "Looks that failed.", labels, registry=registry),
        )
    return _known[registry]
