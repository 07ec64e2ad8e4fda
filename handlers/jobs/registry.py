"""Where job functions are registered and found."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
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
        if inspect.iscoroutinefunction(function):
            output: Output = await function(given)
            return output
        made = await asyncio.to_thread(function, given)
        assert isinstance(made, Output)
        return made

    return run
