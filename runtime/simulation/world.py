"""Time, chance and ids of a simulated run."""

from __future__ import annotations

import asyncio
import random
import uuid

from runtime.world import ordered_uuids

EPOCH_MS = 1_700_000_000_000
"""Where the wall clock of every run begins."""


class SimulatedWorld:
    """The world as a seed makes it: its clocks follow the running loop, its chance can be replayed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._chance = self.chance("world")
        self._stepped_ms = 0

    def chance(self, purpose: str) -> random.Random:
        """Random numbers for one purpose. What one purpose draws does not change what another gets."""
        return random.Random(f"{self.seed}/{purpose}")

    def step_wall_clock(self, by_ms: int) -> None:
        """Sets the wall clock, back or forth; the monotonic one does not notice."""
        self._stepped_ms += by_ms

    def now_ms(self) -> int:
        return EPOCH_MS + self._stepped_ms + int(self.monotonic() * 1000)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def uniform(self, low: float, high: float) -> float:
        return self._chance.uniform(low, high)

    def new_id(self) -> str:
        return str(uuid.UUID(int=self._chance.getrandbits(128), version=4))

    def new_keys(self, count: int) -> list[str]:
        return ordered_uuids(self.now_ms() * 1_000_000, self._chance.randbytes(6 * count).hex())
