"""Run coroutines from blocking code: without an event loop where they never wait, else on a new one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


class NeedsLoop(RuntimeError):
    """A coroutine waits for something that only an event loop can deliver."""


def run_without_loop(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine that never waits; raises NeedsLoop if it does."""
    try:
        work.send(None)
    except StopIteration as done:
        result: Result = done.value
        return result
    work.close()
    raise NeedsLoop(f"{getattr(work, '__qualname__', work)} waits for something, and no event loop runs it")


def run_on_new_loop(make: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run a coroutine that waits, on a new event loop; for rare calls.

    The loop is on a thread of its own, as this thread may have a running loop, which must not be blocked.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(make())).result()
