"""Call policies of taskqueue: deadlines, retries, idempotency, call modes and connection settings.

Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from runtime.model.system import CallMode, CallPolicy, Keepalive, RetryProfile

STANDARD: Final = RetryProfile(
    name="standard",
    codes=frozenset(("UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED")),
    attempts=4,
    initial_ms=100,
    multiplier=2.0,
    max_ms=1000,
    full_jitter=True,
)
"""Exponential backoff with full jitter; the first call counts as an attempt."""

COMPENSATION: Final = CallMode("compensation", fresh_deadline=True, attempts=None)
"""Undoes what an earlier step left behind, so it must not die with the caller's deadline."""

RESCUE: Final = CallMode("rescue", fresh_deadline=True, attempts=1)
"""One immediate attempt to put a job back into the queue."""

CALLS: Final[Mapping[str, CallPolicy]] = {
    "TaskQueuePublicService.SubmitJob": CallPolicy(
        deadline_ms=3000,
        idempotency="when_keyed",
        key=("client_request_id",),
        retry=STANDARD,
        retry_when_set="client_request_id",
    ),
    "TaskQueuePublicService.GetJobStatus": CallPolicy(
        deadline_ms=1000,
        idempotency="always",
        key=("job_id",),
        retry=STANDARD,
    ),
    "TaskQueuePublicService.GetJobResult": CallPolicy(
        deadline_ms=1000,
        idempotency="always",
        key=("job_id",),
        retry=STANDARD,
    ),
    "TaskQueuePublicService.CancelJob": CallPolicy(
        deadline_ms=3000,
        idempotency="always",
        key=("job_id",),
        retry=STANDARD,
    ),
    "TaskQueuePublicService.ListJobs": CallPolicy(
        deadline_ms=1000,
        idempotency="always",
        key=("status_filter", "sort", "page"),
        retry=STANDARD,
    ),
    "JobInternalService.CreateJob": CallPolicy(
        deadline_ms=1000,
        idempotency="when_keyed",
        key=("client_request_id",),
        retry=STANDARD,
        retry_when_set="client_request_id",
    ),
    "JobInternalService.DeleteJobIfStatus": CallPolicy(
        deadline_ms=1000,
        idempotency="compare_and_set",
        key=("job_id", "expected_status"),
        retry=STANDARD,
    ),
    "JobInternalService.GetJobRecord": CallPolicy(
        deadline_ms=1000,
        idempotency="always",
        key=("job_id",),
        retry=STANDARD,
    ),
    "JobInternalService.ListJobRecords": CallPolicy(
        deadline_ms=1000,
        idempotency="always",
        key=("status_filter", "sort", "page"),
        retry=STANDARD,
    ),
    "JobInternalService.TransitionJobStatus": CallPolicy(
        deadline_ms=1000,
        idempotency="compare_and_set",
        key=("job_id", "expected_from_status", "to_status"),
    ),
    "JobInternalService.SetCancelRequested": CallPolicy(
        deadline_ms=1000,
        idempotency="always",
        key=("job_id",),
        retry=STANDARD,
    ),
    "QueueInternalService.EnqueueJob": CallPolicy(
        deadline_ms=1000,
        idempotency="always",
        key=("job_id",),
        retry=STANDARD,
    ),
    "QueueInternalService.DequeueJob": CallPolicy(
        deadline_ms=1000,
        idempotency="never",
    ),
    "QueueInternalService.RemoveJobIfPresent": CallPolicy(
        deadline_ms=1000,
        idempotency="always",
        key=("job_id",),
    ),
    "CoordinatorInternalService.WorkerHeartbeat": CallPolicy(
        deadline_ms=1000,
        idempotency="always",
        key=("worker_id",),
    ),
    "CoordinatorInternalService.FetchWork": CallPolicy(
        deadline_ms=1500,
        idempotency="never",
    ),
    "CoordinatorInternalService.ReportWorkOutcome": CallPolicy(
        deadline_ms=1000,
        idempotency="first_write_wins",
        key=("job_id",),
        retry=STANDARD,
    ),
    "ResultInternalService.StoreResult": CallPolicy(
        deadline_ms=1000,
        idempotency="first_write_wins",
        key=("job_id",),
        retry=STANDARD,
    ),
    "ResultInternalService.GetResult": CallPolicy(
        deadline_ms=1000,
        idempotency="always",
        key=("job_id",),
        retry=STANDARD,
    ),
}

MESSAGE_BYTES: Final = 4194304
"""Largest gRPC message a node accepts or sends."""

REQUEST_SIZE: Final = 1048576
"""Largest request of a method that carries no output."""

STORED_TEXT: Final = 1024
"""Longest reason or summary kept; longer text is cut at a character."""

DISPATCH_RETRY: Final = 50
"""When a worker asks again after a job could not be dispatched to it."""

STRANDED_GRACE: Final = 5000
"""Longer than a submit or a cancel takes with all that it undoes. A job that is seen stranded twice, so
long and WORKER_TIMEOUT_MS apart, is stranded."""

IDLE_HOLD: Final = 600
"""How long an idle dequeue waits for a job to come, so that it starts at once."""

CONCURRENT_STREAMS: Final = 1024
"""Calls one connection may have open at a time."""

CONNECTIONS: Final = 4096
"""Connections a node accepts at a time."""

KEEPALIVE: Final = Keepalive(
    ping_every_ms=20000,
    ping_timeout_ms=5000,
    shortest_ping_accepted_ms=10000,
    idle_pings=True,
    connection_age_ms=1800000,
)
