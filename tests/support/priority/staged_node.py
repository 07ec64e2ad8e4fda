"""A node whose worker has functions for tests: `python -m tests.support.priority.staged_node <node>`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from handlers.jobs import Job, job
from runtime.serve import main


@job("stepwise")
async def stepwise(job_: Job) -> Any:
    """Report its progress, then wait for a file."""
    await job_.report({"step": 1})
    await _wait_for_file(job_)
    await job_.report({"step": 2})
    return {"attempt": job_.attempt}


@job("gate")
async def gate(job_: Job) -> Any:
    """End when there is a file, however long that takes."""
    await _wait_for_file(job_)
    return {}


async def _wait_for_file(job_: Job) -> None:
    assert job_.payload is not None
    while not Path(job_.payload["gate"]).exists():
        await job_.world.sleep(0.02)


@job("patient", timeout_s=3600)
async def patient(job_: Job) -> Any:
    """Last longer than its task may, with an extension; end when there is a file."""
    await _wait_for_file(job_)
    return {}


@job("blocking")
def blocking(_job: Job) -> Any:
    """A plain function, which blocks no other."""
    time.sleep(0.3)
    return {}


@job("odd")
async def odd(job_: Job) -> Any:
    """Return a value that cannot be stored."""
    assert job_.payload is not None
    return {"nul": "\0", "large": "x" * 2_000_000, "no json": {1, 2}}[job_.payload["what"]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
