"""Lifecycles of objectqueue: the states and edges of each entity, and who may drive each edge.

Generated from spec/objectqueue (sha256:bf30565a014f0db2). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType as Frozen
from typing import Final

from generated.objectqueue.messages import (
    ACTIVE,
    ARCHIVED,
    COMPLETED,
    FAILED,
    PENDING,
    RUNNING,
    TASK_STATUS_UNSPECIFIED,
    WORKER_STATUS_UNSPECIFIED,
)
from generated.objectqueue.records import DataRef, RetryPolicy, TaskRecord, WorkerRecord
from runtime.model.lifecycles import Backoff, DeadLetter, Due, Lease, Lifecycle, Take, Transition, Update
from runtime.stores.layouts.s3 import (
    KeptInS3,
    KeyIndex,
    Large,
    Polling,
    Repairing,
    Retiring,
    Schema,
    Shape,
    Shard,
)

TASK_CLAIM: Final = Transition(
    name="claim",
    source=PENDING,
    target=RUNNING,
    actors=frozenset(("worker",)),
    via=None,
    stamps=("updated_at",),
    clear=("progress",),
)
"""A worker takes the task when its time has come."""

TASK_COMPLETE: Final = Transition(
    name="complete",
    source=RUNNING,
    target=COMPLETED,
    actors=frozenset(("worker",)),
    via=None,
    stamps=("completed_at", "updated_at"),
    from_request=Frozen({"output": Take("output")}),
)
"""The handler did it."""

TASK_RETRY: Final = Transition(
    name="retry",
    source=RUNNING,
    target=PENDING,
    actors=frozenset(("worker", "monitor")),
    via=None,
    stamps=("updated_at",),
    from_request=Frozen({"last_error": Take("error")}),
    increment="retry_count",
    backoff=Backoff(
        until="available_at",
        count="retry_count",
        base="retry_policy.initial_interval_ms",
        max="retry_policy.max_interval_ms",
        times="retry_policy.multiplier",
        jitter="retry_policy.jitter_percent",
    ),
    dead_letter=DeadLetter("fail", count="retry_count", limit="max_retries"),
    dues=(
        Due(
            at="lease_expires_at",
            by="monitor",
            every="QO_MONITOR_CHECK_INTERVAL",
            after="QO_MONITOR_GRACE",
            values=Frozen({"error": "lease expired (worker {worker_id}, attempt {attempt})"}),
        ),
    ),
)
"""The handler failed in a way that may pass, took too long, or its worker was not heard of before the
lease ended."""

TASK_RELEASE: Final = Transition(
    name="release",
    source=RUNNING,
    target=PENDING,
    actors=frozenset(("worker",)),
    via=None,
    by_name=True,
    stamps=("available_at", "updated_at"),
    from_request=Frozen({"last_error": Take("error", default="shutdown")}),
)
"""The worker is told to stop and gives back what it has not done. That is no failure."""

TASK_FAIL: Final = Transition(
    name="fail",
    source=RUNNING,
    target=FAILED,
    actors=frozenset(("worker", "monitor")),
    via=None,
    stamps=("completed_at", "updated_at"),
    from_request=Frozen({"last_error": Take("error")}),
)
"""The handler says that it never works, or it has failed as often as it may."""

TASK_CANCEL: Final = Transition(
    name="cancel",
    source=PENDING,
    target=FAILED,
    actors=frozenset(("client", "page")),
    via=None,
    stamps=("completed_at", "updated_at"),
    from_request=Frozen({"last_error": Take("error", default="cancelled")}),
)
"""Nobody wants it any more."""

TASK_CANCEL_RUNNING: Final = Transition(
    name="cancel_running",
    source=RUNNING,
    target=FAILED,
    actors=frozenset(("client", "page")),
    via=None,
    by_name=True,
    stamps=("completed_at", "updated_at"),
    from_request=Frozen({"last_error": Take("error", default="cancelled")}),
)
"""Nobody wants it any more; its worker finds out when it next writes."""

TASK_REPLAY: Final = Transition(
    name="replay",
    source=FAILED,
    target=PENDING,
    actors=frozenset(("client", "page")),
    via=None,
    stamps=("available_at", "updated_at"),
    sets=Frozen({"retry_count": 0}),
    clear=("completed_at", "worker_id"),
)
"""Someone wants it to be tried again, with all its retries."""

TASK_ARCHIVE_COMPLETED: Final = Transition(
    name="archive_completed",
    source=COMPLETED,
    target=ARCHIVED,
    actors=frozenset(("client", "page")),
    via=None,
    stamps=("updated_at",),
    sets=Frozen({"archived_from": COMPLETED}),
)
"""Someone puts it out of sight."""

TASK_ARCHIVE_FAILED: Final = Transition(
    name="archive_failed",
    source=FAILED,
    target=ARCHIVED,
    actors=frozenset(("client", "page")),
    via=None,
    stamps=("updated_at",),
    sets=Frozen({"archived_from": FAILED}),
)
"""Someone puts it out of sight."""

TASK_UNARCHIVE_COMPLETED: Final = Transition(
    name="unarchive_completed",
    source=ARCHIVED,
    target=COMPLETED,
    actors=frozenset(("client", "page")),
    via=None,
    where=Frozen({"archived_from": COMPLETED}),
    stamps=("updated_at",),
    clear=("archived_from",),
)
"""Someone wants to see it again."""

TASK_UNARCHIVE_FAILED: Final = Transition(
    name="unarchive_failed",
    source=ARCHIVED,
    target=FAILED,
    actors=frozenset(("client", "page")),
    via=None,
    where=Frozen({"archived_from": FAILED}),
    stamps=("updated_at",),
    clear=("archived_from",),
)
"""Someone wants to see it again."""

TASK_REPLAY_ARCHIVED: Final = Transition(
    name="replay_archived",
    source=ARCHIVED,
    target=PENDING,
    actors=frozenset(("client", "page")),
    via=None,
    where=Frozen({"archived_from": FAILED}),
    stamps=("available_at", "updated_at"),
    sets=Frozen({"retry_count": 0}),
    clear=("archived_from", "completed_at", "worker_id"),
)
"""Someone wants a failed one to be tried again that was put out of sight."""

TASK_ADVANCE: Final = Update(
    name="advance",
    states=frozenset({RUNNING}),
    actors=frozenset(("worker",)),
    stamps=("updated_at",),
    from_request=Frozen({"progress": Take("progress")}),
    fenced=True,
)
"""The handler says how far it is."""

TASK: Final = Lifecycle(
    entity="task",
    holder="queue",
    key="id",
    status="status",
    states=Frozen(
        {
            PENDING: "PENDING",
            RUNNING: "RUNNING",
            COMPLETED: "COMPLETED",
            FAILED: "FAILED",
            ARCHIVED: "ARCHIVED",
        }
    ),
    initial=PENDING,
    terminal=frozenset({}),
    failed=frozenset({FAILED}),
    creators=frozenset(("client",)),
    creation_stamps=("available_at", "created_at", "updated_at"),
    listed_by="updated_at",
    retained_by=None,
    deletable=frozenset(),
    deleters=frozenset(),
    edges=Frozen(
        {
            (PENDING, RUNNING): TASK_CLAIM,
            (RUNNING, COMPLETED): TASK_COMPLETE,
            (RUNNING, PENDING): TASK_RETRY,
            (RUNNING, FAILED): TASK_FAIL,
            (PENDING, FAILED): TASK_CANCEL,
            (FAILED, PENDING): TASK_REPLAY,
            (COMPLETED, ARCHIVED): TASK_ARCHIVE_COMPLETED,
            (FAILED, ARCHIVED): TASK_ARCHIVE_FAILED,
            (ARCHIVED, COMPLETED): TASK_UNARCHIVE_COMPLETED,
            (ARCHIVED, FAILED): TASK_UNARCHIVE_FAILED,
            (ARCHIVED, PENDING): TASK_REPLAY_ARCHIVED,
        }
    ),
    by_name=(
        TASK_RELEASE,
        TASK_CANCEL_RUNNING,
    ),
    holders=frozenset(("queue", "worker", "monitor")),
    key_form="[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
    record=TaskRecord,
    storage=KeptInS3(
        endpoint="S3_ENDPOINT",
        bucket="S3_BUCKET",
        region="S3_REGION",
        object="tasks/{shard}/{id}.json",
        shape=Shape(
            made=TaskRecord,
            types=Frozen(
                {
                    "id": "string",
                    "schema_version": "uint32",
                    "rev": "uint64",
                    "task_type": "string",
                    "shard": "string",
                    "status": "enum",
                    "archived_from": "enum",
                    "available_at": "timestamp",
                    "lease_expires_at": "timestamp",
                    "input": "json",
                    "input_ref": "DataRef",
                    "output": "json",
                    "output_ref": "DataRef",
                    "progress": "json",
                    "timeout_seconds": "uint32",
                    "max_retries": "uint32",
                    "retry_count": "uint32",
                    "retry_policy": "RetryPolicy",
                    "created_at": "timestamp",
                    "updated_at": "timestamp",
                    "completed_at": "timestamp",
                    "worker_id": "string",
                    "lease_id": "string",
                    "attempt": "uint32",
                    "last_error": "string",
                    "idempotency_key": "string",
                }
            ),
            optional=frozenset(
                (
                    "archived_from",
                    "lease_expires_at",
                    "input_ref",
                    "output",
                    "output_ref",
                    "progress",
                    "completed_at",
                    "worker_id",
                    "lease_id",
                    "last_error",
                    "idempotency_key",
                )
            ),
            words=Frozen(
                {
                    "status": Frozen(
                        {
                            TASK_STATUS_UNSPECIFIED: "Task_status_unspecified",
                            PENDING: "Pending",
                            RUNNING: "Running",
                            COMPLETED: "Completed",
                            FAILED: "Failed",
                            ARCHIVED: "Archived",
                        }
                    ),
                    "archived_from": Frozen(
                        {
                            TASK_STATUS_UNSPECIFIED: "Task_status_unspecified",
                            PENDING: "Pending",
                            RUNNING: "Running",
                            COMPLETED: "Completed",
                            FAILED: "Failed",
                            ARCHIVED: "Archived",
                        }
                    ),
                }
            ),
        ),
        messages=Frozen(
            {
                "DataRef": Shape(
                    made=DataRef,
                    types=Frozen({"key": "string", "version": "string"}),
                    optional=frozenset(("version",)),
                ),
                "RetryPolicy": Shape(
                    made=RetryPolicy,
                    types=Frozen(
                        {
                            "initial_interval_ms": "uint32",
                            "max_interval_ms": "uint32",
                            "multiplier": "double",
                            "jitter_percent": "double",
                        }
                    ),
                ),
            }
        ),
        prefix="QO_QUEUE",
        keyed_by="idempotency_key",
        unversioned="QO_ALLOW_NO_VERSIONING",
        skew="QO_MAX_CLOCK_SKEW_MS",
        shard=Shard("shard", digits=1),
        schema=Schema("schema_version", value=1),
        indexes=Frozen(
            {
                "ready": KeyIndex(
                    key="ready/{shard}/{available_at}/{id}", states=frozenset({PENDING}), at="available_at"
                ),
                "leases": KeyIndex(
                    key="leases/{shard}/{lease_expires_at}/{id}",
                    states=frozenset({RUNNING}),
                    at="lease_expires_at",
                ),
            }
        ),
        polls=Polling(
            index="ready", mode="QO_INDEX_MODE", page="QO_READY_PAGE_SIZE", scan_page="QO_LOG_SCAN_PAGE_SIZE"
        ),
        repairs=Repairing(
            by="monitor",
            every="QO_MONITOR_SWEEP_INTERVAL",
            page="QO_MONITOR_SWEEP_PAGE_SIZE",
            mark="sweeps/last.json",
        ),
        large=Large(
            over=65536,
            refs=Frozen({"input": "input_ref", "output": "output_ref"}),
            object="data/{shard}/{id}/{field}.json",
        ),
        retires=Retiring(
            tag="qo-status", value="archived", states=frozenset({ARCHIVED}), days="QO_ARCHIVE_DAYS"
        ),
    ),
    revision="rev",
    updates=Frozen(
        {
            "advance": TASK_ADVANCE,
        }
    ),
    lease=Lease(
        state=RUNNING,
        owner="worker_id",
        expires="lease_expires_at",
        fence="attempt",
        seconds="timeout_seconds",
        oldest_by="available_at",
        keeps_owner=True,
        token="lease_id",
        only="task_type",
    ),
)
"""Something that is to be done, from the wish to its end."""

WORKER_BEAT: Final = Update(
    name="beat",
    states=frozenset({ACTIVE}),
    actors=frozenset(("worker",)),
    stamps=("last_heartbeat",),
    from_request=Frozen(
        {
            "current_task": Take("current_task"),
            "current_tasks": Take("current_tasks"),
            "tasks_completed": Take("tasks_completed"),
            "tasks_failed": Take("tasks_failed"),
            "leases_lost": Take("leases_lost"),
        }
    ),
)
"""The worker says that it lives and what it does."""

WORKER: Final = Lifecycle(
    entity="worker",
    holder="worker",
    key="worker_id",
    status="status",
    states=Frozen({ACTIVE: "ACTIVE"}),
    initial=ACTIVE,
    terminal=frozenset({}),
    creators=frozenset(("worker",)),
    creation_stamps=("started_at", "last_heartbeat"),
    listed_by="started_at",
    retained_by=None,
    deletable=frozenset({ACTIVE}),
    deleters=frozenset(("worker",)),
    edges=Frozen({}),
    holders=frozenset(("worker", "queue", "monitor")),
    record=WorkerRecord,
    storage=KeptInS3(
        endpoint="S3_ENDPOINT",
        bucket="S3_BUCKET",
        region="S3_REGION",
        object="workers/{worker_id}.json",
        shape=Shape(
            made=WorkerRecord,
            types=Frozen(
                {
                    "worker_id": "string",
                    "schema_version": "uint32",
                    "rev": "uint64",
                    "status": "enum",
                    "started_at": "timestamp",
                    "last_heartbeat": "timestamp",
                    "shards": "repeated string",
                    "task_types": "repeated string",
                    "current_task": "string",
                    "current_tasks": "repeated string",
                    "tasks_completed": "uint64",
                    "tasks_failed": "uint64",
                    "leases_lost": "uint64",
                    "instance": "string",
                    "process": "string",
                }
            ),
            optional=frozenset(("current_task", "instance", "process")),
            words=Frozen(
                {
                    "status": Frozen(
                        {
                            WORKER_STATUS_UNSPECIFIED: "Worker_status_unspecified",
                            ACTIVE: "Active",
                        }
                    ),
                }
            ),
        ),
        messages=Frozen({}),
        prefix="QO_QUEUE",
        schema=Schema("schema_version", value=1),
    ),
    revision="rev",
    updates=Frozen(
        {
            "beat": WORKER_BEAT,
        }
    ),
)
"""Someone who does tasks. Its object is there while it works, and stays behind if it dies."""

LIFECYCLES: Final[Mapping[str, Lifecycle]] = Frozen(
    {
        "task": TASK,
        "worker": WORKER,
    }
)
