"""Call policies of queuey: deadlines, retries, idempotency, call modes and connection settings.

Generated from spec/queuey (sha256:77d78c72842295af). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from runtime.model.system import CallPolicy, Keepalive

CALLS: Final[Mapping[str, CallPolicy]] = {
    "QueueService.CreateJob": CallPolicy(
        deadline_ms=5000,
        idempotency="when_keyed",
        key=("idempotency_key",),
    ),
    "QueueService.GetJob": CallPolicy(
        deadline_ms=25000,
        idempotency="always",
        key=("job_id",),
    ),
    "QueueService.ListJobs": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
    ),
    "QueueService.CountJobs": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
    ),
    "QueueService.ClaimJob": CallPolicy(
        deadline_ms=25000,
        idempotency="never",
    ),
    "QueueService.TickleJob": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
        key=("job_id",),
    ),
    "QueueService.CompleteJob": CallPolicy(
        deadline_ms=5000,
        idempotency="first_write_wins",
        key=("job_id",),
    ),
    "QueueService.ReleaseJob": CallPolicy(
        deadline_ms=5000,
        idempotency="never",
    ),
    "QueueService.CancelJob": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
        key=("job_id",),
    ),
    "QueueService.RetryJob": CallPolicy(
        deadline_ms=5000,
        idempotency="never",
    ),
    "QueueService.GetReport": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
        key=("job_id",),
    ),
    "StoreService.PutBlob": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
    ),
    "StoreService.PutBlobAt": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
        key=("address",),
    ),
    "StoreService.GetBlob": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
        key=("address",),
    ),
}

MESSAGE_BYTES: Final = 4194304
"""Largest gRPC message a node accepts or sends."""

ADDRESS: Final = 512
"""Longest address in the store."""

NAME: Final = 512
"""Longest name of a runner."""

IDEMPOTENCY_KEY: Final = 255
"""Longest idempotency key."""

ERROR_TEXT: Final = 2000
"""Longest reason kept; longer text is cut at a character."""

LONGEST_WAIT: Final = 20000
"""Longest time that a request may wait for something to happen."""

CONNECTIONS: Final = 1024
"""Connections a node accepts at a time."""

KEEPALIVE: Final = Keepalive(
    ping_every_ms=20000,
    ping_timeout_ms=5000,
    shortest_ping_accepted_ms=10000,
    idle_pings=True,
    connection_age_ms=1800000,
)
