"""The handler of the tasks that the benchmark submits: it does nothing."""

from __future__ import annotations

from typing import Any

from handlers.jobs import Job, job


@job("bench_noop")
async def bench_noop(_given: Job) -> Any:
    """Return at once."""
    return None
