"""Call policies of orchestrator: deadlines, retries, idempotency, call modes and connection settings.

Generated from spec/orchestrator (sha256:fdaebfd770cb5849). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from runtime.model.system import CallPolicy, Keepalive

CALLS: Final[Mapping[str, CallPolicy]] = {
    "JobsService.SubmitJob": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
        key=("idempotency_key",),
    ),
    "JobsService.SubmitJobs": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
    ),
    "JobsService.GetJob": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
        key=("job_id",),
    ),
    "JobsService.ListJobs": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
    ),
    "JobsService.RetryJob": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
        key=("job_id", "idempotency_key"),
    ),
    "OperatorService.GetJobHistory": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
        key=("job_id",),
    ),
    "OperatorService.PurgeJobs": CallPolicy(
        deadline_ms=60000,
        idempotency="always",
    ),
}

MESSAGE_BYTES: Final = 4194304
"""Largest gRPC message a node accepts or sends."""

JOB_TYPE: Final = 100
"""Longest job type."""

IDEMPOTENCY_KEY: Final = 255
"""Longest idempotency key."""

BATCH: Final = 1000
"""Most jobs of one batch."""

ERROR_TEXT: Final = 2000
"""Longest error text kept; longer text is cut at a character."""

CONNECTIONS: Final = 1024
"""Connections a node accepts at a time."""

KEEPALIVE: Final = Keepalive(
    ping_every_ms=20000,
    ping_timeout_ms=5000,
    shortest_ping_accepted_ms=10000,
    idle_pings=True,
    connection_age_ms=1800000,
)
