"""Resource use of the nodes of a running deployment, and the number of calls that they answer."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psutil

from bench.designs.results import NodeUse

_CALLS = re.compile(r'^charter_calls_total\{.*?method="(?P<method>[^"]+)".*?\} (?P<count>\S+)$', re.MULTILINE)
_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Reading:
    """CPU seconds, memory and calls so far by node, and the CPU seconds of the whole machine."""

    cpu_s: Mapping[str, float]
    rss_mb: Mapping[str, float]
    calls: Mapping[str, Mapping[str, int]]
    machine_s: float


class Meter:
    """Meter of nodes: reads them before and after a load.

    `metrics` has the port on which a node serves its metrics, `processes` its processes; a node that
    is in neither is not measured.
    """

    def __init__(
        self, metrics: Mapping[str, int | None], processes: Mapping[str, Sequence[psutil.Process]]
    ) -> None:
        self._metrics = metrics
        self._processes = processes

    async def read_before(self) -> Reading:
        """Read before the load: the calls first, because scraping them costs the nodes CPU, too."""
        calls = await self._scrape_all()
        return self._read_processes(calls)

    async def read_after(self) -> Reading:
        """Read after the load: the CPU times first, for the same reason."""
        reading = self._read_processes({})
        return Reading(reading.cpu_s, reading.rss_mb, await self._scrape_all(), reading.machine_s)

    def _read_processes(self, calls: Mapping[str, Mapping[str, int]]) -> Reading:
        cpu, memory = {}, {}
        for name, processes in self._processes.items():
            times = [each.cpu_times() for each in processes]
            cpu[name] = sum(each.user + each.system for each in times)
            memory[name] = sum(each.memory_info().rss for each in processes) / 1e6
        machine = psutil.cpu_times()
        return Reading(cpu, memory, calls, sum(machine) - machine.idle - machine.iowait)

    async def _scrape_all(self) -> dict[str, Mapping[str, int]]:
        ports = {name: port for name, port in self._metrics.items() if port is not None}
        counts = await asyncio.gather(*(asyncio.to_thread(_scrape_calls, port) for port in ports.values()))
        return dict(zip(ports, counts, strict=True))


def list_process_tree(pid: int) -> list[psutil.Process]:
    """List a process and its descendants."""
    first = psutil.Process(pid)
    return [first, *first.children(recursive=True)]


def compute_use(before: Reading, after: Reading) -> tuple[NodeUse, ...]:
    """Compute the use of each node between two readings."""
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


def _scrape_calls(port: int) -> dict[str, int]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=_TIMEOUT_S) as answer:
        text = answer.read().decode()
    counts: dict[str, int] = {}
    for row in _CALLS.finditer(text):
        counts[row["method"]] = counts.get(row["method"], 0) + int(float(row["count"]))
    return counts
