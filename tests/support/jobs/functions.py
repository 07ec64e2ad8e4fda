"""Job functions that take long in every way there is, for the tests of the executor."""

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
def stuck(given: Job) -> None:
    """Says which process it runs in, and never ends."""
    Path(given.payload).write_text(str(os.getpid()))
    while True:
        time.sleep(60)


@job("tried pid")
def pid(_given: Job) -> int:
    """The process that plain functions run in."""
    return os.getpid()


@job("tried bytes")
def some_bytes(_given: Job) -> Output:
    """No bytes at all, which is not the same as no value."""
    return Output(b"", "nothing")


@job("tried wrong")
def wrong(_given: Job) -> None:
    raise KeyError("lost")


@job("tried block")
async def block(_given: Job) -> str:
    """Blocks the loop that it runs on, which no async function should."""
    while not FREE.is_set():
        time.sleep(0.01)
    return "freed"


@job("tried report")
async def report(given: Job) -> str:
    """Tells how far it is, and on which thread that is heard."""
    await given.report({"from": threading.get_ident()})
    return "told"


@job("tried ident")
async def ident(_given: Job) -> int:
    """The thread that async functions run in."""
    return threading.get_ident()


@job("tried stubborn")
async def stubborn(given: Job) -> Any:
    """Does not let itself be cancelled before it is done."""
    import asyncio

    Path(given.payload).touch()
    waiting = asyncio.ensure_future(asyncio.to_thread(FREE.wait, 60))
    while not waiting.done():
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError:
            continue
    return "done all the same"
