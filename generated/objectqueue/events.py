"""Log events of the handlers of objectqueue.

Generated from spec/objectqueue (sha256:bf30565a014f0db2). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from runtime.model.system import Event

WORKER_STARTED: Final = Event("worker_started", "INFO", always=True)
"""A worker began to look for tasks."""

WORKER_STOPPED: Final = Event("worker_stopped", "INFO", always=True)
"""A worker has stopped and removed its object."""

LEASE_LOST: Final = Event("lease_lost", "WARNING", always=True)
"""A worker lost a task while it ran; its outcome is dropped."""

TASK_FAILED: Final = Event("task_failed", "WARNING")
"""An attempt failed."""

HEARTBEAT_FAILED: Final = Event("heartbeat_failed", "WARNING")
"""A worker could not say that it lives; it goes on."""

WORKER_NAME_IN_USE: Final = Event("worker_name_in_use", "WARNING", always=True)
"""A worker waits to see whether another one of its name, on another machine, still lives."""

WORKER_NAME_TAKEN_OVER: Final = Event("worker_name_taken_over", "INFO", always=True)
"""A worker has the name of one that is dead."""

WORKER_SUPERSEDED: Final = Event("worker_superseded", "ERROR", always=True)
"""Another worker has taken over the name of this one, which was silent for too long. It stops."""

WORKER_DEAD: Final = Event("worker_dead", "WARNING", always=True)
"""A worker was not heard of for too long."""

SHARDS_UNCOVERED: Final = Event("shards_uncovered", "WARNING", always=True)
"""No live worker looks after some shards."""

EVENTS: Final[Mapping[str, Event]] = {
    "worker_started": WORKER_STARTED,
    "worker_stopped": WORKER_STOPPED,
    "lease_lost": LEASE_LOST,
    "task_failed": TASK_FAILED,
    "heartbeat_failed": HEARTBEAT_FAILED,
    "worker_name_in_use": WORKER_NAME_IN_USE,
    "worker_name_taken_over": WORKER_NAME_TAKEN_OVER,
    "worker_superseded": WORKER_SUPERSEDED,
    "worker_dead": WORKER_DEAD,
    "shards_uncovered": SHARDS_UNCOVERED,
}
