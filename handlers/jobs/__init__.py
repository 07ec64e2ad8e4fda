"""Job functions by job type. A module in this folder that registers a function adds a job type.

A function takes the job and returns its output, or any value that JSON can hold. It may be `async`; a plain
one runs in a child process that can be killed, so that it cannot block the others. `JobFailed` fails the run
with a reason of its own, `JobFatal` fails the job for good.
"""

from __future__ import annotations

import importlib
import pkgutil

from handlers.jobs.registry import (
    Job,
    JobFailed,
    JobFatal,
    Output,
    find,
    find_or_any,
    is_being_canceled,
    job,
)

__all__ = ["Job", "JobFailed", "JobFatal", "Output", "find", "find_or_any", "is_being_canceled", "job"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
