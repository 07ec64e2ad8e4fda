"""Processes that are measured, and clients that measure them."""

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


class Rate(NamedTuple):
    """Something that was done so many times a second, what it cost the server, and how long each took."""

    per_s: float
    cpu_us: float
    p50_ms: float
    p95_ms: float


class Served:
    """A queue that runs."""

    def __init__(self, process: psutil.Process, port: int) -> None:
        self._process = process
        self.port = port

    def cpu_s(self) -> float:
        return float(sum(self._process.cpu_times()[:2]))

    def measured(self, what: str, count: int, clients: int) -> Rate:
        """So many of something by so many clients in a process of their own."""
        before = self.cpu_s()
        done = subprocess.run(
            (sys.executable, "-m", "bench.queuey.load", str(self.port), what, str(count), str(clients)),
            check=True,
            stdout=subprocess.PIPE,
        )
        told = json.loads(done.stdout)
        return Rate(
            per_s=told["per_s"],
            cpu_us=(self.cpu_s() - before) / count * 1e6,
            p50_ms=told["p50_ms"],
            p95_ms=told["p95_ms"],
        )


@contextmanager
def bare(file: Path) -> Iterator[Served]:
    """The queue by hand."""
    with _started("bench.queuey.bare", str(file), {}) as served:
        yield served


@contextmanager
def ours(file: Path, *, together: bool = True) -> Iterator[Served]:
    """The queue as it is; or with a transaction for each request."""
    settings = {"DB_PATH": str(file), "MDNS_ENABLED": "false", "ABANDONED_AGE": "3600", "LOG_LEVEL": "INFO"}
    with _started("runtime.serve" if together else "bench.queuey.unbatched_node", NODE, settings) as served:
        yield served


@contextmanager
def _started(module: str, argument: str, settings: dict[str, str]) -> Iterator[Served]:
    log = Path(argument if not settings else settings["DB_PATH"]).with_suffix(".log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            (sys.executable, "-m", module, argument), env={**os.environ, **settings}, stdout=output
        )
    try:
        yield Served(psutil.Process(process.pid), _port(process, log))
    finally:
        process.terminate()
        process.wait(30)


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    while process.poll() is None:
        for line in log.read_bytes().splitlines():
            found = json.loads(line) if line.startswith(b"{") and line.endswith(b"}") else {}
            if found.get("event") == "service_ready":
                port: int = found["http_port"]
                return port
    raise RuntimeError(f"it ended with {process.returncode}: {log.read_text()[-2000:]}")
