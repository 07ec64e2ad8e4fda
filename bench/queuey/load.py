"""Load clients of a queue: `python -m bench.queuey.load PORT WORK COUNT CLIENTS` prints a line of JSON.

Each client has a connection and sends one request after the other, with as little HTTP as is needed, so that
the CPU time is the server's.
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


class LoadConnection:
    """Connection of one client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str) -> None:
        self._reader = reader
        self._writer = writer
        self.name = name

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """Send a request; return the body of the answer, or None if it is empty."""
        content = json.dumps(body).encode()
        request_head = (
            f"POST {path} HTTP/1.1",
            "host: localhost",
            "content-type: application/json",
            f"content-length: {len(content)}",
        )
        self._writer.write("\r\n".join((*request_head, "", "")).encode() + content)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        status, _, headers = head.partition(b"\r\n")
        length = next(
            (int(line[15:]) for line in headers.split(b"\r\n") if line.startswith(b"content-length:")), 0
        )
        answer = await self._reader.readexactly(length)
        if status.split()[1] not in (b"200", b"204"):
            raise RuntimeError(f"{path}: {status!r} {answer!r}")
        return json.loads(answer) if answer else None


async def create_job(connection: LoadConnection) -> None:
    """Create a job."""
    await connection.post("/jobs/create", {"binary_addr": _ADDRESS, "input_addr": _ADDRESS})


async def claim_and_complete(connection: LoadConnection) -> None:
    """Claim a job and complete it."""
    job = await claim_job(connection)
    outcome = {
        "status": "completed",
        "output_addr": _OUTPUT,
        "runner_id": connection.name,
        "run_attempts": job["run_attempts"],
    }
    await connection.post(f"/jobs/{job['job_id']}/complete", outcome)


async def claim_job(connection: LoadConnection) -> dict[str, Any]:
    """Claim a job."""
    job = await connection.post("/jobs/claim", {"runner_id": connection.name})
    if job is None:
        raise RuntimeError("there are too few jobs")
    return job


WORK: dict[str, Callable[[LoadConnection], Coroutine[Any, Any, Any]]] = {
    "create": create_job,
    "pair": claim_and_complete,
    "claim": claim_job,
}


async def run_load(port: int, work: str, count: int, clients: int) -> dict[str, float]:
    """Run an operation that many times with so many clients."""
    connections = [
        LoadConnection(*await asyncio.open_connection("127.0.0.1", port), f"runner-{number}")
        for number in range(clients)
    ]
    operation, left, times = WORK[work], iter(range(count)), list[float]()

    async def run_client(connection: LoadConnection) -> None:
        for _ in left:
            begun = time.perf_counter()
            await operation(connection)
            times.append(time.perf_counter() - begun)

    begun, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(run_client, connections))
    seconds = time.perf_counter() - begun
    return {
        "per_s": count / seconds,
        "client_cpu_us": (time.process_time() - cpu) / count * 1e6,
        "p50_ms": statistics.median(times) * 1000,
        "p95_ms": statistics.quantiles(times, n=20)[-1] * 1000,
    }


if __name__ == "__main__":
    port, work, count, clients = sys.argv[1:]
    print(json.dumps(uvloop.run(run_load(int(port), work, int(count), int(clients)))))
