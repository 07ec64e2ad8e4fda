"""Measurements of the queues on Redis.

A drain is timed by a file that grows by a byte with each run, in whatever process, from the first run until
the last one has ended and no job is left: a queue that settles jobs later gains nothing.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import psutil

from bench.peers.apps.producer import RUNS
from bench.peers.findings import JobRate
from bench.peers.on_redis.contestants import RedisQueue
from bench.peers.on_redis.server import RedisServer
from bench.peers.programs import TIMEOUT_S, require_running, start_service
from bench.peers.rounds import BULK
from bench.peers.server_bench import ServerBench, run_producer, sum_cpu_s

_POLL_S = 0.01


class RedisBench(ServerBench[RedisServer]):
    """Bench for the queues on Redis."""

    async def drain(self, queue: RedisQueue, name: str, jobs: int, at_most_s: float) -> JobRate:
        """Measure a worker that drains that many jobs, or as many as it can in the time."""
        producing = queue.producers[queue.filler]
        with start_service(producing, self.log(queue.filler)):
            # A producer submits the jobs of one call more before its measurement starts.
            run_producer(producing, "bulk", jobs - BULK, BULK)
        self.server.flush()
        runs = self.folder / "runs"
        runs.write_bytes(b"")
        with (
            queue.database.open() as client,
            queue.workers[name].start(self.log(name), **{RUNS: str(runs)}) as process,
        ):
            until = time.monotonic() + TIMEOUT_S
            while not (first := _read_size(runs)):
                require_running(process, until, self.log(name), f"The worker of {name} does not run jobs")
                await asyncio.sleep(_POLL_S)
            began, before = time.monotonic(), self._read_cpu_s(process.pid)
            until = began + at_most_s
            while (done := _read_size(runs)) < jobs and time.monotonic() < until:
                await asyncio.sleep(_POLL_S)
            while done >= jobs and queue.count_left(client) and time.monotonic() < until:
                await asyncio.sleep(_POLL_S)
            seconds, spent = time.monotonic() - began, self._read_cpu_s(process.pid) - before
        count = done - first
        return JobRate(
            per_s=round(count / seconds, 1) if count else 0.0,
            cpu_us=round(spent / count * 1e6, 1) if count else 0.0,
            count=count,
        )

    def _read_cpu_s(self, pid: int) -> float:
        """Read the CPU seconds of the server and of a worker with all its children, ended ones included."""
        worker = psutil.Process(pid)
        ended = sum(worker.cpu_times()[2:4])
        return self.server.cpu_s() + ended + sum_cpu_s([worker, *worker.children(recursive=True)])


def _read_size(path: Path) -> int:
    return path.stat().st_size
