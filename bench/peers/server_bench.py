"""Measurements that are the same on every server: submits, and pickup latency of an idle worker.

Rates come with the CPU time of all processes that took part.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import psutil

from bench.peers.apps.producer import PICKUP, STARTS
from bench.peers.findings import JobRate, Pickup
from bench.peers.programs import (
    TIMEOUT_S,
    ProducerCommand,
    Program,
    ProgramFailed,
    require_running,
    start_service,
)
from bench.percentiles import LatencyHistogram

POLL_S = 0.1


class MeasuredServer(Protocol):
    """The one server of all contestants."""

    def flush(self) -> None:
        """Write everything out, so that no measurement pays for earlier writes."""
        ...

    def cpu_s(self) -> float:
        """Read the CPU seconds of the server so far."""
        ...


ServerT = TypeVar("ServerT", bound=MeasuredServer)


class Contestant(Protocol):
    """A queue with its producer and worker programs."""

    @property
    def producers(self) -> Mapping[str, ProducerCommand]: ...

    @property
    def workers(self) -> Mapping[str, Program]: ...

    @property
    def pickups(self) -> Mapping[str, tuple[str, Program]]: ...

    def prepare(self, aged: bool) -> None:
        """Delete all jobs; where `aged`, all but those of `age`."""
        ...

    def age(self, jobs: int) -> str:
        """Insert that many other jobs; return a line for the log."""
        ...


@dataclass(frozen=True, slots=True)
class ServerBench(Generic[ServerT]):
    """Bench for the contestants on one server."""

    server: ServerT
    folder: Path

    def log(self, name: str) -> Path:
        """The log file of a process."""
        return self.folder / f"{name}.log"

    def measure_submits(self, queue: Contestant, name: str, kind: str, count: int, width: int) -> JobRate:
        """Measure submits: `single` with `width` calls in flight, or `bulk` with `width` jobs a call."""
        producing = queue.producers[name]
        with start_service(producing, self.log(name)) as services:
            self.server.flush()
            processes = [psutil.Process(pid) for pid in services]
            before = self.server.cpu_s() + sum_cpu_s(processes)
            report = run_producer(producing, kind, count, width)
            spent = self.server.cpu_s() + sum_cpu_s(processes) - before + report["cpu_s"]
        return JobRate(
            per_s=round(report["count"] / report["seconds"], 1),
            cpu_us=round(spent / report["count"] * 1e6, 1),
            count=int(report["count"]),
        )

    async def measure_pickup(self, queue: Contestant, name: str, count: int) -> Pickup:
        """Measure the times from submit to start of jobs that an idle worker gets now and then."""
        chosen, worker = queue.pickups[name]
        producing, starts = queue.producers[chosen], self.folder / "starts"
        starts.unlink(missing_ok=True)
        starts.touch()
        with (
            start_service(producing, self.log(chosen)),
            worker.start(self.log(name), **{STARTS: str(starts)}) as process,
        ):
            # The first job only shows that the worker runs.
            run_producer(producing, PICKUP, 1, 1)
            await self._wait_for_lines(starts, 1, process, name)
            starts.write_text("")
            run_producer(producing, PICKUP, count, 1)
            lines = await self._wait_for_lines(starts, count, process, name)
        times = LatencyHistogram()
        for each in lines:
            times.record(float(each))
        return Pickup(waited=times.summarize(), histogram=times.encode())

    async def _wait_for_lines(
        self, path: Path, count: int, process: subprocess.Popen[bytes], name: str
    ) -> Sequence[str]:
        until = time.monotonic() + TIMEOUT_S
        while len(lines := path.read_text().split()) < count:
            require_running(process, until, self.log(name), f"The worker of {name} does not finish jobs")
            await asyncio.sleep(POLL_S)
        return lines


def run_producer(producing: ProducerCommand, kind: str, count: int, width: int) -> dict[str, float]:
    """Run a producer; return its report."""
    program: Program = producing.program
    done = subprocess.run(
        [*program.command, producing.address, kind, str(count), str(width)],
        env=program.make_variables(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ProgramFailed("\n".join(("A producer failed:", *done.stderr.strip().splitlines()[-8:])))
    report: dict[str, float] = json.loads(done.stdout)
    return report


def sum_cpu_s(processes: Sequence[psutil.Process]) -> float:
    """Sum the CPU seconds of the processes that still run."""
    seconds = 0.0
    for each in processes:
        with suppress(psutil.NoSuchProcess):
            seconds += sum(each.cpu_times()[:2])
    return seconds
