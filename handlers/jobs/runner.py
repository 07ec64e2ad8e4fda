"""Run a job function to its end and classify the result. Each system decides what follows from it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from handlers.jobs.registry import Job, JobFailed, JobFatal, Output, RegisteredFunction, is_being_canceled
from runtime.model.text import cut


class FailureReasons(NamedTuple):
    """The names that a system gives to failures that no function has raised."""

    timed_out: str
    not_json: str


class RunResult(NamedTuple):
    """The result of a run: its output as JSON, or its error, and whether that is final."""

    result: str = ""
    error: str | None = None
    is_final: bool = False


Execute = Callable[[RegisteredFunction, Job], Coroutine[Any, Any, Output]]
"""Run a function to its end, where it cannot block the worker."""


async def run(
    function: RegisteredFunction, job: Job, seconds: float, reasons: FailureReasons, execute: Execute
) -> RunResult:
    """Run a function. Any exception that it raises is a failed run, and no more than that."""
    running = execute(function, job)
    try:
        async with asyncio.timeout(seconds) as limit:
            output = await running
    except JobFailed as failed:
        return RunResult(error=failed.summary, is_final=isinstance(failed, JobFatal))
    except BaseException as error:
        if isinstance(error, GeneratorExit):
            raise
        if isinstance(error, asyncio.CancelledError) and is_being_canceled():
            raise
        if isinstance(error, TimeoutError) and limit.expired():
            return RunResult(error=f"{reasons.timed_out}: it took longer than {seconds:g} s")
        return RunResult(error=f"{type(error).__name__}: {error}")
    try:
        return RunResult(output.json or json.dumps(output.value, allow_nan=False))
    except (TypeError, ValueError):
        return RunResult(error=reasons.not_json, is_final=True)


def to_storable_text(error: str, max_bytes: int) -> str:
    """Convert an error to text that a store takes: valid UTF-8 without NUL, of `max_bytes` at most."""
    return cut(error.encode(errors="replace").decode().replace("\0", ""), max_bytes)
