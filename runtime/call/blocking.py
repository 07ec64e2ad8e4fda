"""Coroutines for whoever has no event loop: those that wait for nothing are over when they have begun."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


class NeedsLoop(RuntimeError):
    """Something waits for what only an event loop can bring."""


def finished(work: Coroutine[Any, Any, Result]) -> Result:
    """Runs a coroutine that does not wait; raises NeedsLoop if it does."""
    try:
        work.send(None)
    except StopIteration as done:
        result: Result = done.value
        return result
    work.close()
    raise NeedsLoop(f"{getattr(work, '__qualname__', work)} waits for something, and no event loop runs it")


def on_a_loop(make: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Runs a coroutine that does wait, on a loop of its own; for what is rare.

    That is on a thread of its own too, as there may be a loop on this one that a caller must not wait for.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(make())).result()
