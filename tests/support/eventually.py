"""Polling for a condition with a timeout: the one way in which tests wait."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar, overload

Seen = TypeVar("Seen")

PATIENCE_S = 90.0
"""The default timeout: far more than anything takes, because the machine may be busy."""
SOMETHING = "what was awaited comes about"


@overload
async def eventually(
    look: Callable[[], Awaitable[Seen]],
    what: str = SOMETHING,
    wanted: Callable[[Seen], object] = bool,
    patience: float = PATIENCE_S,
) -> Seen: ...


@overload
async def eventually(
    look: Callable[[], Seen],
    what: str = SOMETHING,
    wanted: Callable[[Seen], object] = bool,
    patience: float = PATIENCE_S,
) -> Seen: ...


async def eventually(
    look: Callable[[], Any],
    what: str = SOMETHING,
    wanted: Callable[[Any], object] = bool,
    patience: float = PATIENCE_S,
) -> Any:
    """Poll until the value is as wanted, and return it; fail with the last value at the timeout.

    `look` may be a coroutine function or a plain one. Time is that of the event loop, virtual or not.
    """
    clock = asyncio.get_running_loop().time
    until = clock() + patience
    for pause in _pauses():
        seen = look()
        if inspect.isawaitable(seen):
            async with asyncio.timeout(PATIENCE_S):
                seen = await seen
        if wanted(seen):
            break
        assert clock() < until, f"waited in vain: {what}; last seen: {seen!r}"
        await asyncio.sleep(pause)
    return seen


def wait_until(
    look: Callable[[], Seen],
    what: str = SOMETHING,
    wanted: Callable[[Seen], object] = bool,
    patience: float = PATIENCE_S,
) -> Seen:
    """`eventually` for tests without an event loop."""
    until = time.monotonic() + patience
    for pause in _pauses():
        seen = look()
        if wanted(seen):
            break
        assert time.monotonic() < until, f"waited in vain: {what}; last seen: {seen!r}"
        time.sleep(pause)
    return seen


def _pauses() -> Iterator[float]:
    """Generate the pauses between polls, each longer by half than the last, up to a limit.

    A poll of a server costs milliseconds of processor time, which other tests could use.
    """
    pause = 0.002
    while True:
        yield pause
        pause = min(1.5 * pause, 0.1)
