"""Server processes of the benchmark, and the client processes that measure them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

NODE = "queuey.local.queue"


class RequestRate(NamedTuple):
    """A rate per second, the CPU time of the server for each operation, and its latency."""

    per_s: float
    cpu_us: float
    p50_ms: float
    p95_ms: float


class QueueServer:
    """A running queue."""

    def __init__(self, process: psutil.Process, port: int) -> None:
        self._process = process
        self.port = port

    def cpu_s(self) -> float:
        return float(sum(self._process.cpu_times()[:2]))

    def measure(self, work: str, count: int, clients: int) -> RequestRate:
        """Measure an operation with so many clients in a process of their own."""
        before = self.cpu_s()
        done = subprocess.run(
            (sys.executable, "-m", "bench.queuey.load", str(self.port), work, str(count), str(clients)),
            check=True,
            stdout=subprocess.PIPE,
        )
        report = json.loads(done.stdout)
        return RequestRate(
            per_s=report["per_s"],
            cpu_us=(self.cpu_s() - before) / count * 1e6,
            p50_ms=report["p50_ms"],
            p95_ms=report["p95_ms"],
        )


@contextmanager
def start_bare(file: Path) -> Iterator[QueueServer]:
    """Start the hand-written queue."""
    with _start_server("bench.queuey.bare", str(file), {}) as server:
        yield server


@contextmanager
def start_ours(file: Path, *, batched: bool = True) -> Iterator[QueueServer]:
    """Start our queue, as it is or with a transaction for each request."""
    settings = {"DB_PATH": str(file), "MDNS_ENABLED": "false", "ABANDONED_AGE": "3600", "LOG_LEVEL": "INFO"}
    with _start_server(
        "runtime.serve" if batched else "bench.queuey.unbatched_node", NODE, settings
    ) as server:
        yield server


@contextmanager
def _start_server(module: str, argument: str, settings: dict[str, str]) -> Iterator[QueueServer]:
    log = Path(argument if not settings else settings["DB_PATH"]).with_suffix(".log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            (sys.executable, "-m", module, argument), env={**os.environ, **settings}, stdout=output
        )
    try:
        yield QueueServer(psutil.Process(process.pid), _wait_for_port(process, log))
    finally:
        process.terminate()
        process.wait(30)


def _wait_for_port(process: subprocess.Popen[bytes], log: Path) -> int:
    while process.poll() is None:
        for line in log.read_bytes().splitlines():
            event = json.loads(line) if line.startswith(b"{") and line.endswith(b"}") else {}
            if event.get("event") == "service_ready":
                port: int = event["http_port"]
                return port
    raise RuntimeError(f"it ended with {process.returncode}: {log.read_text()[-2000:]}")
