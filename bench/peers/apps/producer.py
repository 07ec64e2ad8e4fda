"""Command line of every producer program: `python -m <app> <address> <kind> <count> <width>`.

It prints one line of JSON. `single` submits one job a call with `width` calls in flight; `bulk` submits
`width` jobs a call; `pickup` submits a job now and then, each with the time at which it was sent.
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
"""The variable with the file to which a worker writes the time from submit to start of each job."""
RUNS = "BENCH_RUNS"
"""The variable with the file to which a worker appends a byte for each run of a job."""
_WARM_UP = 3
_WAVE = 50


class JobProducer(Protocol):
    """Producer of jobs, which are durably stored when a submit returns."""

    async def submit(self, task: str, payload: dict[str, float]) -> object: ...

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object: ...


class WaveProducer:
    """Producer for queues without a bulk call: it submits that many single jobs at a time."""

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        raise NotImplementedError

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object:
        for first in range(0, len(payloads), _WAVE):
            await asyncio.gather(*(self.submit(task, each) for each in payloads[first : first + _WAVE]))
        return None


OpenProducer = Callable[[str], AbstractAsyncContextManager[JobProducer]]


def main(open_producer: OpenProducer, open_concurrent: OpenProducer | None = None) -> None:
    """Run the command line with a producer that is opened for the address.

    `open_concurrent` opens the producer for many calls in flight, if that is another one.
    """
    address, kind, count, width = sys.argv[1:]
    if open_concurrent is not None and kind == "single" and int(width) > 1:
        open_producer = open_concurrent
    # All environments have uvloop.
    import uvloop

    print(json.dumps(uvloop.run(produce(open_producer, address, kind, int(count), int(width)))))


async def produce(
    open_producer: OpenProducer, address: str, kind: str, count: int, width: int
) -> dict[str, float]:
    """Submit jobs, and return the seconds and the CPU time of this process."""
    async with open_producer(address) as producer:
        if kind == "pickup":
            return await _submit_with_pauses(producer, count)
        if kind == "single":
            # Open connections and prepare statements before the measurement starts.
            await _submit_singly(producer, _WARM_UP * width, width)
        else:
            await producer.submit_all(NOTHING, [{"n": 0}] * width)
        started, spent = time.perf_counter(), time.process_time()
        if kind == "single":
            await _submit_singly(producer, count, width)
        else:
            for first in range(0, count, width):
                numbers = range(first, min(first + width, count))
                await producer.submit_all(NOTHING, [{"n": number} for number in numbers])
        return {
            "count": count,
            "seconds": time.perf_counter() - started,
            "cpu_s": time.process_time() - spent,
        }


async def _submit_singly(producer: JobProducer, count: int, in_flight: int) -> None:
    numbers = iter(range(count))

    async def submit_in_turn() -> None:
        for number in numbers:
            await producer.submit(NOTHING, {"n": number})

    await asyncio.gather(*(submit_in_turn() for _ in range(in_flight)))


async def _submit_with_pauses(producer: JobProducer, count: int) -> dict[str, float]:
    """Submit to an idle worker, after pauses of uneven length."""
    for number in range(count):
        await asyncio.sleep(0.02 + (number * 37 % 50) / 1000)
        await producer.submit(PICKUP, {"sent": time.time()})
    await asyncio.sleep(0.2)
    return {"count": count}


def record_run(_number: float) -> None:
    """Count a run of a job, whatever its process; called by the job function."""
    os.write(_open_runs(), b".")


@cache
def _open_runs() -> int:
    return os.open(os.environ[RUNS], os.O_WRONLY | os.O_APPEND)


def record_start(sent: float) -> None:
    """Write how long ago a job was sent; called by the job function before anything else."""
    waited = time.time() - sent
    with Path(os.environ[STARTS]).open("a") as file:
        file.write(f"{waited:.6f}\n")
