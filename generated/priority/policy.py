"""Call policies of priority: deadlines, retries, idempotency, call modes and connection settings.

Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from runtime.model.system import CallPolicy, Keepalive

CALLS: Final[Mapping[str, CallPolicy]] = {
    "TasksService.SubmitTask": CallPolicy(
        deadline_ms=5000,
        idempotency="when_keyed",
        key=("idempotency_key",),
    ),
    "TasksService.SubmitTasks": CallPolicy(
        deadline_ms=5000,
        idempotency="never",
    ),
    "TasksService.GetTask": CallPolicy(
        deadline_ms=25000,
        idempotency="always",
        key=("task_id",),
    ),
    "TasksService.ListTasks": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
    ),
    "TasksService.CancelTask": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
        key=("task_id",),
    ),
    "TasksService.GetQueueStats": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
    ),
    "WorkersService.RegisterWorker": CallPolicy(
        deadline_ms=5000,
        idempotency="never",
    ),
    "WorkersService.PollTasks": CallPolicy(
        deadline_ms=25000,
        idempotency="never",
    ),
    "WorkersService.ReportResult": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
        key=("task_id", "attempt"),
    ),
    "WorkersService.Heartbeat": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
        key=("worker_id",),
    ),
    "WorkersService.ExtendTask": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
        key=("task_id", "attempt"),
    ),
    "WorkersService.ReportProgress": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
        key=("task_id", "attempt"),
    ),
    "WorkersService.ExchangeTasks": CallPolicy(
        deadline_ms=25000,
        idempotency="never",
    ),
    "WorkersService.DeregisterWorker": CallPolicy(
        deadline_ms=5000,
        idempotency="never",
    ),
    "AdminService.ListDeadLetters": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
    ),
    "AdminService.ReplayDeadLetter": CallPolicy(
        deadline_ms=5000,
        idempotency="compare_and_set",
        key=("task_id",),
    ),
    "AdminService.ReplayDeadLetters": CallPolicy(
        deadline_ms=60000,
        idempotency="always",
    ),
    "AdminService.PurgeDeadLetter": CallPolicy(
        deadline_ms=5000,
        idempotency="compare_and_set",
        key=("task_id",),
    ),
    "AdminService.PurgeDeadLetters": CallPolicy(
        deadline_ms=60000,
        idempotency="always",
    ),
    "AdminService.PauseQueue": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
        key=("priority",),
    ),
    "AdminService.ResumeQueue": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
        key=("priority",),
    ),
    "AdminService.ListWorkers": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
    ),
    "AdminService.GetTaskHistory": CallPolicy(
        deadline_ms=5000,
        idempotency="always",
        key=("task_id",),
    ),
}

MESSAGE_BYTES: Final = 4194304
"""Largest gRPC message a node accepts or sends."""

ID: Final = 100
"""Longest id that is looked up."""

TASK_TYPE: Final = 200
"""Longest task type."""

CAPABILITY: Final = 100
"""Longest capability tag."""

CAPABILITIES: Final = 32
"""Most capabilities of a task or of a worker."""

SLOTS: Final = 1000
"""Most tasks that a worker runs at a time."""

IDEMPOTENCY_KEY: Final = 255
"""Longest idempotency key."""

BATCH: Final = 1000
"""Most tasks or results of one request."""

RESULT_BYTES: Final = 1048576
"""Largest result of a task."""

ERROR_TEXT: Final = 2000
"""Longest error text kept; longer text is cut at a character."""

VERSION_TEXT: Final = 100
"""Longest version of a worker."""

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
