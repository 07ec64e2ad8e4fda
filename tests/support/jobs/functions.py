"""Job functions that last long, for the tests of the executor."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

from handlers.jobs import Job, Output, job

FREE = threading.Event()
"""Lets `block` go on, in the process in which it runs."""


@job("tried stuck")
def stuck(job_: Job) -> None:
    """Record its process, and never end."""
    Path(job_.payload).write_text(str(os.getpid()))
    while True:
        time.sleep(60)


@job("tried pid")
def pid(_job: Job) -> int:
    """The process that plain functions run in."""
    return os.getpid()


@job("tried bytes")
def some_bytes(_job: Job) -> Output:
    """No bytes at all, which is not the same as no value."""
    return Output(b"", "nothing")


@job("tried wrong")
def wrong(_job: Job) -> None:
    raise KeyError("lost")


@job("tried block")
async def block(_job: Job) -> str:
    """Blocks the loop that it runs on, which no async function should."""
    while not FREE.is_set():
        time.sleep(0.01)
    return "freed"


@job("tried report")
async def report(job_: Job) -> str:
    """Report its progress, and on which thread that arrives."""
    await job_.report({"from": threading.get_ident()})
    return "told"


@job("tried ident")
async def ident(_job: Job) -> int:
    """The thread that async functions run in."""
    return threading.get_ident()


@job("tried stubborn")
async def stubborn(job_: Job) -> Any:
    """Ignore its cancellation until it is done."""
    import asyncio

    Path(job_.payload).touch()
    waiting = asyncio.ensure_future(asyncio.to_thread(FREE.wait, 60))
    while not waiting.done():
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError:
            continue
    return "done all the same"
