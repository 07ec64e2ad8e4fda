"""Fleet of client processes: starts them, sends them orders, and aggregates their reports."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.generator.__main__ import TICK
from bench.generator.arrivals import split_level
from bench.percentiles import LatencyHistogram
from bench.workload import Load, RequestKind

_HEAD_START = 0.2
_ROOT = Path(__file__).resolve().parents[2]
_LINE_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class Target:
    """A deployment as a client sees it. Several addresses are its nodes in their fixed order."""

    system: str
    addresses: tuple[str, ...]
    ca_file: str | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Target:
        """Read the variables that a launched deployment gives its clients."""
        return cls(
            environment["CHARTER_DEPLOYMENT"].partition(".")[0],
            tuple(environment["CHARTER_ADDRESS"].split(",")),
            environment.get("CHARTER_CA_FILE"),
        )


@dataclass(frozen=True, slots=True)
class Window:
    """The measured time span, on the monotonic clock and on the wall clock."""

    start: float
    end: float
    start_ms: int
    end_ms: int


@dataclass(slots=True)
class Tick:
    """Results of all clients since the previous tick."""

    seconds: float
    calls: int = 0
    times: LatencyHistogram = field(default_factory=LatencyHistogram)


@dataclass(slots=True)
class LoadOutcome:
    """Results of all clients."""

    window: Window
    clients: int
    latencies: dict[RequestKind, LatencyHistogram] = field(default_factory=dict)
    answered: Counter[RequestKind] = field(default_factory=Counter)
    failures: dict[RequestKind, Counter[str]] = field(default_factory=dict)
    lag: LatencyHistogram = field(default_factory=LatencyHistogram)
    observed: LatencyHistogram = field(default_factory=LatencyHistogram)
    keyed: int = 0
    cpu_s: float = 0.0
    ticks: list[Tick] = field(default_factory=list)

    def add(self, report: Mapping[str, Any]) -> None:
        """Add the final report of one client."""
        for kind, text in report["latencies"].items():
            self.latencies.setdefault(kind, LatencyHistogram()).add(LatencyHistogram([text]))
        self.answered.update(report["answered"])
        for kind, codes in report["failures"].items():
            self.failures.setdefault(kind, Counter()).update(codes)
        self.lag.add(LatencyHistogram([report["lag"]]))
        self.observed.add(LatencyHistogram([report["observed"]]))
        self.keyed += report["keyed"]
        self.cpu_s += report["cpu_s"]


Watch = Callable[[Tick], None]
Meanwhile = Callable[[Window], Coroutine[Any, Any, None]]


class GeneratorFailed(Exception):
    """A client process ended before its load did."""


class Fleet:
    """Connected client processes of one deployment; `async with` ends them."""

    def __init__(self, target: Target, clients: int) -> None:
        self._target = target
        self._clients = clients
        self._processes: list[asyncio.subprocess.Process] = []

    async def __aenter__(self) -> Self:
        try:
            for _ in range(self._clients):
                self._processes.append(await _start_client())
            for process in self._processes:
                _send_message(process, asdict(self._target))
            await asyncio.gather(*(_receive_message(process) for process in self._processes))
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def send(
        self, load: Load, *, watch: Watch | None = None, meanwhile: Meanwhile | None = None
    ) -> LoadOutcome:
        """Send a load from as many processes as it has users for; `meanwhile` runs at the same time."""
        parts = split_level(load.level, self._clients, whole=load.loop == "closed")
        processes = self._processes[: len(parts)]
        window = _plan_window(load)
        outcome = LoadOutcome(window, len(parts))
        adder = _Aggregator(outcome, len(parts), watch or (lambda _tick: None))
        for index, (process, share) in enumerate(zip(processes, parts, strict=True)):
            order = {"load": load.model_dump(), "index": index, "share": share}
            _send_message(process, {**order, "start": window.start - load.warm_up_s})
        try:
            async with asyncio.TaskGroup() as tasks:
                for process in processes:
                    tasks.create_task(adder.listen(process))
                if meanwhile is not None:
                    tasks.create_task(meanwhile(window))
        except ExceptionGroup as several:
            # The first one is the cause; the others only say that the load was canceled.
            raise several.exceptions[0] from None
        return outcome

    async def _end(self) -> None:
        for process in self._processes:
            if process.returncode is None:
                process.kill()
            await process.wait()


class _Aggregator:
    """Aggregator of the clients' reports. A tick is complete when all clients have reported it."""

    def __init__(self, outcome: LoadOutcome, clients: int, watch: Watch) -> None:
        self._outcome = outcome
        self._clients = clients
        self._watch = watch
        self._open: dict[int, tuple[Tick, int]] = {}

    async def listen(self, process: asyncio.subprocess.Process) -> None:
        while True:
            report = await _receive_message(process)
            if "tick" not in report:
                self._outcome.add(report)
                return
            self._add_tick(report)

    def _add_tick(self, report: Mapping[str, Any]) -> None:
        number = int(report["tick"])
        tick, reports = self._open.pop(number, (Tick(number * TICK), 0))
        tick.calls += report["calls"]
        tick.times.add(LatencyHistogram([report["times"]]))
        if reports + 1 < self._clients:
            self._open[number] = (tick, reports + 1)
        else:
            self._outcome.ticks.append(tick)
            self._watch(tick)


async def _start_client() -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.generator"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        limit=_LINE_BYTES,
        cwd=_ROOT,
    )


def _plan_window(load: Load) -> Window:
    start = time.monotonic() + _HEAD_START + load.warm_up_s
    wall = time.time() - time.monotonic()
    return Window(
        start, start + load.run_s, int((wall + start) * 1000), int((wall + start + load.run_s) * 1000)
    )


def _send_message(process: asyncio.subprocess.Process, message: Mapping[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")


async def _receive_message(process: asyncio.subprocess.Process) -> dict[str, Any]:
    assert process.stdout is not None
    line = await process.stdout.readline()
    if not line:
        raise GeneratorFailed(
            f"a client process ended with code {await process.wait()} before its load was complete"
        )
    report: dict[str, Any] = json.loads(line)
    return report
