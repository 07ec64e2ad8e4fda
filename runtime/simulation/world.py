"""Clocks, random numbers and ids of a simulated run."""

from __future__ import annotations

import asyncio
import random
import uuid

from runtime.world import ordered_uuids

EPOCH_MS = 1_700_000_000_000
"""The start of the wall clock of every run."""


class SimulatedWorld:
    """A world with the clocks of the running loop, and random numbers from a seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._chance = self.chance("world")
        self._stepped_ms = 0

    def chance(self, purpose: str) -> random.Random:
        """Return a random generator for one purpose, independent of the others."""
        return random.Random(f"{self.seed}/{purpose}")

    def step_wall_clock(self, by_ms: int) -> None:
        """Step the wall clock, back or forth; the monotonic clock is not affected."""
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
