"""Measures the queues on Redis.

A drain is timed by a file that grows by a byte with each run, whatever process it is in, from the first run
until the last and nothing being left: a queue that marks the end of jobs later gains nothing.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import psutil

from bench.peers.apps.producer import RUNS
from bench.peers.findings import Rate
from bench.peers.on_redis.contestants import Queue
from bench.peers.on_redis.server import Server
from bench.peers.programs import PATIENCE_S, require, serviced
from bench.peers.run import BULK
from bench.peers.shared_measures import Measuring, processor_s, produced

_LOOK_S = 0.01


class Bench(Measuring[Server]):
    """Where measurements are made."""

    async def drain(self, queue: Queue, name: str, jobs: int, at_most_s: float) -> Rate:
        """Has a worker drain so many jobs, or as many as it can in that time."""
        producing = queue.producers[queue.filler]
        with serviced(producing, self.log(queue.filler)):
            # As many again as one call has are submitted before its clock runs.
            produced(producing, "bulk", jobs - BULK, BULK)
        self.server.settle_down()
        runs = self.folder / "runs"
        runs.write_bytes(b"")
        with (
            queue.database.opened() as there,
            queue.workers[name].running(self.log(name), **{RUNS: str(runs)}) as process,
        ):
            until = time.monotonic() + PATIENCE_S
            while not (first := _size(runs)):
                require(process, until, self.log(name), f"The worker of {name} does not run jobs")
                await asyncio.sleep(_LOOK_S)
            began, before = time.monotonic(), self._spent(process.pid)
            until = began + at_most_s
            while (done := _size(runs)) < jobs and time.monotonic() < until:
                await asyncio.sleep(_LOOK_S)
            while done >= jobs and queue.left(there) and time.monotonic() < until:
                await asyncio.sleep(_LOOK_S)
            seconds, spent = time.monotonic() - began, self._spent(process.pid) - before
        count = done - first
        return Rate(
            per_s=round(count / seconds, 1) if count else 0.0,
            cpu_us=round(spent / count * 1e6, 1) if count else 0.0,
            count=count,
        )

    def _spent(self, pid: int) -> float:
        """Processor seconds of the server and of a worker with all its children, of those too that ended."""
        worker = psutil.Process(pid)
        ended = sum(worker.cpu_times()[2:4])
        return self.server.cpu_s() + ended + processor_s([worker, *worker.children(recursive=True)])


def _size(path: Path) -> int:
    return path.stat().st_size
