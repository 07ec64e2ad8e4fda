"""The built-in job types, for demos and tests."""

from __future__ import annotations

import hashlib
from typing import Any

from handlers.jobs.registry import Job, JobFailed, JobFatal, Output, job


@job("*")
async def work(job: Job) -> Output:
    """Wait, then return deterministic bytes: the same for every run of a job."""
    if job.payload_size_bytes > job.max_output_bytes:
        # Fail before the bytes are made: a request for four gigabytes must not allocate them.
        await job.world.sleep(job.work_duration_ms / 1000)
        raise JobFailed(
            "OUTPUT_TOO_LARGE",
            f"OUTPUT_TOO_LARGE: {job.payload_size_bytes} bytes, at most {job.max_output_bytes} are kept",
        )
    await job.world.sleep(job.work_duration_ms / 1000)
    content = hashlib.shake_128(job.job_id.encode()).digest(job.payload_size_bytes)
    return Output(content, f"{job.job_type} made {len(content)} bytes")


@job("fail")
async def fail(job: Job) -> Output:
    """Wait, then fail on purpose."""
    await job.world.sleep(job.work_duration_ms / 1000)
    raise JobFailed("SIMULATED_FAILURE")


@job("fatal")
async def fatal(job: Job) -> Output:
    """Wait, then fail on purpose, without a retry."""
    await job.world.sleep(job.work_duration_ms / 1000)
    raise JobFatal("SIMULATED_FAILURE")


@job("echo")
async def echo(job: Job) -> Any:
    """Return the payload; without one, do ordinary work."""
    return await work(job) if job.payload is None else job.payload


@job("sleep")
async def sleep(job: Job) -> Any:
    """Wait for the `seconds` of the payload; without one, do ordinary work."""
    if job.payload is None:
        return await work(job)
    seconds = job.payload.get("seconds", 1)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= 86_400:
        raise JobFatal("BAD_PAYLOAD", f"seconds must be a number from 0 to 86400, not {seconds!r:.50}")
    await job.world.sleep(seconds)
    return {"slept": seconds}
