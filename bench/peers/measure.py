"""Measures one thing of one contestant. Rates come with the processor time of all processes that took part.

A drain is timed by the database's own stamps of finished jobs, so that neither the start of a worker nor the
interval at which we look is in it.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import psutil

from bench.peers.apps.producer import PICKUP, STARTS
from bench.peers.bare import BULK
from bench.peers.contestants import PATIENCE_S, Producing, Program, Queue, Stuck, require, serviced
from bench.peers.findings import Pickup, Rate
from bench.peers.server import Server
from bench.percentiles import Times

_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Bench:
    """Where measurements are made."""

    server: Server
    folder: Path

    def log(self, name: str) -> Path:
        """Where a process tells what it does."""
        return self.folder / f"{name}.log"

    def submits(self, queue: Queue, name: str, kind: str, count: int, width: int) -> Rate:
        """Submits so many jobs: `single` with so many calls in flight, or `bulk` with so many jobs a call."""
        producing = queue.producers[name]
        with serviced(producing, self.log(name)) as services:
            self.server.settle_down()
            processes = [psutil.Process(pid) for pid in services]
            before = self.server.cpu_s() + _cpu_s(processes)
            told = _produce(producing, kind, count, width)
            spent = self.server.cpu_s() + _cpu_s(processes) - before + told["cpu_s"]
        return Rate(
            per_s=round(told["count"] / told["seconds"], 1),
            cpu_us=round(spent / told["count"] * 1e6, 1),
            count=int(told["count"]),
        )

    async def drain(self, queue: Queue, name: str, jobs: int, at_most_s: float) -> Rate:
        """Has a worker drain so many jobs, or as many as it can in that time."""
        self.fill(queue, jobs)
        connection = await asyncpg.connect(queue.database.url)
        try:
            since = await connection.fetchval("SELECT clock_timestamp()")
            with queue.workers[name].running(self.log(name)) as process:
                await self._first(connection, queue, since, process, name)
                processes = [psutil.Process(process.pid)]
                before, began = self.server.cpu_s() + _cpu_s(processes), datetime.now(UTC)
                until = time.monotonic() + at_most_s
                while time.monotonic() < until and await connection.fetchval(queue.database.text("pending")):
                    await asyncio.sleep(_LOOK_S)
                spent, ended = self.server.cpu_s() + _cpu_s(processes) - before, datetime.now(UTC)
            stamps = [row[0] for row in await connection.fetch(queue.database.text("finished"), since)]
        finally:
            await connection.close()
        return rate_of([each for each in stamps if each <= ended], began, spent)

    async def pickup(self, queue: Queue, name: str, count: int) -> Pickup:
        """Submits a job now and then to an idle worker, and takes the times from submit to start."""
        chosen, worker = queue.pickups[name]
        producing, starts = queue.producers[chosen], self.folder / "starts"
        starts.unlink(missing_ok=True)
        starts.touch()
        with (
            serviced(producing, self.log(chosen)),
            worker.running(self.log(name), **{STARTS: str(starts)}) as process,
        ):
            # The first one only shows that the worker is there.
            _produce(producing, PICKUP, 1, 1)
            await self._lines(starts, 1, process, name)
            starts.write_text("")
            _produce(producing, PICKUP, count, 1)
            lines = await self._lines(starts, count, process, name)
        times = Times()
        for each in lines:
            times.record(float(each))
        return Pickup(waited=times.summary(), histogram=times.encode())

    def fill(self, queue: Queue, jobs: int) -> None:
        """Jobs to drain, and a planner that knows of them."""
        producing = queue.producers[queue.filler]
        with serviced(producing, self.log(queue.filler)):
            # As many again as one call has are submitted before its clock runs.
            _produce(producing, "bulk", jobs - BULK, BULK)
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
        """Returns when the first job is finished: from then on the worker is up."""
        until = time.monotonic() + PATIENCE_S
        query = f"SELECT EXISTS ({queue.database.text('finished')})"
        while not await connection.fetchval(query, since):
            require(process, until, self.log(name), f"The worker of {name} does not finish jobs")
            await asyncio.sleep(_LOOK_S / 5)

    async def _lines(
        self, path: Path, count: int, process: subprocess.Popen[bytes], name: str
    ) -> Sequence[str]:
        until = time.monotonic() + PATIENCE_S
        while len(lines := path.read_text().split()) < count:
            require(process, until, self.log(name), f"The worker of {name} does not finish jobs")
            await asyncio.sleep(_LOOK_S)
        return lines


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


def _produce(producing: Producing, kind: str, count: int, width: int) -> dict[str, float]:
    program: Program = producing.program
    done = subprocess.run(
        [*program.command, producing.address, kind, str(count), str(width)],
        env=program.variables(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Stuck("\n".join(("A producer failed:", *done.stderr.strip().splitlines()[-8:])))
    told: dict[str, float] = json.loads(done.stdout)
    return told


def _cpu_s(processes: Sequence[psutil.Process]) -> float:
    found = 0.0
    for each in processes:
        with suppress(psutil.NoSuchProcess):
            found += sum(each.cpu_times()[:2])
    return found
