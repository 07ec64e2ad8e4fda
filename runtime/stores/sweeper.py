"""Drives the changes that are due by the clock: looks from time to time, and works off all that is due."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from runtime.call.conditions import Failure
from runtime.call.context import Call
from runtime.observe import log as events
from runtime.observe.metrics import Metrics

_FIRST_RETRY_S = 1.0
"""How long after a failed sweep the next one is tried; each further failure doubles it."""


class Sweep(NamedTuple):
    """One change that the clock drives; `step` makes it to a bounded number and says to how many."""

    entity: str
    name: str
    step: Callable[[Call], Awaitable[int]]


async def sweep_regularly(
    sweeps: Sequence[Sweep],
    every_s: float,
    call: Call,
    stopping: asyncio.Event,
    metrics: Metrics | None = None,
    *,
    first_after_s: float = 0.0,
) -> None:
    """Looks every so many seconds, in any number of processes at once; the store keeps them apart.

    What goes by the same clock is done in the order of the spec, so that one change may lead to the next. A
    sweep that failed is tried again with backoff, and not only when its time comes again.
    """
    if first_after_s:
        await _pause(first_after_s, stopping)
    retry_s = _FIRST_RETRY_S
    while not stopping.is_set():
        # A list: what comes later in the order is done although something before it has failed.
        failed = any([(await _sweep_once(sweep, call, stopping, metrics)).failed for sweep in sweeps])
        pause_s = min(retry_s, every_s) if failed else every_s
        retry_s = 2 * pause_s if failed else _FIRST_RETRY_S
        # Some earlier, some later: the sweepers of many processes shall not all come at the same moment.
        await _pause(call.world.uniform(0.8 * pause_s, pause_s), stopping)


async def sweep_all(sweep: Sweep, call: Call, stopping: asyncio.Event, metrics: Metrics | None = None) -> int:
    """Changes everything that is due, a bounded batch at a time; how many that were."""
    return (await _sweep_once(sweep, call, stopping, metrics)).changed


class _Swept(NamedTuple):
    """What one sweep did, and whether it could not do all of it."""

    changed: int
    failed: bool


async def _sweep_once(sweep: Sweep, call: Call, stopping: asyncio.Event, metrics: Metrics | None) -> _Swept:
    changed, began, failed = 0, call.world.monotonic(), False
    try:
        while not stopping.is_set() and (batch := await sweep.step(call)):
            changed += batch
    except Failure as failure:
        failed = True
        call.tell(events.SWEEP_FAILED, f"{sweep.name}: {failure.message}", grpc_code=failure.grpc)
    took = call.world.monotonic() - began
    if metrics is not None:
        metrics.record_sweep(sweep.entity, sweep.name, call.world.now_ms(), took, changed, failed=failed)
    if not failed and call.log.wants(events.SWEPT):
        call.tell(
            events.SWEPT,
            f"{sweep.entity} {sweep.name}",
            entity=sweep.entity,
            changed=changed,
            seconds=round(took, 4),
        )
    return _Swept(changed, failed)


async def _pause(seconds: float, stopping: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stopping.wait()
    except TimeoutError:
        pass
