"""Run the job functions of a worker where they cannot block its renewal of leases.

A plain function runs in a child process, which is killed when its time is over. It is killed before the
outcome is written, so that no two runs of a job are in flight at a time. An async function runs on an event
loop apart from the worker's. The built-in functions never block; they stay on the loop of the worker, and so
does everything where time is simulated.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from handlers.jobs.job_loop import JobLoops
from handlers.jobs.processes import ProcessPool
from handlers.jobs.registry import Job, Output, RegisteredFunction
from runtime.call import Call
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
