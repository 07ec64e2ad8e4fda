"""Job functions as a user has them: in a module whose name a worker gets."""

from __future__ import annotations

import os
from typing import Any

from handlers.jobs import Job, job


@job("greet")
def greet(job_: Job) -> Any:
    """Plain; returns its process."""
    name = job_.labels.get("name") or (job_.payload or {}).get("name")
    return {"hello": name, "pid": os.getpid()}


@job("echo")
async def echo(_job: Job) -> Any:
    """Replaces the built-in one."""
    return "my own"
