"""Measures the queues on PostgreSQL.

A drain is timed by the database's own stamps of finished jobs, so that neither the start of a worker nor the
interval at which we look is in it.
"""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import asyncpg
import psutil

from bench.peers.contestants import Queue
from bench.peers.findings import Rate
from bench.peers.programs import PATIENCE_S, require, serviced
from bench.peers.run import BULK
from bench.peers.server import Server
from bench.peers.shared_measures import LOOK_S, Measuring, processor_s, produced


class Bench(Measuring[Server]):
    """Where measurements are made."""

    async def drain(self, queue: Queue, name: str, jobs: int, at_most_s: float) -> Rate:
        """Has a worker drain so many jobs, or as many as it can in that time."""
        self.fill(queue, jobs)
        connection = await asyncpg.connect(queue.database.url)
        try:
            since = await connection.fetchval("SELECT clock_timestamp()")
            with queue.workers[name].running(self.log(name)) as process:
                await self._first(connection, queue, since, process, name)
                processes = [psutil.Process(process.pid)]
                before, began = self.server.cpu_s() + processor_s(processes), datetime.now(UTC)
                until = time.monotonic() + at_most_s
                while time.monotonic() < until and await connection.fetchval(queue.database.text("pending")):
                    await asyncio.sleep(LOOK_S)
                spent, ended = self.server.cpu_s() + processor_s(processes) - before, datetime.now(UTC)
            stamps = [row[0] for row in await connection.fetch(queue.database.text("finished"), since)]
        finally:
            await connection.close()
        return rate_of([each for each in stamps if each <= ended], began, spent)

    def fill(self, queue: Queue, jobs: int) -> None:
        """Jobs to drain, and a planner that knows of them."""
        producing = queue.producers[queue.filler]
        with serviced(producing, self.log(queue.filler)):
            # As many again as one call has are submitted before its clock runs.
            produced(producing, "bulk", jobs - BULK, BULK)
        queue.database.say("ANALYZE")
        self.server.settle_down()

    async def _first(
        self,
        connection: asyncpg.Connection[asyncpg.Record],
        queue: Queue,
        since: datetime,
        process: subprocess.Popen[bytes],
        name: str,
    ) -> None:
        """Return when the first job is finished: from then on the worker is up."""
        until = time.monotonic() + PATIENCE_S
        query = f"SELECT EXISTS ({queue.database.text('finished')})"
        while not await connection.fetchval(query, since):
            require(process, until, self.log(name), f"The worker of {name} does not finish jobs")
            await asyncio.sleep(LOOK_S / 5)


def rate_of(stamps: Sequence[datetime], began: datetime, spent_s: float) -> Rate:
    """The rate between the first and the last stamp: what carries the first one is not in it.

    Processor time was taken from `began` on, so it is divided by what was finished after that.
    """
    if not stamps:
        return Rate(per_s=0.0, cpu_us=0.0, count=0)
    first, last = min(stamps), max(stamps)
    seconds = (last - first).total_seconds()
    within = sum(each > first for each in stamps)
    counted = sum(each > began for each in stamps)
    return Rate(
        per_s=round(within / seconds, 1) if seconds else 0.0,
        cpu_us=round(spent_s / counted * 1e6, 1) if counted else 0.0,
        count=len(stamps),
    )
