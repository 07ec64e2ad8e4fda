"""Runs a job function to its end, whatever that is. What a system makes of it is the system's own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from handlers.jobs.registry import Job, JobFailed, JobFatal, Output, Registered, is_being_canceled
from runtime.model.text import cut


class Reasons(NamedTuple):
    """What a system calls the failures that no function has raised."""

    timed_out: str
    not_json: str


class Ran(NamedTuple):
    """How a run ended: its result as JSON, or why it failed, and whether for good."""

    result: str = ""
    error: str | None = None
    is_final: bool = False


Execute = Callable[[Registered, Job], Coroutine[Any, Any, Output]]
"""Runs a function to its end, where it cannot hold up the worker."""


async def run(function: Registered, given: Job, seconds: float, reasons: Reasons, execute: Execute) -> Ran:
    """Runs a function. Whatever it raises is a failed run, and no more than that."""
    begun = execute(function, given)
    try:
        async with asyncio.timeout(seconds) as limit:
            output = await begun
    except JobFailed as failed:
        return Ran(error=failed.summary, is_final=isinstance(failed, JobFatal))
    except BaseException as error:
        if isinstance(error, GeneratorExit):
            raise
        if isinstance(error, asyncio.CancelledError) and is_being_canceled():
            raise
        if isinstance(error, TimeoutError) and limit.expired():
            return Ran(error=f"{reasons.timed_out}: it took longer than {seconds:g} s")
        return Ran(error=f"{type(error).__name__}: {error}")
    try:
        return Ran(output.json or json.dumps(output.value, allow_nan=False))
    except (TypeError, ValueError):
        return Ran(error=reasons.not_json, is_final=True)


def storable(error: str, most: int) -> str:
    """An error as text that a store takes, of so many bytes at most."""
    return cut(error.encode(errors="replace").decode().replace("\0", ""), most)
