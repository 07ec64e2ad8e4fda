"""The log events that handlers of queuey tell of.

Generated from spec/queuey (sha256:cb83686dd6d4a4c6). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from runtime.tables import Event

RUNNER_STARTED: Final = Event("runner_started", "INFO", always=True)
"""A runner began to look for jobs."""

JOB_LOST: Final = Event("job_lost", "WARNING", always=True)
"""A runner lost a job while it ran; its outcome is dropped."""

EVENTS: Final[Mapping[str, Event]] = {
    "runner_started": RUNNER_STARTED,
    "job_lost": JOB_LOST,
}
