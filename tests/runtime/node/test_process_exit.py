"""Processes whose libraries have threads that are still in Python when the process ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

LINGERING = """
import os, sys, threading, time
from asyncio import base_events

reading, writing = os.pipe()

class Finalized:
    # Only an interpreter that is being torn down comes here: the thread goes on, and has a second to do so.
    def __del__(self, write=os.write, sleep=time.sleep):
        write(writing, b".")
        sleep(1)

sys.modules["finalized"] = Finalized()
call = base_events.BaseEventLoop.call_soon_threadsafe

def linger(loop, *args, **kwargs):
    handle = call(loop, *args, **kwargs)
    if threading.current_thread().name.startswith("Dummy"):  # a thread that Python did not start
        lingering.set()
        os.read(reading, 1)
    return handle

lingering = threading.Event()
base_events.BaseEventLoop.call_soon_threadsafe = linger
"""
"""A thread of a library wakes the loop, and does not return before the interpreter ends."""

READING = """
import asyncio, obstore.store

async def read():
    store = obstore.store.MemoryStore()
    await store.put_async("a", b"b")

asyncio.run(read())
assert lingering.wait(30)
print("done")
"""
EXITING = "from runtime.node.process_exit import exit_process\nexit_process(3)\n"


def run(code: str, environ: dict[str, str], *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", LINGERING + code, *arguments],
        cwd=ROOT,
        env={**os.environ, **environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_process_ends_with_its_code_and_output_while_a_library_has_threads() -> None:
    assert run(READING + EXITING, {}) == (3, "done\n", "")
