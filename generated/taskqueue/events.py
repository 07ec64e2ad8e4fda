"""Log events of the handlers of taskqueue.

Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from runtime.model.system import Event

WORKER_LOOP_STARTED: Final = Event("worker_loop_started", "INFO", always=True)
"""A worker began to ask for work."""

HEARTBEAT_ATTEMPT: Final = Event("heartbeat_attempt", "DEBUG", first_always=True)
"""A worker is about to report that it is alive."""

CONSISTENCY_ANOMALY: Final = Event("consistency_anomaly", "ERROR", always=True)
"""State that a partial failure may have left inconsistent."""

CANCEL_RACE: Final = Event("cancel_race", "WARNING")
"""A queued job was not in the queue when it was canceled; it may be on its way to a worker."""

DISPATCH_RACE: Final = Event("dispatch_race", "INFO")
"""A job left its state between its dequeue and its dispatch."""

DISPATCH_RESCUE: Final = Event("dispatch_rescue", "WARNING")
"""A job that could not be dispatched is put back."""

TERMINAL_RACE: Final = Event("terminal_race", "INFO")
"""Another terminal state was there first."""

WORKER_AVAILABLE: Final = Event("worker_available", "INFO")
"""A worker is heard of for the first time or again."""

WORKER_UNAVAILABLE: Final = Event("worker_unavailable", "WARNING")
"""A worker has not been heard of for its timeout."""

FOREIGN_REPORT: Final = Event("foreign_report", "WARNING")
"""An outcome came from a worker that the job is not assigned to."""

JOB_DEQUEUED: Final = Event("job_dequeued", "INFO")
"""A job left the queue for a worker."""

FETCH_FAILED: Final = Event("fetch_failed", "WARNING")
"""A worker got no answer to its request for work."""

EVENTS: Final[Mapping[str, Event]] = {
    "worker_loop_started": WORKER_LOOP_STARTED,
    "heartbeat_attempt": HEARTBEAT_ATTEMPT,
    "consistency_anomaly": CONSISTENCY_ANOMALY,
    "cancel_race": CANCEL_RACE,
    "dispatch_race": DISPATCH_RACE,
    "dispatch_rescue": DISPATCH_RESCUE,
    "terminal_race": TERMINAL_RACE,
    "worker_available": WORKER_AVAILABLE,
    "worker_unavailable": WORKER_UNAVAILABLE,
    "foreign_report": FOREIGN_REPORT,
    "job_dequeued": JOB_DEQUEUED,
    "fetch_failed": FETCH_FAILED,
}
