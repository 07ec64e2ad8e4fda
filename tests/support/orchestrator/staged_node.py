"""Serves a node like `python -m runtime.serve` does, with job functions for tests, and clocks that are wrong.

The product has no door for this: functions are registered by importing the module that has them, so a program
that does so and then serves is all it takes.
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
from tests.support.orchestrator.patient_node import be_patient
from tests.support.orchestrator.stage import BEGUN, ENDED, STOPPED, VARIABLE, Stage

SHIFT = "CHARTER_CLOCK_SHIFT_SECONDS"
"""By how much the clocks of the process are wrong."""


def write(phase: str, given: Job) -> None:
    """Tells the tests how far a run has come."""
    stage().write(phase, given.job_id, given.attempt, os.environ.get("WORKER_ID", str(os.getpid())))


def stage() -> Stage:
    """Where the tests look."""
    return Stage(Path(os.environ[VARIABLE]))


def is_meant(given: Job, what: str) -> bool:
    """Whether a payload asks for something in this very run: in every run, or in those that it numbers."""
    asked: Any = (given.payload or {}).get(what, False)
    return asked is True or (isinstance(asked, list) and given.attempt in asked)


@job("act")
async def act(given: Job) -> Any:
    """Does what its payload says: dies, waits at a gate or for a time, fails, and returns something."""
    payload = given.payload or {}
    write(BEGUN, given)
    try:
        if is_meant(given, "die"):
            os.kill(os.getpid(), signal.SIGKILL)
        if gate := payload.get("gate"):
            await stage().passed(gate)
        await asyncio.sleep(payload.get("seconds", 0))
    except asyncio.CancelledError:
        write(STOPPED, given)
        raise
    if is_meant(given, "fatal"):
        raise JobFatal("FATAL", payload.get("error", "fatal on purpose"))
    if is_meant(given, "fail"):
        raise JobFailed("FAILED", payload.get("error", "failed on purpose"))
    write(ENDED, given)
    if is_meant(given, "die_late"):
        os.kill(os.getpid(), signal.SIGKILL)
    return payload.get("returns", {"attempt": given.attempt, "token": given.token, "got": payload})


@job("plain")
def plain(given: Job) -> Any:
    """Runs in a process of its own and is done at once."""
    write(BEGUN, given)
    return "plain"


@job("endless", timeout_s=2)
def endless(given: Job) -> None:
    """A plain function that never ends, and notes which of its runs are there at the same time."""
    (stage().folder / f"endless-{given.attempt}").write_text(str(os.getpid()))
    for earlier in range(1, given.attempt):
        known = stage().folder / f"endless-{earlier}"
        if known.exists() and (pid := known.read_text()) and Path(f"/proc/{pid}").exists():
            stage().open("two at a time")
    write(BEGUN, given)
    while True:
        time.sleep(60)


@job("block")
async def block(given: Job) -> str:
    """Blocks its loop until a gate is opened, which no async function should."""
    write(BEGUN, given)
    while not (stage().folder / (given.payload or {})["gate"]).exists():
        time.sleep(0.01)
    return "unblocked"


@job("hasty", timeout_s=0.5)
async def hasty(given: Job) -> None:
    """Has less time than it takes."""
    write(BEGUN, given)
    await asyncio.sleep(3600)


class Odd(BaseException):
    """Not what anybody expects."""


@job("odd")
async def odd(given: Job) -> Any:
    """Raises or returns what no job function should."""
    write(BEGUN, given)
    kind = (given.payload or {})["kind"]
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
async def stubborn(given: Job) -> str:
    """Does not let itself be stopped, and comes to its end all the same."""
    write(BEGUN, given)
    gate = stage().passed((given.payload or {})["gate"])
    waiting = asyncio.ensure_future(gate)
    while not waiting.done():
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError:
            write(STOPPED, given)
    write(ENDED, given)
    return "stubborn"


def shift_clocks(seconds: float) -> None:
    """Makes every clock that Python code of this process may look at wrong by so much."""
    really, really_ns, steadily = time.time, time.time_ns, time.monotonic
    time.time = lambda: really() + seconds
    time.time_ns = lambda: really_ns() + int(seconds * 1e9)
    time.monotonic = lambda: steadily() + abs(seconds)

    class Shifted(dates.datetime):
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
                    setattr(module, attribute, Shifted)


if __name__ == "__main__":
    be_patient()
    if os.environ.get(SHIFT):
        shift_clocks(float(os.environ[SHIFT]))
    sys.exit(main(sys.argv[1:]))
