"""Cost of a million retained jobs: bytes of each, and the time of a page against that of a small store."""

from __future__ import annotations

import os
import statistics
import time
from typing import Any

import psutil

from generated.taskqueue.lifecycle import JOB
from generated.taskqueue.messages import JobSpec
from generated.taskqueue.records import JobRecord
from generated.taskqueue.system import SYSTEM
from runtime.call import Call
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.memory import MemoryStore
from runtime.world import RealWorld

FEW, MANY, PAGE = 10_000, 1_000_000, 200


async def measure_retained_jobs() -> dict[str, Any]:
    """Measure the memory and page times of a small and a large store."""
    few, _ = await _fill_store(FEW)
    many, bytes_each = await _fill_store(MANY)
    small, large = await _measure_page_ms(few, FEW), await _measure_page_ms(many, MANY)
    return {
        "jobs": MANY,
        "bytes_per_job": round(bytes_each),
        "page": PAGE,
        f"page_ms_at_{FEW}": round(small, 3),
        f"page_ms_at_{MANY}": round(large, 3),
        "ratio": round(large / small, 2),
    }


async def _fill_store(count: int) -> tuple[MemoryStore[JobRecord], float]:
    world = RealWorld()
    store: MemoryStore[JobRecord] = MemoryStore(SYSTEM, JOB, JobRecord, world, Metrics())
    log = Log("bench", "ERROR", world)
    gateway = Call(world=world, log=log, caller="gateway", method="bench")
    coordinator = Call(world=world, log=log, caller="coordinator", method="bench")
    before = psutil.Process(os.getpid()).memory_info().rss
    for number in range(count):
        spec = JobSpec(job_type="sleep", work_duration_ms=number % 1000, labels={"team": "a"})
        encoded = spec.SerializeToString(deterministic=True)
        record = JobRecord(job_id=world.new_id(), spec=encoded, job_type=spec.job_type)
        await store.create(record, gateway)
        if number % 3:
            await store.transition(record.job_id, "dispatch", coordinator)
            await store.transition(record.job_id, "complete", coordinator)
    return store, (psutil.Process(os.getpid()).memory_info().rss - before) / count


async def _measure_page_ms(store: MemoryStore[JobRecord], count: int) -> float:
    """Measure the median over pages at the front, in the middle and near the end, of all states."""
    times = []
    for offset in [0, count // 2, count - 2 * PAGE] * 30:
        started = time.perf_counter()
        await store.find(offset=offset, size=PAGE)
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)
