"""Log events of the handlers of queuey.

Generated from spec/queuey (sha256:77d78c72842295af). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from runtime.model.system import Event

RUNNER_STARTED: Final = Event("runner_started", "INFO", always=True)
"""A runner began to look for jobs."""

STORE_AWAY: Final = Event("store_away", "WARNING", always=True)
"""The store does not do what a runner wants of it; the runner goes on trying, and keeps its job."""

CORRUPT_CONTENT: Final = Event("corrupt_content", "ERROR", always=True)
"""What the store has under an address is not its content any more; it is not served, and uploading it
again repairs it."""

RUNNER_TROUBLE: Final = Event("runner_trouble", "WARNING", always=True)
"""A runner could not run a job for a reason that is not the job's, and gave it back."""

JOB_LOST: Final = Event("job_lost", "WARNING", always=True)
"""A runner lost a job while it ran; its outcome is dropped."""

EVENTS: Final[Mapping[str, Event]] = {
    "runner_started": RUNNER_STARTED,
    "store_away": STORE_AWAY,
    "corrupt_content": CORRUPT_CONTENT,
    "runner_trouble": RUNNER_TROUBLE,
    "job_lost": JOB_LOST,
}
