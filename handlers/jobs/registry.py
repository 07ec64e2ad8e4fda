"""Where job functions are registered and found."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from runtime.world import World


async def unheard(_progress: Mapping[str, Any]) -> None:
    """Where nobody asks how far a run is."""


def _never() -> bool:
    return False


class Job(Struct, frozen=True):
    """What a job function is told: the job as it was submitted, and the world it runs in."""

    job_id: str
    job_type: str
    world: World
    payload: Any = None
    """What was submitted with it, where the system takes a payload: a value of JSON, or what the function
    said that it takes."""
    attempt: int = 1
    """Which run this is. A job may be run again after a failure or a lost worker."""
    token: str = ""
    """The same in every run of a job and in no other job. A function sends it along to a service outside, so
    that a repeated run has no second effect there."""
    work_duration_ms: int = 0
    payload_size_bytes: int = 0
    max_output_bytes: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    report: Callable[[Mapping[str, Any]], Awaitable[None]] = unheard
    """Tells how far the run is, where the system shows it to those who ask. A plain one just calls it."""
    is_stopping: Callable[[], bool] = _never
    """Whether the worker is about to stop, so that a long run had better end soon."""


class Output(Struct, frozen=True):
    """What a job leaves behind: bytes, or a value that JSON can hold."""

    content: bytes = b""
    summary: str = ""
    value: Any = None
    json: str = ""
    """The value as JSON, where a function returned nothing else."""


class JobFailed(Exception):
    """Ends a run as failed, with a reason. Where a system repeats failed runs, this one is repeated."""

    def __init__(self, reason: str, summary: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.summary = summary or reason


class JobRaised(JobFailed):
    """Ends a run with something that its function raised elsewhere; the reason names its type."""


class JobFatal(JobFailed):
    """Ends a job as failed for good: another run would be no use."""


JobFunction = Callable[[Job], Awaitable[Any]] | Callable[[Job], Any]


class Registered(Struct, frozen=True):
    """A job function with what was said of it."""

    job_type: str
    function: JobFunction
    timeout_s: float | None = None
    is_async: bool = False
    takes: Callable[..., Any] | None = None

    async def __call__(self, given: Job) -> Output:
        """Runs it on the loop of whoever calls it, so a plain function that takes long holds that up."""
        given = self.decoded(given)
        made: Any = await self.function(given) if self.is_async else self.function(given)
        return self.output(made)

    @property
    def is_built_in(self) -> bool:
        """Whether it came with this package, and is no one's own."""
        return self.function.__module__.startswith(f"{__package__}.")

    def decoded(self, given: Job) -> Job:
        """The job with its payload as the function takes it. One that cannot be is the end of the job."""
        if self.takes is None:
            return given
        try:
            return replace(given, payload=_taken(self.takes, given.payload))
        except Exception as error:
            why = f"BAD_INPUT: {type(error).__name__}: {error}"
            raise JobFatal("BAD_INPUT", why) from error

    def output(self, made: Any) -> Output:
        """What a function returned, as an output."""
        if isinstance(made, Output) and isinstance(made.content, bytes):
            return made
        try:
            text = "null" if made is None else _json(made)  # Most functions return nothing.
            return Output(text.encode(), value=made, json=text)
        except (TypeError, ValueError, RecursionError):
            raise TypeError(
                f"the function of {self.job_type!r} must return an Output of bytes or a value that JSON can "
                f"hold, not {made!r:.100}"
            ) from None


_json = json.JSONEncoder(allow_nan=False).encode
_FUNCTIONS: dict[str, Registered] = {}
_APART: dict[str, Registered] = {}
_REGISTERING = [_FUNCTIONS]
ANY = "*"


def job(
    job_type: str, *, timeout_s: float | None = None, takes: Callable[..., Any] | None = None
) -> Callable[[JobFunction], JobFunction]:
    """Registers a function under a job type; `*` is for types that have none, where a system allows it.

    `takes` makes of the payload what the function wants to see, and raises what it likes where it cannot. A
    dataclass is given the members of the payload by their names.
    """

    def register(function: JobFunction) -> JobFunction:
        if (earlier := _REGISTERING[-1].get(job_type)) is not None:
            raise ValueError(f"job type {job_type!r} is registered already, by {earlier.function}")
        _REGISTERING[-1][job_type] = registered(job_type, function, timeout_s=timeout_s, takes=takes)
        return function

    return register


def registered(
    job_type: str,
    function: JobFunction,
    *,
    timeout_s: float | None = None,
    takes: Callable[..., Any] | None = None,
) -> Registered:
    """A function that nobody else finds."""
    return Registered(job_type, function, timeout_s, inspect.iscoroutinefunction(function), takes)


@contextmanager
def apart() -> Iterator[Mapping[str, Registered]]:
    """While somebody's own functions are registered: theirs may have the types of those that come along."""
    _REGISTERING.append(_APART)
    try:
        yield _APART
    finally:
        _REGISTERING.pop()


def all_registered() -> Mapping[str, Registered]:
    """The functions of all types that have one of their own."""
    return {job_type: each for job_type, each in _FUNCTIONS.items() if job_type != ANY}


def find(job_type: str) -> Registered | None:
    """The function of a job type, ready to be awaited."""
    return _FUNCTIONS.get(job_type) if job_type != ANY else None


def find_or_any(job_type: str) -> Registered:
    """The function of a job type, or the one for all that have none."""
    return find(job_type) or _FUNCTIONS[ANY]


def _taken(takes: Callable[..., Any], payload: Any) -> Any:
    if not is_dataclass(takes):
        return takes(payload)
    if not isinstance(payload, dict):
        raise TypeError(f"an object is needed, not {payload!r:.50}")
    return takes(**payload)


def is_being_canceled() -> bool:
    """Whether whoever runs a job is being stopped; a job may have canceled something of its own."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
