"""Clients of a queue: `python -m bench.queuey.load PORT WHAT COUNT CLIENTS` prints what they found as JSON.

Each client has a connection and asks for one thing after the other. They know as little of HTTP as is needed,
so that the server is what is measured.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

import uvloop

_ADDRESS = "6" * 64
_OUTPUT = "7" * 64


class Connection:
    """One client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str) -> None:
        self._reader = reader
        self._writer = writer
        self.name = name

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """An answer; None where there is nothing to say."""
        content = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1",
            "host: localhost",
            "content-type: application/json",
            f"content-length: {len(content)}",
        )
        self._writer.write("\r\n".join((*head, "", "")).encode() + content)
        told = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        status, _, headers = told.partition(b"\r\n")
        length = next(
            (int(line[15:]) for line in headers.split(b"\r\n") if line.startswith(b"content-length:")), 0
        )
        answer = await self._reader.readexactly(length)
        if status.split()[1] not in (b"200", b"204"):
            raise RuntimeError(f"{path}: {status!r} {answer!r}")
        return json.loads(answer) if answer else None


async def create(connection: Connection) -> None:
    """A new job."""
    await connection.post("/jobs/create", {"binary_addr": _ADDRESS, "input_addr": _ADDRESS})


async def pair(connection: Connection) -> None:
    """A job taken and completed."""
    job = await claim(connection)
    outcome = {
        "status": "completed",
        "output_addr": _OUTPUT,
        "runner_id": connection.name,
        "run_attempts": job["run_attempts"],
    }
    await connection.post(f"/jobs/{job['job_id']}/complete", outcome)


async def claim(connection: Connection) -> dict[str, Any]:
    """A job taken."""
    job = await connection.post("/jobs/claim", {"runner_id": connection.name})
    if job is None:
        raise RuntimeError("there are too few jobs")
    return job


WORK: dict[str, Callable[[Connection], Coroutine[Any, Any, Any]]] = {
    "create": create,
    "pair": pair,
    "claim": claim,
}


async def measured(port: int, what: str, count: int, clients: int) -> dict[str, float]:
    """So many of something by so many clients."""
    connections = [
        Connection(*await asyncio.open_connection("127.0.0.1", port), f"runner-{number}")
        for number in range(clients)
    ]
    work, left, times = WORK[what], iter(range(count)), list[float]()

    async def go_on(connection: Connection) -> None:
        for _ in left:
            begun = time.perf_counter()
            await work(connection)
            times.append(time.perf_counter() - begun)

    begun, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(go_on, connections))
    seconds = time.perf_counter() - begun
    return {
        "per_s": count / seconds,
        "client_cpu_us": (time.process_time() - cpu) / count * 1e6,
        "p50_ms": statistics.median(times) * 1000,
        "p95_ms": statistics.quantiles(times, n=20)[-1] * 1000,
    }


if __name__ == "__main__":
    port, what, count, clients = sys.argv[1:]
    print(json.dumps(uvloop.run(measured(int(port), what, int(count), int(clients)))))
