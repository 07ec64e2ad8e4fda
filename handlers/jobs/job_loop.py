"""An event loop in a thread of its own for async job functions, and its watchdog.

The loop of a worker renews leases, so no job function may block it. A function that blocks the job loop
stalls the others on it, but their leases are still renewed, and the log names the function.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from msgspec.structs import replace

from handlers.jobs.registry import Job, Output, RegisteredFunction, ignore_progress
from runtime.model.system import Event

LogEvent = Callable[[Event, str], None]
"""Write an event and a message to the log."""

JOB_LOOP_BLOCKED = Event("job_loop_blocked", "WARNING", always=True)
JOB_LOOP_FREE = Event("job_loop_free", "WARNING", always=True)
_PROBE_INTERVAL_S = 0.5
"""Seconds between two probes of the loop while functions run on it."""
_BLOCKED_AFTER_S = 1.0
"""A loop that has not answered a probe for so many seconds is blocked."""
_CANCEL_WAIT_S = 5.0
"""Timeout of a cancelled run while its loop is blocked."""


@dataclass(eq=False)
class LoopRun:
    """One run of a job function, passed from the thread of the worker to that of the loop and back."""

    function: RegisteredFunction
    job: Job
    ended: asyncio.Future[tuple[Output | None, BaseException | None]]
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    task: asyncio.Task[None] | None = None
    outcome: tuple[Output | None, BaseException | None] = (None, None)

    @property
    def name(self) -> str:
        """The job and its function, for the log."""
        function = self.function.function
        qualified = f"{function.__module__}.{getattr(function, '__qualname__', type(function).__name__)}"
        return f"{self.job.job_type} ({qualified}, job {self.job.job_id})"


class JobLoop:
    """One thread with an event loop. All of its methods are for the thread of the worker."""

    def __init__(self, log: LogEvent) -> None:
        self._log = log
        self._worker = asyncio.get_running_loop()
        self._inbox: deque[LoopRun] = deque()
        self._outbox: deque[LoopRun] = deque()
        self._is_inbox_wakeup_sent = self._is_outbox_wakeup_sent = False
        self._runs: set[LoopRun] = set()
        self._watchdog: asyncio.Task[None] | None = None
        self._probes_sent = self._probes_answered = 0
        self._unanswered_s = 0.0
        self._blocked_by = ""
        is_ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(is_ready,), name="job-loop", daemon=True)
        self._thread.start()
        is_ready.wait()

    @property
    def blocked_s(self) -> float:
        """Seconds without an answer to probes, while the worker's loop went on; 0 where the loop answers."""
        return self._unanswered_s

    def start(self, function: RegisteredFunction, job: Job) -> LoopRun:
        """Start a function on the loop."""
        run = LoopRun(function, forward_report(job, self._worker), self._worker.create_future())
        self._runs.add(run)
        self._inbox.append(run)
        # Coalesce: runs that are started at the same moment share one wake-up.
        if not self._is_inbox_wakeup_sent:
            self._is_inbox_wakeup_sent = True
            self._loop.call_soon_threadsafe(self._begin)
        if self._watchdog is None:
            self._watchdog = self._worker.create_task(self._probe_loop())
        return run

    def cancel(self, run: LoopRun) -> None:
        """Ask a run to end."""
        with suppress(RuntimeError):  # The loop is closed, and all of its runs have ended.
            self._loop.call_soon_threadsafe(lambda: run.task.cancel() if run.task else None)

    async def close(self) -> None:
        """End the thread, unless a function blocks it; a daemon, it does not keep the process from ending."""
        if self._watchdog is not None:
            self._watchdog.cancel()
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop.set)
        if not self.blocked_s:
            await asyncio.to_thread(self._thread.join, _CANCEL_WAIT_S)

    # On the thread of the loop.

    def _serve(self, is_ready: threading.Event) -> None:
        async def serve() -> None:
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
            is_ready.set()
            await self._stop.wait()

        with asyncio.Runner(loop_factory=_new_loop) as runner:
            runner.run(serve())

    def _begin(self) -> None:
        self._is_inbox_wakeup_sent = False
        while self._inbox:
            run = self._inbox.popleft()
            run.task = self._loop.create_task(_call(run), context=run.context)
            run.task.add_done_callback(lambda _, run=run: self._end(run))  # type: ignore[misc]

    def _end(self, run: LoopRun) -> None:
        if run.task is not None and run.task.cancelled():  # Before its first step.
            run.outcome = None, asyncio.CancelledError()
        self._outbox.append(run)
        if not self._is_outbox_wakeup_sent:
            self._is_outbox_wakeup_sent = True
            with suppress(RuntimeError):  # The worker is gone.
                self._worker.call_soon_threadsafe(self._collect)

    def _answer_probe(self, number: int) -> None:
        self._probes_answered = number

    # On the thread of the worker.

    def _collect(self) -> None:
        self._is_outbox_wakeup_sent = False
        while self._outbox:
            run = self._outbox.popleft()
            self._runs.discard(run)
            run.ended.set_result(run.outcome)

    async def _probe_loop(self) -> None:
        """Probe the loop at intervals while anything runs on it; log when it is blocked and free again."""
        while self._runs:
            self._probes_sent += 1
            sent_at = self._worker.time()
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._answer_probe, self._probes_sent)
            await asyncio.sleep(_PROBE_INTERVAL_S)
            while self._probes_answered < self._probes_sent and self._runs:
                # Count intervals, not elapsed time: a suspended process stands still with all its threads.
                self._unanswered_s += _PROBE_INTERVAL_S
                if not self._blocked_by and self.blocked_s >= _BLOCKED_AFTER_S:
                    self._log_blocked()
                await asyncio.sleep(_PROBE_INTERVAL_S)
            if self._blocked_by:
                message = f"it was blocked for {self._worker.time() - sent_at:.1f} s by {self._blocked_by}"
                self._log(JOB_LOOP_FREE, message)
            self._unanswered_s, self._blocked_by = 0.0, ""
        self._watchdog = None

    def _log_blocked(self) -> None:
        task = asyncio.current_task(self._loop)
        blocking = [run.name for run in self._runs if run.task is task and task is not None]
        self._blocked_by = blocking[0] if blocking else "something that is no job function"
        self._log(
            JOB_LOOP_BLOCKED,
            f"{self._blocked_by} blocks the loop of all async job functions; leases are renewed meanwhile. "
            "Await what takes long, or make it a plain function, which has a process of its own.",
        )


class JobLoops:
    """Run async job functions on a loop apart from that of the worker.

    A loop that a function still blocks after its run was cancelled is left to that function, and the next
    runs get a new one.
    """

    def __init__(self, log: LogEvent) -> None:
        self._log = log
        self._current: JobLoop | None = None
        self._all: list[JobLoop] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for loop in self._all:
            await loop.close()

    async def __call__(self, function: RegisteredFunction, job: Job) -> Output:
        """Run a function to its end, even if this is cancelled: only then is the run over."""
        if self._current is None:
            self._current = JobLoop(self._log)
            self._all.append(self._current)
        loop = self._current
        run = loop.start(function, job)
        try:
            # Not `await run.ended`, which a cancel would cancel too: the end of the run may be on its way
            # to this loop at that moment, and would find no future to resolve.
            await asyncio.wait({run.ended})
        except asyncio.CancelledError:
            loop.cancel(run)
            if not await self._wait_for_end(loop, run):
                if self._current is loop:
                    self._current = None
                raise
        output, error = run.ended.result()
        if error is not None:
            raise error
        assert output is not None
        return output

    async def _wait_for_end(self, loop: JobLoop, run: LoopRun) -> bool:
        """Wait for the end of a run that was cancelled; False if it blocks its loop for too long."""
        while not run.ended.done():
            with suppress(asyncio.CancelledError):  # It is being cancelled already.
                await asyncio.wait({run.ended}, timeout=_PROBE_INTERVAL_S)
            if loop.blocked_s >= _CANCEL_WAIT_S and not run.ended.done():
                return False
        return True


async def _call(run: LoopRun) -> None:
    """Call the function of a run. Any exception is the outcome of the run, and does not end the loop."""
    try:
        run.outcome = await run.function(run.job), None
    except GeneratorExit:
        raise
    except BaseException as error:
        run.outcome = None, error


def forward_report(job: Job, worker: asyncio.AbstractEventLoop) -> Job:
    """Replace `report` by one that may be awaited on another loop and calls it on the worker's."""
    report = job.report
    if report is ignore_progress:
        return job

    async def call_report(progress: Mapping[str, Any]) -> None:
        await report(progress)

    def send(progress: Mapping[str, Any]) -> Coroutine[Any, Any, None]:
        async def report_and_wait() -> None:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call_report(progress), worker))

        return report_and_wait()

    return replace(job, report=send)


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # uvloop has no wheels for Windows
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
