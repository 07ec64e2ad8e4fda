"""A world in which time passes only while a caller waits, and chance always gives the upper bound."""

from __future__ import annotations

import io

from runtime.call import Call
from runtime.observe.log import Log


class StillWorld:
    """Counts the waiting instead of doing it."""

    def __init__(self) -> None:
        self.waited: list[float] = []
        self.bounds: list[tuple[float, float]] = []

    def now_ms(self) -> int:
        return 1_000_000 + round(sum(self.waited) * 1000)

    def monotonic(self) -> float:
        return sum(self.waited)

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)

    def uniform(self, low: float, high: float) -> float:
        self.bounds.append((low, high))
        return high

    def new_id(self) -> str:
        return "00000000-0000-4000-8000-000000000000"

    def new_keys(self, count: int) -> list[str]:
        return [f"00000000-0000-7000-8000-{number:012x}" for number in range(count)]


def make_call(world: StillWorld, *, deadline: float | None = None) -> Call:
    """A call of no particular caller, with a deadline on the world's clock."""
    log = Log("test", "ERROR", world, io.StringIO())
    return Call(world=world, log=log, caller="test", deadline=deadline)
