"""What is measured alike on every server: submits, and how soon an idle worker starts a job.

Rates come with the processor time of all processes that took part.
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
from bench.peers.findings import Pickup, Rate
from bench.peers.programs import PATIENCE_S, Producing, Program, Stuck, require, serviced
from bench.percentiles import LatencyHistogram

LOOK_S = 0.1


class Served(Protocol):
    """The server that all contestants share."""

    def settle_down(self) -> None:
        """Write everything out, so that no measurement pays for what came before it."""
        ...

    def cpu_s(self) -> float:
        """Processor seconds of the server so far."""
        ...


ServerT = TypeVar("ServerT", bound=Served)


class Contestant(Protocol):
    """A queue with the programs around it."""

    @property
    def producers(self) -> Mapping[str, Producing]: ...

    @property
    def workers(self) -> Mapping[str, Program]: ...

    @property
    def pickups(self) -> Mapping[str, tuple[str, Program]]: ...

    def prepare(self, aged: bool) -> None:
        """Leave nothing but, where that is asked for, what it was given by `age`."""
        ...

    def age(self, jobs: int) -> str:
        """Give it that many jobs to carry along; what to tell of it."""
        ...


@dataclass(frozen=True, slots=True)
class Measuring(Generic[ServerT]):
    """Where measurements are made."""

    server: ServerT
    folder: Path

    def log(self, name: str) -> Path:
        """Where a process tells what it does."""
        return self.folder / f"{name}.log"

    def submits(self, queue: Contestant, name: str, kind: str, count: int, width: int) -> Rate:
        """Submit so many jobs: `single` with so many calls in flight, or `bulk` with so many jobs a call."""
        producing = queue.producers[name]
        with serviced(producing, self.log(name)) as services:
            self.server.settle_down()
            processes = [psutil.Process(pid) for pid in services]
            before = self.server.cpu_s() + processor_s(processes)
            told = produced(producing, kind, count, width)
            spent = self.server.cpu_s() + processor_s(processes) - before + told["cpu_s"]
        return Rate(
            per_s=round(told["count"] / told["seconds"], 1),
            cpu_us=round(spent / told["count"] * 1e6, 1),
            count=int(told["count"]),
        )

    async def pickup(self, queue: Contestant, name: str, count: int) -> Pickup:
        """Submit a job now and then to an idle worker, and takes the times from submit to start."""
        chosen, worker = queue.pickups[name]
        producing, starts = queue.producers[chosen], self.folder / "starts"
        starts.unlink(missing_ok=True)
        starts.touch()
        with (
            serviced(producing, self.log(chosen)),
            worker.running(self.log(name), **{STARTS: str(starts)}) as process,
        ):
            # The first one only shows that the worker is there.
            produced(producing, PICKUP, 1, 1)
            await self._lines(starts, 1, process, name)
            starts.write_text("")
            produced(producing, PICKUP, count, 1)
            lines = await self._lines(starts, count, process, name)
        times = LatencyHistogram()
        for each in lines:
            times.record(float(each))
        return Pickup(waited=times.summarize(), histogram=times.encode())

    async def _lines(
        self, path: Path, count: int, process: subprocess.Popen[bytes], name: str
    ) -> Sequence[str]:
        until = time.monotonic() + PATIENCE_S
        while len(lines := path.read_text().split()) < count:
            require(process, until, self.log(name), f"The worker of {name} does not finish jobs")
            await asyncio.sleep(LOOK_S)
        return lines


def produced(producing: Producing, kind: str, count: int, width: int) -> dict[str, float]:
    """Run a producer; what it told."""
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


def processor_s(processes: Sequence[psutil.Process]) -> float:
    """Processor seconds of processes so far, as far as they still run."""
    found = 0.0
    for each in processes:
        with suppress(psutil.NoSuchProcess):
            found += sum(each.cpu_times()[:2])
    return found
