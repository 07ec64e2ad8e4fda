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
    """The input of `add`."""

    left: Any
    right: Any

    def __post_init__(self) -> None:
        if not isinstance(self.left, int) or not isinstance(self.right, int):
            raise TypeError("left and right must be whole numbers")


@job("add", takes=Sum)
def add(job_: Job) -> Any:
    """Plain, with an input of its own type."""
    return job_.payload.left + job_.payload.right


@job("echo")
async def echo(job_: Job) -> Any:
    """Async; its type is one that comes with the package, too."""
    return job_.payload


@job("noop")
async def noop(_job: Job) -> Any:
    return None


@job("describe")
def describe(job_: Job) -> Any:
    """Return the fields of its job."""
    return {
        "id": job_.job_id,
        "type": job_.job_type,
        "attempt": job_.attempt,
        "token": job_.token,
        "stopping": job_.is_stopping(),
        "pid": os.getpid(),
    }


@job("sleep")
async def sleep(job_: Job) -> Any:
    """Async, and stops when it is cancelled."""
    await asyncio.sleep(job_.payload)
    return "slept"


@job("gate")
async def gate(job_: Job) -> Any:
    """Async, and ends when there is a file, however long that takes."""
    while not Path(job_.payload).exists():
        await asyncio.sleep(0.02)
    return "passed"


@job("meet")
async def meet(job_: Job) -> Any:
    """Async, and ends when so many have come to a place; says how many were in it, itself included."""
    place, number = job_.payload
    here, came = Path(place) / "here", Path(place) / "came"
    for folder in (here, came):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / job_.job_id).touch()
    most = 0
    while len([*came.iterdir()]) < number or not most:
        most = max(most, len([*here.iterdir()]))
        await asyncio.sleep(0.01)
    (here / job_.job_id).unlink()
    return most


@job("stuck")
def stuck(job_: Job) -> Any:
    """Plain, and never ends by itself; a process that it started neither."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    if job_.payload:
        Path(job_.payload).write_text(f"{os.getpid()} {child.pid}")
    while True:
        time.sleep(0.05)


@job("until stopping")
def until_stopping(job_: Job) -> Any:
    """Ends as soon as it knows that its worker is about to stop."""
    job_.report({"phase": "waiting"})
    while not job_.is_stopping():
        time.sleep(0.01)
    return "told to stop"


@job("crash")
def crash(job_: Job) -> Any:
    """Ends its whole process, by a signal or with an exit code."""
    if job_.payload == "signal":
        os.kill(os.getpid(), signal.SIGSEGV)
    os._exit(job_.payload)


@job("raise")
def raises(job_: Job) -> Any:
    """Raises one of several kinds of errors, in a run that may be the first or a later one."""
    match job_.payload:
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
async def fail_until(job_: Job) -> Any:
    """Succeeds in the run that its input names."""
    if job_.attempt < job_.payload:
        raise RuntimeError(f"run {job_.attempt} fails")
    return job_.attempt


@job("steps")
async def steps(job_: Job) -> Any:
    """Report its progress, then wait for so many seconds."""
    await job_.report({"done": 1, "of": 2})
    await asyncio.sleep(job_.payload)
    return "done"


@job("progress until")
async def progress_until(job_: Job) -> Any:
    """Report its progress all the time, until a file is there."""
    done = 0
    while not Path(job_.payload).exists():
        done += 1
        await job_.report({"done": done})
        await asyncio.sleep(0.01)
    return done


def double(job_: Job) -> Any:
    return 2 * job_.payload


MORE = {"double": double}
BROKEN = {"double": 2}
NO_MAPPING = 3


@job("note")
def note(job_: Job) -> Any:
    """Record that it was run, and in which attempt, and last a while."""
    with Path(job_.payload["ledger"]).open("a") as ledger:
        ledger.write(f"{job_.job_id} {job_.attempt}\n")
    time.sleep(job_.payload["seconds"])
    return job_.attempt
