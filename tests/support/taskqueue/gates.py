"""Jobs that run until a test lets them end, so that a test makes the state it asserts however slow it is."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from handlers.jobs.registry import Job, all_registered, find_or_any, wrap_function

GATED = "gated"
_LABEL = "gate"
_LOOK_EVERY = 0.01


async def pass_gate(job_: Job) -> Any:
    """Wait while the file of its label exists; then do ordinary work."""
    closed = Path(job_.labels[_LABEL])
    while closed.exists():
        await job_.world.sleep(_LOOK_EVERY)
    return await find_or_any("any other")(job_)


FUNCTIONS: Mapping[str, Any] = {**all_registered(), GATED: wrap_function(GATED, pass_gate)}
HANDLERS = {"JOB_HANDLERS": f"{__name__}:FUNCTIONS"}
"""The setting under which workers know them, beside all that come along."""


@contextmanager
def gate() -> Iterator[dict[str, str]]:
    """The labels of jobs that do not end before the block does."""
    with tempfile.NamedTemporaryFile(prefix="gate-") as file:
        yield {_LABEL: file.name}
