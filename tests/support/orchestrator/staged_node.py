"""Serve a node like `python -m runtime.serve` does, with job functions for tests, and wrong clocks.

The product has no door for this: functions are registered by importing the module that has them, so a program
that does so and then serves is enough.
"""

from __future__ import annotations

import asyncio
import datetime as dates
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from handlers.jobs import Job, JobFailed, JobFatal, job
from runtime.serve import load_system, main
from tests.support.orchestrator.patient_node import extend_timeouts
from tests.support.orchestrator.stage import BEGUN, ENDED, STOPPED, VARIABLE, Stage

CLOCK_OFFSET = "CHARTER_CLOCK_SHIFT_SECONDS"
"""By how much the clocks of the process are wrong."""


def write(phase: str, job_: Job) -> None:
    """Record for the tests how far a run has come."""
    stage().write(phase, job_.job_id, job_.attempt, os.environ.get("WORKER_ID", str(os.getpid())))


def stage() -> Stage:
    """The folder that the tests read."""
    return Stage(Path(os.environ[VARIABLE]))


def is_requested(job_: Job, option: str) -> bool:
    """Whether a payload requests something in this very run: in every run, or in those that it numbers."""
    requested: Any = (job_.payload or {}).get(option, False)
    return requested is True or (isinstance(requested, list) and job_.attempt in requested)


@job("act")
async def act(job_: Job) -> Any:
    """Do as the payload says: die, wait at a gate or for a time, fail, or return a value."""
    payload = job_.payload or {}
    write(BEGUN, job_)
    try:
        if is_requested(job_, "die"):
            os.kill(os.getpid(), signal.SIGKILL)
        if gate := payload.get("gate"):
            await stage().pass_gate(gate)
        await asyncio.sleep(payload.get("seconds", 0))
    except asyncio.CancelledError:
        write(STOPPED, job_)
        raise
    if is_requested(job_, "fatal"):
        raise JobFatal("FATAL", payload.get("error", "fatal on purpose"))
    if is_requested(job_, "fail"):
        raise JobFailed("FAILED", payload.get("error", "failed on purpose"))
    write(ENDED, job_)
    if is_requested(job_, "die_late"):
        os.kill(os.getpid(), signal.SIGKILL)
    return payload.get("returns", {"attempt": job_.attempt, "token": job_.token, "got": payload})


@job("plain")
def plain(job_: Job) -> Any:
    """Run in a process of its own and return at once."""
    write(BEGUN, job_)
    return "plain"


@job("endless", timeout_s=1)
def endless(job_: Job) -> None:
    """A plain function that never ends, and notes which of its runs are there at the same time."""
    (stage().folder / f"endless-{job_.attempt}").write_text(str(os.getpid()))
    for earlier in range(1, job_.attempt):
        known = stage().folder / f"endless-{earlier}"
        if known.exists() and (pid := known.read_text()) and Path(f"/proc/{pid}").exists():
            stage().open("two at a time")
    write(BEGUN, job_)
    while True:
        time.sleep(60)


@job("block")
async def block(job_: Job) -> str:
    """Block the event loop until a gate is opened, which no async function should."""
    write(BEGUN, job_)
    while not (stage().folder / (job_.payload or {})["gate"]).exists():
        time.sleep(0.01)
    return "unblocked"


@job("hasty", timeout_s=0.5)
async def hasty(job_: Job) -> None:
    """Has a shorter timeout than its duration."""
    write(BEGUN, job_)
    await asyncio.sleep(3600)


class Odd(BaseException):
    """An exception of an unexpected kind."""


@job("odd")
async def odd(job_: Job) -> Any:
    """Raise or return something that no job function should."""
    write(BEGUN, job_)
    kind = (job_.payload or {})["kind"]
    if kind == "exit":
        sys.exit(3)
    if kind == "cancel":
        raise asyncio.CancelledError
    if kind == "odd":
        raise Odd("of no known kind")
    if kind == "group":
        raise BaseExceptionGroup("several", [Odd("one"), ValueError("another")])
    if kind == "unstorable text":
        raise JobFailed("FAILED", "a NUL \0 and half a pair \ud800")
    if kind == "unstorable result":
        return {"text": "a NUL \0"}
    if kind == "surrogate result":
        return {"text": "half a pair \ud800"}
    return object()


@job("stubborn")
async def stubborn(job_: Job) -> str:
    """Ignore the cancellation, and come to the end all the same."""
    write(BEGUN, job_)
    gate = stage().pass_gate((job_.payload or {})["gate"])
    waiting = asyncio.ensure_future(gate)
    while not waiting.done():
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError:
            write(STOPPED, job_)
    write(ENDED, job_)
    return "stubborn"


def offset_clocks(seconds: float) -> None:
    """Make every clock that Python code of this process may read wrong by so much."""
    really, really_ns, steadily = time.time, time.time_ns, time.monotonic
    time.time = lambda: really() + seconds
    time.time_ns = lambda: really_ns() + int(seconds * 1e9)
    time.monotonic = lambda: steadily() + abs(seconds)

    class OffsetDatetime(dates.datetime):
        @classmethod
        def now(cls, tz: dates.tzinfo | None = None) -> Any:
            return dates.datetime.now(tz) + dates.timedelta(seconds=seconds)

    import runtime.node.node
    import runtime.stores.postgres  # noqa: F401

    load_system("orchestrator")
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("runtime", "handlers", "generated"):
            for attribute, value in list(vars(module).items()):
                if value is dates.datetime:
                    setattr(module, attribute, OffsetDatetime)


if __name__ == "__main__":
    extend_timeouts()
    if os.environ.get(CLOCK_OFFSET):
        offset_clocks(float(os.environ[CLOCK_OFFSET]))
    sys.exit(main(sys.argv[1:]))
