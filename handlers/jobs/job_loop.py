"""An event loop in a thread of its own for async job functions, and the watch over it.

The loop of a worker renews leases, so no job function may block it. A function that blocks this loop stalls
the others on it, but their leases are renewed all the same, and the log names the function.
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

from handlers.jobs.registry import Job, Output, Registered, unheard
from runtime.model.system import Event

Tell = Callable[[Event, str], None]
"""Writes an event and a message to the log."""

JOB_LOOP_BLOCKED = Event("job_loop_blocked", "WARNING", always=True)
JOB_LOOP_FREE = Event("job_loop_free", "WARNING", always=True)
_LOOK_S = 0.5
"""Seconds between two questions to the loop while functions run on it."""
_BLOCKED_S = 1.0
"""A loop that has not answered for so many seconds is blocked."""
_PATIENCE_S = 5.0
"""How long a run that was cancelled is waited for while its loop is blocked."""


@dataclass(eq=False)
class Run:
    """One call of a job function, from the thread of the worker to that of the loop and back."""

    function: Registered
    given: Job
    ended: asyncio.Future[tuple[Output | None, BaseException | None]]
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    task: asyncio.Task[None] | None = None
    made: tuple[Output | None, BaseException | None] = (None, None)

    @property
    def name(self) -> str:
        """The job and its function, for the log."""
        known = self.function.function
        qualified = f"{known.__module__}.{getattr(known, '__qualname__', type(known).__name__)}"
        return f"{self.given.job_type} ({qualified}, job {self.given.job_id})"


class JobLoop:
    """One thread with an event loop. All of its methods are for the thread of the worker."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._worker = asyncio.get_running_loop()
        self._inbox: deque[Run] = deque()
        self._outbox: deque[Run] = deque()
        self._is_inbox_told = self._is_outbox_told = False
        self._runs: set[Run] = set()
        self._watch: asyncio.Task[None] | None = None
        self._asked = self._answered = 0
        self._silent_s = 0.0
        self._blocked_by = ""
        is_ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(is_ready,), name="job-loop", daemon=True)
        self._thread.start()
        is_ready.wait()

    @property
    def blocked_s(self) -> float:
        """For how long the loop has not answered while this one went on; 0 where it does."""
        return self._silent_s

    def start(self, function: Registered, given: Job) -> Run:
        """Start a function on the loop."""
        run = Run(function, replace_report(given, self._worker), self._worker.create_future())
        self._runs.add(run)
        self._inbox.append(run)
        # Those that are started at the same moment share one wake-up.
        if not self._is_inbox_told:
            self._is_inbox_told = True
            self._loop.call_soon_threadsafe(self._begin)
        if self._watch is None:
            self._watch = self._worker.create_task(self._look())
        return run

    def cancel(self, run: Run) -> None:
        """Ask a run to end."""
        with suppress(RuntimeError):  # The loop is closed, and all of its runs have ended.
            self._loop.call_soon_threadsafe(lambda: run.task.cancel() if run.task else None)

    async def close(self) -> None:
        """End the thread, unless a function blocks it; it does not keep the process from ending."""
        if self._watch is not None:
            self._watch.cancel()
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop.set)
        if not self.blocked_s:
            await asyncio.to_thread(self._thread.join, _PATIENCE_S)

    # On the thread of the loop.

    def _serve(self, is_ready: threading.Event) -> None:
        async def serve() -> None:
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
            is_ready.set()
            await self._stop.wait()

        with asyncio.Runner(loop_factory=_new_loop) as runner:
            runner.run(serve())

    def _begin(self) -> None:
        self._is_inbox_told = False
        while self._inbox:
            run = self._inbox.popleft()
            run.task = self._loop.create_task(_call(run), context=run.context)
            run.task.add_done_callback(lambda _, run=run: self._end(run))  # type: ignore[misc]

    def _end(self, run: Run) -> None:
        if run.task is not None and run.task.cancelled():  # Before its first step.
            run.made = None, asyncio.CancelledError()
        self._outbox.append(run)
        if not self._is_outbox_told:
            self._is_outbox_told = True
            with suppress(RuntimeError):  # The worker is gone.
                self._worker.call_soon_threadsafe(self._collect)

    def _answer(self, number: int) -> None:
        self._answered = number

    # On the thread of the worker.

    def _collect(self) -> None:
        self._is_outbox_told = False
        while self._outbox:
            run = self._outbox.popleft()
            self._runs.discard(run)
            run.ended.set_result(run.made)

    async def _look(self) -> None:
        """Ask the loop again and again whether it goes on, as long as anything runs on it."""
        while self._runs:
            self._asked += 1
            asked = self._worker.time()
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._answer, self._asked)
            await asyncio.sleep(_LOOK_S)
            while self._answered < self._asked and self._runs:
                # However long it really was: a process that was suspended stood still with all its threads.
                self._silent_s += _LOOK_S
                if not self._blocked_by and self.blocked_s >= _BLOCKED_S:
                    self._tell_blocked()
                await asyncio.sleep(_LOOK_S)
            if self._blocked_by:
                message = f"it was blocked for {self._worker.time() - asked:.1f} s by {self._blocked_by}"
                self._tell(JOB_LOOP_FREE, message)
            self._silent_s, self._blocked_by = 0.0, ""
        self._watch = None

    def _tell_blocked(self) -> None:
        task = asyncio.current_task(self._loop)
        found = [run.name for run in self._runs if run.task is task and task is not None]
        self._blocked_by = found[0] if found else "something that is no job function"
        self._tell(
            JOB_LOOP_BLOCKED,
            f"{self._blocked_by} blocks the loop of all async job functions; leases are renewed meanwhile. "
            "Await what takes long, or make it a plain function, which has a process of its own.",
        )


class JobLoops:
    """Runs async job functions on a loop apart from that of the worker.

    A loop that a function blocks even when it should have ended is left to that function, and the next runs
    have a new one.
    """

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._current: JobLoop | None = None
        self._all: list[JobLoop] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for loop in self._all:
            await loop.close()

    async def __call__(self, function: Registered, given: Job) -> Output:
        """Run a function to its end, also if this is cancelled: only then is the run over."""
        if self._current is None:
            self._current = JobLoop(self._tell)
            self._all.append(self._current)
        loop = self._current
        run = loop.start(function, given)
        try:
            # Not `await run.ended`, which a cancel would cancel too: the end of the run may be on its way
            # to this loop at that moment, and would find nothing to be noted in.
            await asyncio.wait({run.ended})
        except asyncio.CancelledError:
            loop.cancel(run)
            if not await self._is_over(loop, run):
                if self._current is loop:
                    self._current = None
                raise
        output, error = run.ended.result()
        if error is not None:
            raise error
        assert output is not None
        return output

    async def _is_over(self, loop: JobLoop, run: Run) -> bool:
        """Wait for the end of a run that was cancelled; False if it blocks its loop for too long."""
        while not run.ended.done():
            with suppress(asyncio.CancelledError):  # It is on its way to its end already.
                await asyncio.wait({run.ended}, timeout=_LOOK_S)
            if loop.blocked_s >= _PATIENCE_S and not run.ended.done():
                return False
        return True


async def _call(run: Run) -> None:
    """Call the function of a run. Whatever it raises is what came of it, and ends no loop."""
    try:
        run.made = await run.function(run.given), None
    except GeneratorExit:
        raise
    except BaseException as error:
        run.made = None, error


def replace_report(given: Job, worker: asyncio.AbstractEventLoop) -> Job:
    """The job with a `report` that may be awaited on another loop than the worker's."""
    report = given.report
    if report is unheard:
        return given

    async def reporting(progress: Mapping[str, Any]) -> None:
        await report(progress)

    def send(progress: Mapping[str, Any]) -> Coroutine[Any, Any, None]:
        async def sent() -> None:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(reporting(progress), worker))

        return sent()

    return replace(given, report=send)


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # uvloop has no wheels for Windows
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
