"""Job function of the benchmark's tasks: it does nothing."""

from __future__ import annotations

from typing import Any

from handlers.jobs import Job, job


@job("bench_noop")
async def bench_noop(_job: Job) -> Any:
    """Return at once."""
    return None
