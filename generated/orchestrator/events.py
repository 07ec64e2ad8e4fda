"""Log events of the handlers of orchestrator.

Generated from spec/orchestrator (sha256:fdaebfd770cb5849). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from runtime.model.system import Event

KEY_REUSED: Final = Event("key_reused", "WARNING")
"""A key came with another job type or payload; the first job was answered."""

LEASE_LOST: Final = Event("lease_lost", "WARNING", always=True)
"""A worker lost a job while it ran; its outcome is dropped."""

WORKER_STARTED: Final = Event("worker_started", "INFO", always=True)
"""A worker began to look for jobs."""

EVENTS: Final[Mapping[str, Event]] = {
    "key_reused": KEY_REUSED,
    "lease_lost": LEASE_LOST,
    "worker_started": WORKER_STARTED,
}
