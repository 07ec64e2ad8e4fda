"""Log events of the handlers of priority.

Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from runtime.model.system import Event

LOAD_DIFFERS: Final = Event("load_differs", "WARNING")
"""A worker reports another number of tasks than are booked on it."""

LEASE_LOST: Final = Event("lease_lost", "WARNING", always=True)
"""A worker lost a task while it ran; its outcome is dropped."""

WORKER_STARTED: Final = Event("worker_started", "INFO", always=True)
"""A worker registered and began to look for tasks."""

WORKER_LOST: Final = Event("worker_lost", "WARNING", always=True)
"""A worker learnt that it had been given up; it registers anew."""

WORKER_LEFT: Final = Event("worker_left", "INFO")
"""A worker has ended all that it held and left."""

EVENTS: Final[Mapping[str, Event]] = {
    "load_differs": LOAD_DIFFERS,
    "lease_lost": LEASE_LOST,
    "worker_started": WORKER_STARTED,
    "worker_lost": WORKER_LOST,
    "worker_left": WORKER_LEFT,
}
