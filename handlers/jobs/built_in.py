"""The job types that come with the queues, for demonstrations and tests."""

from __future__ import annotations

import hashlib
from typing import Any

from handlers.jobs.registry import Job, JobFailed, JobFatal, Output, job


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


@job("fatal")
async def fatal(given: Job) -> Output:
    """Waits, then fails on purpose, so that no further run is tried."""
    await given.world.sleep(given.work_duration_ms / 1000)
    raise JobFatal("SIMULATED_FAILURE")


@job("echo")
async def echo(given: Job) -> Any:
    """Returns its payload; without one it is ordinary work."""
    return await work(given) if given.payload is None else given.payload


@job("sleep")
async def sleep(given: Job) -> Any:
    """Waits for the `seconds` of its payload; without one it is ordinary work."""
    if given.payload is None:
        return await work(given)
    seconds = given.payload.get("seconds", 1)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= 86_400:
        raise JobFatal("BAD_PAYLOAD", f"seconds must be a number from 0 to 86400, not {seconds!r:.50}")
    await given.world.sleep(seconds)
    return {"slept": seconds}
