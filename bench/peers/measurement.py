"""Measurements of the queues on PostgreSQL.

A drain is timed by the database's own stamps of finished jobs, so that neither the start of a worker nor our
poll interval is in it.
"""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import asyncpg
import psutil

from bench.peers.contestants import PostgresQueue
from bench.peers.findings import JobRate
from bench.peers.programs import TIMEOUT_S, require_running, start_service
from bench.peers.rounds import BULK
from bench.peers.server import PostgresServer
from bench.peers.server_bench import POLL_S, ServerBench, run_producer, sum_cpu_s


class PostgresBench(ServerBench[PostgresServer]):
    """Bench for the queues on PostgreSQL."""

    async def drain(self, queue: PostgresQueue, name: str, jobs: int, at_most_s: float) -> JobRate:
        """Measure a worker that drains that many jobs, or as many as it can in the time."""
        self.fill(queue, jobs)
        connection = await asyncpg.connect(queue.database.url)
        try:
            since = await connection.fetchval("SELECT clock_timestamp()")
            with queue.workers[name].start(self.log(name)) as process:
                await self._wait_for_first(connection, queue, since, process, name)
                processes = [psutil.Process(process.pid)]
                before, began = self.server.cpu_s() + sum_cpu_s(processes), datetime.now(UTC)
                until = time.monotonic() + at_most_s
                while time.monotonic() < until and await connection.fetchval(
                    queue.database.read_query("pending")
                ):
                    await asyncio.sleep(POLL_S)
                spent, ended = self.server.cpu_s() + sum_cpu_s(processes) - before, datetime.now(UTC)
            stamps = [row[0] for row in await connection.fetch(queue.database.read_query("finished"), since)]
        finally:
            await connection.close()
        return compute_rate([each for each in stamps if each <= ended], began, spent)

    def fill(self, queue: PostgresQueue, jobs: int) -> None:
        """Submit the jobs to drain, and analyze the table for the planner."""
        producing = queue.producers[queue.filler]
        with start_service(producing, self.log(queue.filler)):
            # A producer submits the jobs of one call more before its measurement starts.
            run_producer(producing, "bulk", jobs - BULK, BULK)
        queue.database.execute("ANALYZE")
        self.server.flush()

    async def _wait_for_first(
        self,
        connection: asyncpg.Connection[asyncpg.Record],
        queue: PostgresQueue,
        since: datetime,
        process: subprocess.Popen[bytes],
        name: str,
    ) -> None:
        """Wait until the first job is finished, which shows that the worker runs."""
        until = time.monotonic() + TIMEOUT_S
        query = f"SELECT EXISTS ({queue.database.read_query('finished')})"
        while not await connection.fetchval(query, since):
            require_running(process, until, self.log(name), f"The worker of {name} does not finish jobs")
            await asyncio.sleep(POLL_S / 5)


def compute_rate(stamps: Sequence[datetime], began: datetime, spent_s: float) -> JobRate:
    """Compute the rate between the first and the last stamp, without the first job.

    CPU time was measured from `began` on, so it is divided by the jobs that finished after that.
    """
    if not stamps:
        return JobRate(per_s=0.0, cpu_us=0.0, count=0)
    first, last = min(stamps), max(stamps)
    seconds = (last - first).total_seconds()
    within = sum(each > first for each in stamps)
    counted = sum(each > began for each in stamps)
    return JobRate(
        per_s=round(within / seconds, 1) if seconds else 0.0,
        cpu_us=round(spent_s / counted * 1e6, 1) if counted else 0.0,
        count=len(stamps),
    )
