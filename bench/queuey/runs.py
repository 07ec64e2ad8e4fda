"""What it costs to run a binary: an instance, and a job from its creation to its end."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from handlers.queuey.samples import binary
from handlers.queuey.sandbox import Limits, SandboxPool
from runtime.launch import launched

_LIMITS = Limits(seconds=10, fuel=0, memory_bytes=64 << 20, output_bytes=1 << 20)
SLOTS = 8


async def instances(count: int) -> dict[str, float]:
    """A process, a compilation, and instances of what is compiled, one after the other."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "noop.wasm"
        path.write_bytes(binary("noop"))
        async with SandboxPool(_LIMITS) as sandboxes:
            first = await _timed(sandboxes, path)
            times = [await _timed(sandboxes, path) for _ in range(count)]
    return {
        "first_ms": first,
        "instance_p50_ms": statistics.median(times),
        "instance_p95_ms": statistics.quantiles(times, n=20)[-1],
    }


async def _timed(sandboxes: SandboxPool, path: Path) -> float:
    async with sandboxes.scratch() as scratch:
        stdin = scratch / "stdin"
        stdin.touch()
        begun = time.perf_counter()
        run = await sandboxes.run("noop", path, stdin, scratch)
        if run.reason is not None:
            raise RuntimeError(f"it should do nothing, and ended so: {run}")
        return (time.perf_counter() - begun) * 1000


async def jobs(count: int) -> dict[str, float]:
    """Jobs that do nothing, by one runner with several slots, from the first taken to the last ended."""
    settings = {"RUNNER_CONCURRENCY": str(SLOTS), "MDNS_ENABLED": "false"}
    async with launched("queuey.local", ports="auto", settings=settings) as running:
        queue, store = running.endpoints["queue"], running.endpoints["store"]
        async with httpx.AsyncClient(timeout=60) as client:
            address = (await client.post(f"{store}/blobs", content=binary("noop"))).json()["address"]
            # What is started once is not what is measured.
            await _all_of(client, queue, address, SLOTS)
            begun = time.perf_counter()
            await _all_of(client, queue, address, count)
            return {"per_s": count / (time.perf_counter() - begun), "slots": SLOTS}


async def _all_of(client: httpx.AsyncClient, queue: str, address: str, count: int) -> None:
    created = await asyncio.gather(
        *(client.post(f"{queue}/jobs/create", json={"binary_addr": address}) for _ in range(count))
    )
    last = created[-1].json()["job_id"]
    while (await _json(client, f"{queue}/jobs/{last}?wait_ms=5000"))["completed_at"] is None:
        pass
    while True:
        counts = await _json(client, f"{queue}/counts")
        if counts["pending"] == counts["active"] == 0:
            break
        await asyncio.sleep(0.02)


async def _json(client: httpx.AsyncClient, url: str) -> dict[str, Any]:
    found: dict[str, Any] = (await client.get(url)).raise_for_status().json()
    return found
