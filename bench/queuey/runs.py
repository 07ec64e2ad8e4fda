"""Cost of running a binary: an instance, and a job from its creation to its end."""

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


async def measure_instances(count: int) -> dict[str, float]:
    """Measure the first run, with its process and compilation, and further instances one after the other."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "noop.wasm"
        path.write_bytes(binary("noop"))
        async with SandboxPool(_LIMITS) as sandboxes:
            first = await _time_instance(sandboxes, path)
            times = [await _time_instance(sandboxes, path) for _ in range(count)]
    return {
        "first_ms": first,
        "instance_p50_ms": statistics.median(times),
        "instance_p95_ms": statistics.quantiles(times, n=20)[-1],
    }


async def _time_instance(sandboxes: SandboxPool, path: Path) -> float:
    async with sandboxes.scratch() as scratch:
        stdin = scratch / "stdin"
        stdin.touch()
        begun = time.perf_counter()
        run = await sandboxes.run("noop", path, stdin, scratch)
        if run.reason is not None:
            raise RuntimeError(f"the binary noop should do nothing, but failed: {run}")
        return (time.perf_counter() - begun) * 1000


async def measure_jobs(count: int) -> dict[str, float]:
    """Measure jobs that do nothing with one runner of several slots, from the first to the last."""
    settings = {"RUNNER_CONCURRENCY": str(SLOTS), "MDNS_ENABLED": "false"}
    async with launched("queuey.local", ports="auto", settings=settings) as running:
        queue, store = running.endpoints["queue"], running.endpoints["store"]
        async with httpx.AsyncClient(timeout=60) as client:
            address = (await client.post(f"{store}/blobs", content=binary("noop"))).json()["address"]
            # Start the sandboxes before the measurement.
            await _run_jobs(client, queue, address, SLOTS)
            begun = time.perf_counter()
            await _run_jobs(client, queue, address, count)
            return {"per_s": count / (time.perf_counter() - begun), "slots": SLOTS}


async def _run_jobs(client: httpx.AsyncClient, queue: str, address: str, count: int) -> None:
    created = await asyncio.gather(
        *(client.post(f"{queue}/jobs/create", json={"binary_addr": address}) for _ in range(count))
    )
    last = created[-1].json()["job_id"]
    while (await _get_json(client, f"{queue}/jobs/{last}?wait_ms=5000"))["completed_at"] is None:
        pass
    while True:
        counts = await _get_json(client, f"{queue}/counts")
        if counts["pending"] == counts["active"] == 0:
            break
        await asyncio.sleep(0.02)


async def _get_json(client: httpx.AsyncClient, url: str) -> dict[str, Any]:
    answer: dict[str, Any] = (await client.get(url)).raise_for_status().json()
    return answer
