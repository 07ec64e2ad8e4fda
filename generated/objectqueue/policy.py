"""Call policies of objectqueue: deadlines, retries, idempotency, call modes and connection settings.

Generated from spec/objectqueue (sha256:bf30565a014f0db2). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from runtime.model.system import CallPolicy, Keepalive

CALLS: Final[Mapping[str, CallPolicy]] = {
    "QueueService.SubmitTask": CallPolicy(
        deadline_ms=60000,
        idempotency="when_keyed",
        key=("idempotency_key",),
    ),
    "QueueService.GetTask": CallPolicy(
        deadline_ms=60000,
        idempotency="always",
        key=("task_id",),
    ),
    "QueueService.GetHistory": CallPolicy(
        deadline_ms=60000,
        idempotency="always",
        key=("task_id",),
    ),
    "QueueService.ListTasks": CallPolicy(
        deadline_ms=600000,
        idempotency="always",
    ),
    "QueueService.ReplayTask": CallPolicy(
        deadline_ms=60000,
        idempotency="compare_and_set",
        key=("task_id",),
    ),
    "QueueService.ArchiveTask": CallPolicy(
        deadline_ms=60000,
        idempotency="compare_and_set",
        key=("task_id",),
    ),
    "QueueService.UnarchiveTask": CallPolicy(
        deadline_ms=60000,
        idempotency="compare_and_set",
        key=("task_id",),
    ),
    "QueueService.CancelTask": CallPolicy(
        deadline_ms=60000,
        idempotency="compare_and_set",
        key=("task_id",),
    ),
    "QueueService.ListWorkers": CallPolicy(
        deadline_ms=60000,
        idempotency="always",
    ),
    "QueueService.GetStats": CallPolicy(
        deadline_ms=600000,
        idempotency="always",
    ),
}

MESSAGE_BYTES: Final = 67108864
"""Largest request or answer."""

INLINE: Final = 65536
"""Longest input or output that is in the object of a task; a longer one has an object of its own."""

INPUT_BYTES: Final = 33554432
"""Longest input of a task."""

TASK_TYPE: Final = 255
"""Longest name of a kind of task."""

WORKER_ID: Final = 200
"""Longest name of a worker."""

IDEMPOTENCY_KEY: Final = 255
"""Longest idempotency key."""

ERROR_TEXT: Final = 4000
"""Longest error that is kept; a longer one is cut at a character."""

PAGE_TOKEN: Final = 1024
"""Longest page token."""

KEEPALIVE: Final = Keepalive(
    ping_every_ms=20000,
    ping_timeout_ms=5000,
    shortest_ping_accepted_ms=10000,
    idle_pings=True,
    connection_age_ms=1800000,
)
