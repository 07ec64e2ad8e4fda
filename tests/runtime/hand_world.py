"""A world whose clocks are moved by hand and whose chance is written down, and calls in it."""

from __future__ import annotations

import io
import json
from typing import Any

from runtime.call import Call
from runtime.observe.log import Log


class HandWorld:
    """Time passes when someone sleeps or a test says so. Chance takes the upper bound."""

    def __init__(self) -> None:
        self.wall_ms = 1_000_000
        self.seconds = 50.0
        self.slept: list[float] = []
        self.drawn: list[tuple[float, float]] = []
        self._ids = 0

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds

    def uniform(self, low: float, high: float) -> float:
        self.drawn.append((low, high))
        return high

    def new_id(self) -> str:
        self._ids += 1
        return f"00000000-0000-4000-8000-{self._ids:012x}"

    def new_keys(self, count: int) -> list[str]:
        self._ids += count
        return [f"00000000-0000-7000-8000-{self._ids - left:012x}" for left in reversed(range(count))]


class Lines(io.StringIO):
    """A log that can be read back."""

    def read_back(self, event: str | None = None) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.getvalue().splitlines()]
        return [line for line in lines if event is None or line["event"] == event]


def make_call(
    world: HandWorld,
    *,
    caller: str = "desk",
    deadline: float | None = None,
    lines: Lines | None = None,
    level: str = "DEBUG",
) -> Call:
    """A call as its handler would see it."""
    log = Log("test", level, world, lines if lines is not None else Lines())
    return Call(
        world=world, log=log, caller=caller, method="Test.Method", deadline=deadline, request_id="a request"
    )
