"""Job functions as a user would write them, for the tests: some plain, some async, some that misbehave."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handlers.jobs import Job, JobFailed, JobFatal, job


@dataclass(frozen=True)
class Sum:
    """What `add` needs."""

    left: Any
    right: Any

    def __post_init__(self) -> None:
        if not isinstance(self.left, int) or not isinstance(self.right, int):
            raise TypeError("left and right must be whole numbers")


@job("add", takes=Sum)
def add(given: Job) -> Any:
    """Plain, with an input of its own type."""
    return given.payload.left + given.payload.right


@job("echo")
async def echo(given: Job) -> Any:
    """Async; its type is one that comes with the package, too."""
    return given.payload


@job("noop")
async def noop(_given: Job) -> Any:
    return None


@job("told")
def told(given: Job) -> Any:
    """Says what it was told."""
    return {
        "id": given.job_id,
        "type": given.job_type,
        "attempt": given.attempt,
        "token": given.token,
        "stopping": given.is_stopping(),
        "pid": os.getpid(),
    }


@job("sleep")
async def sleep(given: Job) -> Any:
    """Async, and stops when it is told to."""
    await asyncio.sleep(given.payload)
    return "slept"


@job("gate")
async def gate(given: Job) -> Any:
    """Async, and ends when there is a file, however long that takes."""
    while not Path(given.payload).exists():
        await asyncio.sleep(0.02)
    return "passed"


@job("meet")
async def meet(given: Job) -> Any:
    """Async, and ends when so many have come to a place; says how many were in it, itself included."""
    place, number = given.payload
    here, came = Path(place) / "here", Path(place) / "came"
    for folder in (here, came):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / given.job_id).touch()
    most = 0
    while len([*came.iterdir()]) < number or not most:
        most = max(most, len([*here.iterdir()]))
        await asyncio.sleep(0.01)
    (here / given.job_id).unlink()
    return most


@job("stuck")
def stuck(given: Job) -> Any:
    """Plain, and never ends by itself; a process that it started neither."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    if given.payload:
        Path(given.payload).write_text(f"{os.getpid()} {child.pid}")
    while True:
        time.sleep(0.05)


@job("until stopping")
def until_stopping(given: Job) -> Any:
    """Ends as soon as it knows that its worker is about to stop."""
    given.report({"phase": "waiting"})
    while not given.is_stopping():
        time.sleep(0.01)
    return "told to stop"


@job("crash")
def crash(given: Job) -> Any:
    """Ends its whole process, by a signal or with an exit code."""
    if given.payload == "signal":
        os.kill(os.getpid(), signal.SIGSEGV)
    os._exit(given.payload)


@job("raise")
def raises(given: Job) -> Any:
    """Raises one of several kinds of errors, in a run that may be the first or a later one."""
    match given.payload:
        case "failed":
            raise JobFailed("BUSY", "the other side is busy")
        case "fatal":
            raise JobFatal("NEVER", "this will never work")
        case "exit":
            raise SystemExit(3)
        case "not json":
            return {1, 2}
    raise KeyError("lost")


@job("fail until")
async def fail_until(given: Job) -> Any:
    """Succeeds in the run that its input names."""
    if given.attempt < given.payload:
        raise RuntimeError(f"run {given.attempt} fails")
    return given.attempt


@job("steps")
async def steps(given: Job) -> Any:
    """Tells how far it is, then waits for so many seconds."""
    await given.report({"done": 1, "of": 2})
    await asyncio.sleep(given.payload)
    return "done"


@job("progress until")
async def progress_until(given: Job) -> Any:
    """Tells how far it is all the time, until a file is there."""
    done = 0
    while not Path(given.payload).exists():
        done += 1
        await given.report({"done": done})
        await asyncio.sleep(0.01)
    return done


def double(given: Job) -> Any:
    return 2 * given.payload


MORE = {"double": double}
BROKEN = {"double": 2}
NO_MAPPING = 3


@job("note")
def note(given: Job) -> Any:
    """Writes down that it was run, and in which attempt, and takes its time over it."""
    with Path(given.payload["ledger"]).open("a") as ledger:
        ledger.write(f"{given.job_id} {given.attempt}\n")
    time.sleep(given.payload["seconds"])
    return given.attempt
