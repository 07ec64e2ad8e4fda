"""Tests in virtual time: timers keep their order however slow the machine is, and nothing is waited for."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any

from runtime.simulation import SimulatedWorld
from runtime.simulation.loop import VirtualLoop
from runtime.world import RealWorld


class LoopWorld(RealWorld):
    """The real world with the clock of the event loop."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _InOrder(VirtualLoop):
    """Runs ready callbacks in their order, as every loop does but those that look for races."""

    def _process_events(self, _event_list: list[Any], /) -> None:
        pass


def in_virtual_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs a test that uses neither sockets nor threads under a clock that jumps to the next timer."""

    @functools.wraps(test)
    def run(**given: Any) -> None:
        with asyncio.Runner(loop_factory=lambda: _InOrder(SimulatedWorld(0))) as runner:
            runner.run(test(**given))

    return run
