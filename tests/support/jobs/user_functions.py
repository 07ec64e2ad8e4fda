"""Job functions as a user has them: in a module that a worker is told the name of."""

from __future__ import annotations

import os
from typing import Any

from handlers.jobs import Job, job


@job("greet")
def greet(given: Job) -> Any:
    """Plain; says in which process it ran."""
    name = given.labels.get("name") or (given.payload or {}).get("name")
    return {"hello": name, "pid": os.getpid()}


@job("echo")
async def echo(_given: Job) -> Any:
    """Takes the place of the one that comes along."""
    return "my own"
