"""What every producer does, whatever it submits to: `python -m <app> <address> <kind> <count> <width>`.

It prints one line of JSON. `single` submits one job a call with so many calls in flight; `bulk` submits so
many jobs a call; `pickup` submits a job now and then, each with the time at which it was sent.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache
from pathlib import Path
from typing import Protocol

NOTHING = "noop"
PICKUP = "pickup"
STARTS = "BENCH_STARTS"
"""The variable with the file to which a worker writes how long each job took to be started."""
RUNS = "BENCH_RUNS"
"""The variable with the file that grows by a byte with each job that is run."""
_WARM_UP = 3
_WAVE = 50


class Producer(Protocol):
    """Submits jobs; they are durably stored when it returns."""

    async def submit(self, task: str, payload: dict[str, float]) -> object: ...

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object: ...


class InWaves:
    """Submits many where there is no call for that: so many singles at a time."""

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        raise NotImplementedError

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object:
        for first in range(0, len(payloads), _WAVE):
            await asyncio.gather(*(self.submit(task, each) for each in payloads[first : first + _WAVE]))
        return None


Opened = Callable[[str], AbstractAsyncContextManager[Producer]]


def main(opened: Opened, crowded: Opened | None = None) -> None:
    """Do what the command line says with a producer that is opened for the address.

    `crowded` opens the one for many calls in flight, if that is another.
    """
    address, kind, count, width = sys.argv[1:]
    if crowded is not None and kind == "single" and int(width) > 1:
        opened = crowded
    # All environments have it, as every producer would that cares for speed.
    import uvloop

    print(json.dumps(uvloop.run(produce(opened, address, kind, int(count), int(width)))))


async def produce(opened: Opened, address: str, kind: str, count: int, width: int) -> dict[str, float]:
    """Submit, and says how long that took and what it cost this process."""
    async with opened(address) as producer:
        if kind == "pickup":
            return await _now_and_then(producer, count)
        if kind == "single":
            # Connections are opened and statements prepared before the clock runs.
            await _singly(producer, _WARM_UP * width, width)
        else:
            await producer.submit_all(NOTHING, [{"n": 0}] * width)
        started, spent = time.perf_counter(), time.process_time()
        if kind == "single":
            await _singly(producer, count, width)
        else:
            for first in range(0, count, width):
                numbers = range(first, min(first + width, count))
                await producer.submit_all(NOTHING, [{"n": number} for number in numbers])
        return {
            "count": count,
            "seconds": time.perf_counter() - started,
            "cpu_s": time.process_time() - spent,
        }


async def _singly(producer: Producer, count: int, in_flight: int) -> None:
    numbers = iter(range(count))

    async def one_after_the_other() -> None:
        for number in numbers:
            await producer.submit(NOTHING, {"n": number})

    await asyncio.gather(*(one_after_the_other() for _ in range(in_flight)))


async def _now_and_then(producer: Producer, count: int) -> dict[str, float]:
    """Submit to a worker with nothing to do, after pauses of uneven length."""
    for number in range(count):
        await asyncio.sleep(0.02 + (number * 37 % 50) / 1000)
        await producer.submit(PICKUP, {"sent": time.time()})
    await asyncio.sleep(0.2)
    return {"count": count}


def note_run(_number: float) -> None:
    """Count a job that is run, whatever process it is run in; called by the job's function."""
    os.write(_runs(), b".")


@cache
def _runs() -> int:
    return os.open(os.environ[RUNS], os.O_WRONLY | os.O_APPEND)


def note_start(sent: float) -> None:
    """Write down how long ago a job was sent; called by the job's function as the first thing."""
    waited = time.time() - sent
    with Path(os.environ[STARTS]).open("a") as file:
        file.write(f"{waited:.6f}\n")
