"""Job functions by job type. A module in this folder that registers a function adds a job type.

A function takes the job and returns its output. It may be `async`; a plain one runs in a thread, so that it
cannot hold up the others. `JobFailed` ends the job with a reason of its own.
"""

from __future__ import annotations

import importlib
import pkgutil

from handlers.jobs.registry import Job, JobFailed, Output, find, job

__all__ = ["Job", "JobFailed", "Output", "find", "job"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
