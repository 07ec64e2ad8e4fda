"""Where job functions are registered and found."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from runtime.world import World


@dataclass(frozen=True, slots=True)
class Job:
    """What a job function is told: the job as it was submitted, and the world it runs in."""

    job_id: str
    job_type: str
    work_duration_ms: int
    payload_size_bytes: int
    max_output_bytes: int
    world: World
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Output:
    """What a job leaves behind."""

    content: bytes = b""
    summary: str = ""


class JobFailed(Exception):
    """Ends a job as failed, with a reason that its client reads."""

    def __init__(self, reason: str, summary: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.summary = summary or reason


JobFunction = Callable[[Job], Awaitable[Output]] | Callable[[Job], Output]
_FUNCTIONS: dict[str, JobFunction] = {}
_ANY = "*"


def job(job_type: str) -> Callable[[JobFunction], JobFunction]:
    """Registers a function under a job type; `*` is for every type that has none of its own."""

    def register(function: JobFunction) -> JobFunction:
        if job_type in _FUNCTIONS:
            raise ValueError(f"job type {job_type!r} is registered already, by {_FUNCTIONS[job_type]}")
        _FUNCTIONS[job_type] = function
        return function

    return register


def find(job_type: str) -> Callable[[Job], Awaitable[Output]]:
    """The function of a job type, ready to be awaited."""
    function = _FUNCTIONS.get(job_type) or _FUNCTIONS[_ANY]

    async def run(given: Job) -> Output:
        made: object
        if inspect.iscoroutinefunction(function):
            made = await function(given)
        else:
            made = await _in_thread(function, given)
        if not isinstance(made, Output) or not isinstance(made.content, bytes):
            raise TypeError(f"the function of {job_type!r} must return an Output of bytes, not {made!r:.100}")
        return made

    return run


async def _in_thread(function: Callable[[Job], object], given: Job) -> object:
    """Runs a plain function in a thread of its own.

    Those of a pool are joined when the process ends, so a function that hangs would keep it from ending.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[object, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def settle(made: object, error: BaseException | None) -> None:
        if not ended.done():
            ended.set_result((made, error))

    def work() -> None:
        made, error = None, None
        try:
            made = context.run(function, given)
        except BaseException as caught:
            error = caught
        with suppress(RuntimeError):  # The loop is closed; nobody waits any more.
            loop.call_soon_threadsafe(settle, made, error)

    threading.Thread(target=work, name=f"job-{given.job_id}", daemon=True).start()
    made, error = await ended
    if error is not None:
        raise error
    return made
