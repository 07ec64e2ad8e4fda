"""Run job functions where they cannot block the renewal of leases, and classify their results.

A plain function runs in a child process, which is killed when its time is over. It is killed before the
outcome is written, so that no two runs of a job are in flight at a time. An async function runs on an event
loop apart from the worker's. The built-in functions never block; they stay on the loop of the worker, and so
does everything where time is simulated.

What follows from a result is decided by each system.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, NamedTuple, Self

from handlers.jobs.job_loop import JobLoops
from handlers.jobs.processes import ProcessPool
from handlers.jobs.registry import Job, JobFailed, JobFatal, Output, RegisteredFunction, is_being_canceled
from runtime.call import Call
from runtime.model.text import cut
from runtime.world import RealWorld


class Executor:
    """The child processes and the job loop of one worker, for as long as it works."""

    def __init__(self, names: str | None, call: Call, stopping: asyncio.Event) -> None:
        self._processes = ProcessPool(names)
        self._loops = JobLoops(call.tell)
        self._has_job_loop = isinstance(call.world, RealWorld)
        self._stopping = stopping
        self._stack = AsyncExitStack()
        self._stop_notifier: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._processes)
        await self._stack.enter_async_context(self._loops)
        self._stop_notifier = asyncio.create_task(self._notify_stopping())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stop_notifier is not None:
            self._stop_notifier.cancel()
        await self._stack.aclose()

    async def __call__(self, function: RegisteredFunction, job: Job) -> Output:
        """Run a function to its end. If this is cancelled, it returns when the run has ended."""
        if not function.is_async:
            return await self._processes(function, job)
        if self._has_job_loop and not function.is_built_in:
            return await self._loops(function, job)
        return await function(job)

    async def _notify_stopping(self) -> None:
        await self._stopping.wait()
        self._processes.notify_stopping()


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
