"""What the nodes of a running deployment use, and how many calls they answer."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass

import psutil

from bench.designs.results import NodeUse
from runtime.launch import Launched

_CALLS = re.compile(r'^charter_calls_total\{.*?method="(?P<method>[^"]+)".*?\} (?P<count>\S+)$', re.MULTILINE)
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class Reading:
    """Processor seconds and calls so far, by node, and what the whole machine has used."""

    cpu_s: Mapping[str, float]
    rss_mb: Mapping[str, float]
    calls: Mapping[str, Mapping[str, int]]
    machine_s: float


class Meter:
    """Reads a deployment twice; what it did between is the difference."""

    def __init__(self, running: Launched) -> None:
        self._metrics = {name: process.planned.metrics_port for name, process in running.processes.items()}
        self._processes = {
            name: psutil.Process(process.pid)
            for name, process in running.processes.items()
            if process.pid is not None
        }

    async def before(self) -> Reading:
        """Asks for the calls first, because answering that is work, too."""
        calls = await self._calls()
        return self._reading(calls)

    async def after(self) -> Reading:
        """Reads the processors first, for the same reason."""
        reading = self._reading({})
        return Reading(reading.cpu_s, reading.rss_mb, await self._calls(), reading.machine_s)

    def _reading(self, calls: Mapping[str, Mapping[str, int]]) -> Reading:
        cpu, memory = {}, {}
        for name, process in self._processes.items():
            with process.oneshot():
                times = process.cpu_times()
                cpu[name] = times.user + times.system
                memory[name] = process.memory_info().rss / 1e6
        machine = psutil.cpu_times()
        return Reading(cpu, memory, calls, sum(machine) - machine.idle - machine.iowait)

    async def _calls(self) -> dict[str, Mapping[str, int]]:
        ports = {name: port for name, port in self._metrics.items() if port is not None}
        found = await asyncio.gather(*(asyncio.to_thread(_scraped, port) for port in ports.values()))
        return dict(zip(ports, found, strict=True))


def used(before: Reading, after: Reading) -> tuple[NodeUse, ...]:
    """What each node did between two readings."""
    return tuple(
        NodeUse(
            name=name,
            cpu_s=round(after.cpu_s[name] - before.cpu_s[name], 3),
            rss_mb=round(after.rss_mb[name], 1),
            calls={
                method: count - before.calls.get(name, {}).get(method, 0)
                for method, count in after.calls.get(name, {}).items()
                if count > before.calls.get(name, {}).get(method, 0)
            },
        )
        for name in after.cpu_s
    )


def _scraped(port: int) -> dict[str, int]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=_PATIENCE) as answer:
        text = answer.read().decode()
    found: dict[str, int] = {}
    for row in _CALLS.finditer(text):
        found[row["method"]] = found.get(row["method"], 0) + int(float(row["count"]))
    return found
