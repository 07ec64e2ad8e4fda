"""What the nodes of a running deployment use, and how many calls they answer."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psutil

from bench.designs.results import NodeUse

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
    """Reads nodes twice; what they did between is the difference.

    `metrics` has the port on which a node serves its metrics, `processes` those that do its work; a node that
    is in neither is not measured.
    """

    def __init__(
        self, metrics: Mapping[str, int | None], processes: Mapping[str, Sequence[psutil.Process]]
    ) -> None:
        self._metrics = metrics
        self._processes = processes

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
        for name, processes in self._processes.items():
            times = [each.cpu_times() for each in processes]
            cpu[name] = sum(each.user + each.system for each in times)
            memory[name] = sum(each.memory_info().rss for each in processes) / 1e6
        machine = psutil.cpu_times()
        return Reading(cpu, memory, calls, sum(machine) - machine.idle - machine.iowait)

    async def _calls(self) -> dict[str, Mapping[str, int]]:
        ports = {name: port for name, port in self._metrics.items() if port is not None}
        found = await asyncio.gather(*(asyncio.to_thread(_scraped, port) for port in ports.values()))
        return dict(zip(ports, found, strict=True))


def process_tree(pid: int) -> list[psutil.Process]:
    """A process and all that it has started."""
    first = psutil.Process(pid)
    return [first, *first.children(recursive=True)]


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
