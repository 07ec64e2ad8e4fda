"""Drives the edges that are due by the clock: looks from time to time, and works off all that is due."""

from __future__ import annotations

import asyncio
from typing import Any

from runtime import log as events
from runtime.call import Call
from runtime.conditions import Failure
from runtime.store import KeptStore
from runtime.tables import Transition


async def sweep_regularly(
    store: KeptStore[Any], transition: Transition, every_s: float, call: Call, stopping: asyncio.Event
) -> None:
    """Looks every so many seconds, in any number of processes at once; the store keeps them apart."""
    while not stopping.is_set():
        await sweep_all(store, transition, call, stopping)
        # Some earlier, some later: the sweepers of many processes shall not all come at the same moment.
        await _pause(call.world.uniform(0.8 * every_s, every_s), stopping)


async def sweep_all(
    store: KeptStore[Any], transition: Transition, call: Call, stopping: asyncio.Event
) -> int:
    """Moves everything that is due, a bounded batch at a time; how many that were."""
    moved = 0
    try:
        while not stopping.is_set() and (batch := await store.sweep(transition, call)):
            moved += batch
    except Failure as failure:
        call.tell(events.SWEEP_FAILED, f"{transition.name}: {failure.message}", grpc_code=failure.grpc)
    return moved


async def _pause(seconds: float, stopping: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stopping.wait()
    except TimeoutError:
        pass
