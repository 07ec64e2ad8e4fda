"""Client processes from the side of whoever orders a load: started together, listened to, and added up."""

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
from bench.generator.arrivals import shares
from bench.percentiles import Times
from bench.workload import Kind, Load

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
    def of(cls, environment: Mapping[str, str]) -> Target:
        """From the variables that a launched deployment gives its clients."""
        return cls(
            environment["CHARTER_DEPLOYMENT"].partition(".")[0],
            tuple(environment["CHARTER_ADDRESS"].split(",")),
            environment.get("CHARTER_CA_FILE"),
        )


@dataclass(frozen=True, slots=True)
class Window:
    """When what is sent counts, on the monotonic clock and on the wall's."""

    start: float
    end: float
    start_ms: int
    end_ms: int


@dataclass(slots=True)
class Tick:
    """What all clients together got since the tick before."""

    seconds: float
    calls: int = 0
    times: Times = field(default_factory=Times)


@dataclass(slots=True)
class Outcome:
    """What all clients together got."""

    window: Window
    clients: int
    latencies: dict[Kind, Times] = field(default_factory=dict)
    answered: Counter[Kind] = field(default_factory=Counter)
    failures: dict[Kind, Counter[str]] = field(default_factory=dict)
    lag: Times = field(default_factory=Times)
    observed: Times = field(default_factory=Times)
    keyed: int = 0
    cpu_s: float = 0.0
    ticks: list[Tick] = field(default_factory=list)

    def add(self, told: Mapping[str, Any]) -> None:
        """Adds what one client tells at its end."""
        for kind, text in told["latencies"].items():
            self.latencies.setdefault(kind, Times()).add(Times([text]))
        self.answered.update(told["answered"])
        for kind, codes in told["failures"].items():
            self.failures.setdefault(kind, Counter()).update(codes)
        self.lag.add(Times([told["lag"]]))
        self.observed.add(Times([told["observed"]]))
        self.keyed += told["keyed"]
        self.cpu_s += told["cpu_s"]


Watch = Callable[[Tick], None]
Meanwhile = Callable[[Window], Coroutine[Any, Any, None]]


class GeneratorFailed(Exception):
    """A client process that ended before it was through."""


class Fleet:
    """Client processes of one deployment, connected; `async with` ends them."""

    def __init__(self, target: Target, clients: int) -> None:
        self._target = target
        self._clients = clients
        self._processes: list[asyncio.subprocess.Process] = []

    async def __aenter__(self) -> Self:
        try:
            for _ in range(self._clients):
                self._processes.append(await _started())
            for process in self._processes:
                _tell(process, asdict(self._target))
            await asyncio.gather(*(_heard(process) for process in self._processes))
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
    ) -> Outcome:
        """Sends a load from as many processes as have a user to be. `meanwhile` goes on beside it."""
        parts = shares(load.level, self._clients, whole=load.loop == "closed")
        processes = self._processes[: len(parts)]
        window = _window(load)
        outcome = Outcome(window, len(parts))
        adder = _Adder(outcome, len(parts), watch or (lambda _tick: None))
        for index, (process, share) in enumerate(zip(processes, parts, strict=True)):
            order = {"load": load.model_dump(), "index": index, "share": share}
            _tell(process, {**order, "start": window.start - load.warm_up_s})
        try:
            async with asyncio.TaskGroup() as tasks:
                for process in processes:
                    tasks.create_task(adder.listen(process))
                if meanwhile is not None:
                    tasks.create_task(meanwhile(window))
        except ExceptionGroup as several:
            # One is told; the others have no more to say than that the load was broken off.
            raise several.exceptions[0] from None
        return outcome

    async def _end(self) -> None:
        for process in self._processes:
            if process.returncode is None:
                process.kill()
            await process.wait()


class _Adder:
    """Puts together what the clients tell. A tick is complete when all of them have told theirs."""

    def __init__(self, outcome: Outcome, clients: int, watch: Watch) -> None:
        self._outcome = outcome
        self._clients = clients
        self._watch = watch
        self._open: dict[int, tuple[Tick, int]] = {}

    async def listen(self, process: asyncio.subprocess.Process) -> None:
        while True:
            told = await _heard(process)
            if "tick" not in told:
                self._outcome.add(told)
                return
            self._add_tick(told)

    def _add_tick(self, told: Mapping[str, Any]) -> None:
        number = int(told["tick"])
        tick, heard = self._open.pop(number, (Tick(number * TICK), 0))
        tick.calls += told["calls"]
        tick.times.add(Times([told["times"]]))
        if heard + 1 < self._clients:
            self._open[number] = (tick, heard + 1)
        else:
            self._outcome.ticks.append(tick)
            self._watch(tick)


async def _started() -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.generator"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        limit=_LINE_BYTES,
        cwd=_ROOT,
    )


def _window(load: Load) -> Window:
    start = time.monotonic() + _HEAD_START + load.warm_up_s
    wall = time.time() - time.monotonic()
    return Window(
        start, start + load.run_s, int((wall + start) * 1000), int((wall + start + load.run_s) * 1000)
    )


def _tell(process: asyncio.subprocess.Process, message: Mapping[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")


async def _heard(process: asyncio.subprocess.Process) -> dict[str, Any]:
    assert process.stdout is not None
    line = await process.stdout.readline()
    if not line:
        raise GeneratorFailed(
            f"a client process ended with code {await process.wait()} before it was through"
        )
    told: dict[str, Any] = json.loads(line)
    return told
