"""The work that comes with the queue: it lasts as long and makes as many bytes as the job asks for."""

from __future__ import annotations

import hashlib

from handlers.jobs.registry import Job, JobFailed, Output, job


@job("*")
async def work(given: Job) -> Output:
    """Waits, then makes bytes that are the same whenever the same job is run."""
    if given.payload_size_bytes > given.max_output_bytes:
        # Told before the bytes are made: a wish for four gigabytes must not cost them.
        await given.world.sleep(given.work_duration_ms / 1000)
        raise JobFailed(
            "OUTPUT_TOO_LARGE",
            f"OUTPUT_TOO_LARGE: {given.payload_size_bytes} bytes, at most {given.max_output_bytes} are kept",
        )
    await given.world.sleep(given.work_duration_ms / 1000)
    content = hashlib.shake_128(given.job_id.encode()).digest(given.payload_size_bytes)
    return Output(content, f"{given.job_type} made {len(content)} bytes")


@job("fail")
async def fail(given: Job) -> Output:
    """Waits, then fails on purpose."""
    await given.world.sleep(given.work_duration_ms / 1000)
    raise JobFailed("SIMULATED_FAILURE")
