"""A node whose worker has functions for tests: `python -m tests.support.priority.staged_node <node>`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from handlers.jobs import Job, job
from runtime.serve import main


@job("stepwise")
async def stepwise(given: Job) -> Any:
    """Tells how far it is, then waits for a file."""
    await given.report({"step": 1})
    await _passed(given)
    await given.report({"step": 2})
    return {"attempt": given.attempt}


@job("gate")
async def gate(given: Job) -> Any:
    """Ends when there is a file, however long that takes."""
    await _passed(given)
    return {}


async def _passed(given: Job) -> None:
    assert given.payload is not None
    while not Path(given.payload["gate"]).exists():
        await given.world.sleep(0.02)


@job("patient", timeout_s=3600)
async def patient(given: Job) -> Any:
    """May take longer than its task may, and says so; ends when there is a file."""
    await _passed(given)
    return {}


@job("blocking")
def blocking(_given: Job) -> Any:
    """A plain function, which holds up nobody."""
    time.sleep(0.3)
    return {}


@job("odd")
async def odd(given: Job) -> Any:
    """Returns what cannot be kept."""
    assert given.payload is not None
    return {"nul": "\0", "large": "x" * 2_000_000, "no json": {1, 2}}[given.payload["what"]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
