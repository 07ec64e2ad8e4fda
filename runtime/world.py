"""The world: clocks, random numbers and new ids, injected as one object.

So the same code runs under a virtual clock and a seeded generator, where every run can be replayed.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
import uuid
from typing import Protocol


class World(Protocol):
    """Clocks, random numbers and new ids, for handlers and the engine."""

    def now_ms(self) -> int:
        """Return the wall-clock time, in milliseconds of UTC since the epoch. It may step back."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a monotonic clock."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Sleep, and for no less than this on the monotonic clock."""
        ...

    def uniform(self, low: float, high: float) -> float:
        """Return a random number between two bounds."""
        ...

    def new_id(self) -> str:
        """Return a new version 4 UUID as lowercase text."""
        ...

    def new_keys(self, count: int) -> list[str]:
        """Return new version 7 UUIDs as lowercase text, each greater than the one before it.

        They begin with the time, so that keys of the same time are neighbours: an index adds them to the page
        at hand. Random ones go to any of its pages, and every page that is touched has to be written.
        """
        ...


class RealWorld:
    """The real clocks and random numbers."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    monotonic = staticmethod(time.monotonic)
    uniform = staticmethod(random.uniform)

    async def sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        await asyncio.sleep(seconds)
        # An event loop that counts in milliseconds may wake up a part of one too early.
        while (left := until - time.monotonic()) > 0:
            await asyncio.sleep(left)

    def new_id(self) -> str:
        return str(uuid.uuid4())

    def new_keys(self, count: int) -> list[str]:
        return ordered_uuids(time.time_ns(), os.urandom(6 * count).hex())


def ordered_uuids(now_ns: int, drawn: str) -> list[str]:
    """Make version 7 UUIDs: a time in 1/4096 of a millisecond, a number, and 12 of the random digits."""
    now_ms, rest_ns = divmod(now_ns, 1_000_000)
    time_text = f"{now_ms:012x}"
    stem = f"{time_text[:8]}-{time_text[8:]}-7{rest_ns * 4096 // 1_000_000:03x}"
    # The two highest bits of the number say which kind of UUID this is.
    return [
        f"{stem}-{0x8000 | number & 0x3FFF:x}-{drawn[start : start + 12]}"
        for number, start in enumerate(range(0, len(drawn), 12))
    ]
