"""Pickup latency: the time from a job's acceptance to its start by an idle worker, by the queue's stamps."""

from __future__ import annotations

import asyncio
from typing import Any

from generated.taskqueue.clients import TaskQueuePublicServiceClient
from generated.taskqueue.lifecycle import JOB
from generated.taskqueue.messages import GetJobStatusRequest, JobSpec, SubmitJobRequest
from runtime.client import Client
from runtime.launch.deployment import launched

JOBS = 200
POLLING_MS = 100
"""The median that polling at the idle hint of 200 ms would have."""


async def measure_pickup(deployment: str) -> dict[str, Any]:
    """Measure the pickup latency of jobs that are submitted one at a time to an empty queue."""
    async with launched(deployment, ports="auto", tls=False) as running, running.client() as client:
        waits = sorted([await _measure_wait_ms(client) for _ in range(JOBS)])
    return {
        "jobs": JOBS,
        "p50_ms": waits[JOBS // 2],
        "p95_ms": waits[JOBS * 95 // 100],
        "p99_ms": waits[JOBS * 99 // 100],
        "polling_would_be_ms": POLLING_MS,
    }


async def _measure_wait_ms(client: Client) -> int:
    queue, call = client.of(TaskQueuePublicServiceClient), client.call()
    accepted = await queue.submit_job(SubmitJobRequest(spec=JobSpec(job_type="pickup")), call)
    while True:
        status = await queue.get_job_status(GetJobStatusRequest(job_id=accepted.job_id), call)
        if status.status in JOB.terminal:
            # A pause of uneven length, so that jobs do not all find the worker at the same point.
            await asyncio.sleep(0.02 + (status.created_at_ms % 50) / 1000)
            return status.started_at_ms - status.created_at_ms
        await asyncio.sleep(0.005)
