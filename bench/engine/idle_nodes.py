"""Idle nodes: how soon a deployment is ready, and the memory and processor time of its nodes without work."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import psutil

from runtime.launch import launched

GOALS = {"ready_s": 2.0, "memory_mib": 70.0, "idle_percent": 1.0}
"""What no node may exceed."""
IDLE_S = 60.0
"""So long that ticks of 10 ms are a sixtieth of a percent."""
_WARM_UP_S = 5.0


async def measure_idle_nodes(deployment: str, seconds: float = IDLE_S) -> dict[str, Any]:
    """Start a deployment and leave it alone; return its largest figures, and those of each node."""
    began = time.perf_counter()
    async with launched(deployment, ports="auto", tls=False) as running:
        ready_s = time.perf_counter() - began
        processes = {
            name: psutil.Process(each.pid) for name, each in running.processes.items() if each.pid is not None
        }
        await asyncio.sleep(_WARM_UP_S)
        before = {name: _read_cpu_s(process) for name, process in processes.items()}
        await asyncio.sleep(seconds)
        nodes = {
            name: {
                "memory_mib": round(process.memory_info().rss / 2**20, 1),
                "idle_percent": round((_read_cpu_s(process) - before[name]) / seconds * 100, 2),
            }
            for name, process in processes.items()
        }
    most = {key: max(node[key] for node in nodes.values()) for key in ("memory_mib", "idle_percent")}
    return {"ready_s": round(ready_s, 2), **most, "nodes": nodes}


def find_exceeded(figures: dict[str, Any]) -> list[str]:
    """Return the figures that exceed their goals, as texts."""
    return [f"{key} {figures[key]} (at most {goal})" for key, goal in GOALS.items() if figures[key] > goal]


def _read_cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
