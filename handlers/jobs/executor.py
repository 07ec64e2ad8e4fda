"""Runs the job functions of a worker where they cannot keep it from renewing leases.

A plain function runs in a process, which is ended when its time is over: before that is written, so that no
two runs of a job go on at a time. An async one runs on a loop apart from the worker's. Those that come along
never block; they stay on the loop of the worker, and so does everything where time is simulated.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from handlers.jobs.job_loop import JobLoops
from handlers.jobs.processes import Processes
from handlers.jobs.registry import Job, Output, Registered
from runtime.call import Call
from runtime.world import RealWorld


class Executor:
    """The processes and the loop of one worker, as long as it works."""

    def __init__(self, names: str | None, call: Call, stopping: asyncio.Event) -> None:
        self._processes = Processes(names)
        self._loops = JobLoops(call.tell)
        self._is_apart = isinstance(call.world, RealWorld)
        self._stopping = stopping
        self._stack = AsyncExitStack()
        self._telling: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._processes)
        await self._stack.enter_async_context(self._loops)
        self._telling = asyncio.create_task(self._tell_stopping())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._telling is not None:
            self._telling.cancel()
        await self._stack.aclose()

    async def __call__(self, function: Registered, given: Job) -> Output:
        """Run a function to its end. If this is cancelled it returns when nothing of the run goes on."""
        if not function.is_async:
            return await self._processes(function, given)
        if self._is_apart and not function.is_built_in:
            return await self._loops(function, given)
        return await function(given)

    async def _tell_stopping(self) -> None:
        await self._stopping.wait()
        self._processes.tell_stopping()
