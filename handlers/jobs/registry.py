"""The registry of job functions: register them, and find them by job type."""

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


async def ignore_progress(_progress: Mapping[str, Any]) -> None:
    """Discard a progress report; the default where the system shows no progress."""


def _is_never_stopping() -> bool:
    return False


class Job(Struct, frozen=True):
    """The argument of a job function: the job as it was submitted, and the world it runs in."""

    job_id: str
    job_type: str
    world: World
    payload: Any = None
    """The submitted payload, where the system takes one: a JSON value, or that value converted by the
    `takes` of the function."""
    attempt: int = 1
    """The number of this run. A job may be run again after a failure or a lost worker."""
    token: str = ""
    """An idempotency token: the same in every run of a job, and unique to the job. A function sends it to an
    external service, so that a repeated run has no second effect there."""
    work_duration_ms: int = 0
    payload_size_bytes: int = 0
    max_output_bytes: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    report: Callable[[Mapping[str, Any]], Awaitable[None]] = ignore_progress
    """Report the progress of the run, where the system shows it. A plain function calls it without await."""
    is_stopping: Callable[[], bool] = _is_never_stopping
    """Whether the worker is shutting down, so that a long run should end soon."""


class Output(Struct, frozen=True):
    """The output of a job: bytes, or a value that JSON can hold."""

    content: bytes = b""
    summary: str = ""
    value: Any = None
    json: str = ""
    """The value encoded as JSON; empty where the function returned an Output of its own."""


class JobFailed(Exception):
    """End a run as failed, with a reason. Where a system retries failed runs, this one is retried."""

    def __init__(self, reason: str, summary: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.summary = summary or reason


class JobRaised(JobFailed):
    """End a run with an exception that its function raised in a child process; the reason names its type."""


class JobFatal(JobFailed):
    """End a job as failed for good, without a retry."""


JobFunction = Callable[[Job], Awaitable[Any]] | Callable[[Job], Any]


class RegisteredFunction(Struct, frozen=True):
    """A job function and the options that it was registered with."""

    job_type: str
    function: JobFunction
    timeout_s: float | None = None
    is_async: bool = False
    takes: Callable[..., Any] | None = None

    async def __call__(self, job: Job) -> Output:
        """Run the function on the event loop of the caller, which a slow plain function blocks."""
        job = self.decode_payload(job)
        returned: Any = await self.function(job) if self.is_async else self.function(job)
        return self.to_output(returned)

    @property
    def is_built_in(self) -> bool:
        """Whether the function is one of this package, and not a user's own."""
        return self.function.__module__.startswith(f"{__package__}.")

    def decode_payload(self, job: Job) -> Job:
        """Convert the payload as `takes` says. A payload that cannot be converted fails the job for good."""
        if self.takes is None:
            return job
        try:
            return replace(job, payload=_convert_payload(self.takes, job.payload))
        except Exception as error:
            summary = f"BAD_INPUT: {type(error).__name__}: {error}"
            raise JobFatal("BAD_INPUT", summary) from error

    def to_output(self, returned: Any) -> Output:
        """Convert the return value of the function to an Output."""
        if isinstance(returned, Output) and isinstance(returned.content, bytes):
            return returned
        try:
            text = "null" if returned is None else _encode_json(returned)  # Most functions return nothing.
            return Output(text.encode(), value=returned, json=text)
        except (TypeError, ValueError, RecursionError):
            raise TypeError(
                f"the function of {self.job_type!r} must return an Output of bytes or a value that JSON can "
                f"hold, not {returned!r:.100}"
            ) from None


_encode_json = json.JSONEncoder(allow_nan=False).encode
_FUNCTIONS: dict[str, RegisteredFunction] = {}
_SEPARATE_FUNCTIONS: dict[str, RegisteredFunction] = {}
_ACTIVE_REGISTRIES = [_FUNCTIONS]
ANY = "*"


def job(
    job_type: str, *, timeout_s: float | None = None, takes: Callable[..., Any] | None = None
) -> Callable[[JobFunction], JobFunction]:
    """Register a function under a job type; `*` is for types that have none, where a system allows it.

    `takes` converts the payload to what the function expects, and raises any exception where it cannot. A
    dataclass gets the members of the payload as keyword arguments.
    """

    def register(function: JobFunction) -> JobFunction:
        if (earlier := _ACTIVE_REGISTRIES[-1].get(job_type)) is not None:
            raise ValueError(f"job type {job_type!r} is registered already, by {earlier.function}")
        _ACTIVE_REGISTRIES[-1][job_type] = wrap_function(job_type, function, timeout_s=timeout_s, takes=takes)
        return function

    return register


def wrap_function(
    job_type: str,
    function: JobFunction,
    *,
    timeout_s: float | None = None,
    takes: Callable[..., Any] | None = None,
) -> RegisteredFunction:
    """Wrap a function as a RegisteredFunction without adding it to the registry."""
    return RegisteredFunction(job_type, function, timeout_s, inspect.iscoroutinefunction(function), takes)


@contextmanager
def separate_registry() -> Iterator[Mapping[str, RegisteredFunction]]:
    """Register a user's own functions separately: they may have the job types of the built-in ones."""
    _ACTIVE_REGISTRIES.append(_SEPARATE_FUNCTIONS)
    try:
        yield _SEPARATE_FUNCTIONS
    finally:
        _ACTIVE_REGISTRIES.pop()


def all_registered() -> Mapping[str, RegisteredFunction]:
    """List the registered functions by job type, without the one for `*`."""
    return {job_type: each for job_type, each in _FUNCTIONS.items() if job_type != ANY}


def find(job_type: str) -> RegisteredFunction | None:
    """Find the function of a job type; None where there is none."""
    return _FUNCTIONS.get(job_type) if job_type != ANY else None


def find_or_any(job_type: str) -> RegisteredFunction:
    """Find the function of a job type, or the one for `*`."""
    return find(job_type) or _FUNCTIONS[ANY]


def _convert_payload(takes: Callable[..., Any], payload: Any) -> Any:
    if not is_dataclass(takes):
        return takes(payload)
    if not isinstance(payload, dict):
        raise TypeError(f"an object is needed, not {payload!r:.50}")
    return takes(**payload)


def is_being_canceled() -> bool:
    """Whether the task that runs a job is being canceled, and not just something within the job."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
