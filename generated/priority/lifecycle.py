"""Lifecycles of priority: the states and edges of each entity, and who may drive each edge.

Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType as Frozen
from typing import Final

from generated.priority.messages import (
    ACTIVE,
    CANCELLED,
    COMPLETED,
    DEAD,
    DEAD_LETTER,
    DRAINING,
    EXECUTING,
    FAILED,
    HIGH,
    LOW,
    MEDIUM,
    PRIORITY_UNSPECIFIED,
    QUEUED,
    TASK_STATUS_UNSPECIFIED,
    WORKER_STATUS_UNSPECIFIED,
)
from generated.priority.records import TaskRecord, WorkerRecord
from runtime.model.lifecycles import (
    Backoff,
    Ceiling,
    DeadLetter,
    Default,
    Due,
    Holder,
    Index,
    Lease,
    Lifecycle,
    Multiplier,
    Parts,
    Take,
    Transition,
    Update,
)
from runtime.stores.layouts.redis import KeptInRedis, Outbox, Remembered

TASK_CLAIM: Final = Transition(
    name="claim",
    source=QUEUED,
    target=EXECUTING,
    actors=frozenset(("worker",)),
    via=None,
    stamps=("started_at", "updated_at"),
)
"""A worker that can run the task takes it."""

TASK_COMPLETE: Final = Transition(
    name="complete",
    source=EXECUTING,
    target=COMPLETED,
    actors=frozenset(("worker",)),
    via=None,
    stamps=("completed_at", "updated_at"),
    from_request=Frozen({"result": Take("result")}),
    clear=("error", "retriable"),
)
"""The worker reports that it is done."""

TASK_FAIL: Final = Transition(
    name="fail",
    source=EXECUTING,
    target=FAILED,
    actors=frozenset(("worker",)),
    via=None,
    stamps=("completed_at", "updated_at"),
    from_request=Frozen({"error": Take("error"), "retriable": Take("retriable")}),
    reason="reason",
)
"""The worker reports a failure that no repeat would mend."""

TASK_RETRY: Final = Transition(
    name="retry",
    source=EXECUTING,
    target=QUEUED,
    actors=frozenset(("worker", "detector")),
    via=None,
    stamps=("updated_at",),
    from_request=Frozen({"error": Take("error"), "retriable": Take("retriable")}),
    copy=Frozen({"effective_priority": "priority"}),
    clear=("started_at",),
    multiply=Frozen(
        {
            "timeout_seconds": Multiplier(times=1.5, max="MAX_TIMEOUT_SECONDS"),
        }
    ),
    increment="retry_count",
    backoff=Backoff(
        until="available_at",
        count="retry_count",
        base="RETRY_BACKOFF_SECONDS",
        max="RETRY_BACKOFF_MAX_SECONDS",
    ),
    dead_letter=DeadLetter("bury", count="retry_count", limit="max_retries"),
    dues=(
        Due(
            at="deadline_at",
            by="detector",
            every="TIMEOUT_CHECK_INTERVAL_SECONDS",
            values=Frozen({"reason": "timeout", "error": "the task ran out of time", "retriable": "true"}),
        ),
        Due(
            at=None,
            by="detector",
            every="WORKER_CHECK_INTERVAL_SECONDS",
            holder_in=DEAD,
            values=Frozen(
                {
                    "reason": "worker_lost",
                    "error": "the worker was not heard of any more",
                    "retriable": "true",
                }
            ),
        ),
    ),
    reason="reason",
)
"""The run failed, ran out of time, or its worker died; it has another try."""

TASK_GIVE_BACK: Final = Transition(
    name="give_back",
    source=EXECUTING,
    target=QUEUED,
    actors=frozenset(("worker",)),
    via=None,
    by_name=True,
    stamps=("updated_at",),
    clear=("started_at",),
    reason="reason",
)
"""The worker is stopped and gives back what it has not done. That is no failure."""

TASK_BURY: Final = Transition(
    name="bury",
    source=EXECUTING,
    target=DEAD_LETTER,
    actors=frozenset(("worker", "detector")),
    via=None,
    stamps=("completed_at", "updated_at"),
    sets=Frozen({"dead_reason": "max_retries_exceeded"}),
    from_request=Frozen({"error": Take("error"), "retriable": Take("retriable")}),
    reason="reason",
)
"""It failed as often as it may."""

TASK_CANCEL: Final = Transition(
    name="cancel",
    source=QUEUED,
    target=CANCELLED,
    actors=frozenset(("client", "admin")),
    via=None,
    stamps=("completed_at", "updated_at"),
    clear=("available_at",),
)
"""A client no longer wants it."""

TASK_ABORT: Final = Transition(
    name="abort",
    source=EXECUTING,
    target=CANCELLED,
    actors=frozenset(("client", "admin")),
    via=None,
    stamps=("completed_at", "updated_at"),
)
"""A client no longer wants it while a worker runs it."""

TASK_REPLAY: Final = Transition(
    name="replay",
    source=DEAD_LETTER,
    target=QUEUED,
    actors=frozenset(("admin",)),
    via=None,
    stamps=("queued_at", "updated_at"),
    sets=Frozen({"retry_count": 0}),
    copy=Frozen({"effective_priority": "priority", "timeout_seconds": "base_timeout_seconds"}),
    clear=(
        "error",
        "retriable",
        "dead_reason",
        "assigned_worker_id",
        "started_at",
        "completed_at",
        "available_at",
    ),
)
"""An administrator gives it all its tries again."""

TASK_RAISE_LOW: Final = Update(
    name="raise_low",
    states=frozenset({QUEUED}),
    actors=frozenset(("promoter",)),
    where=Frozen({"effective_priority": LOW}),
    sets=Frozen({"effective_priority": MEDIUM}),
    dues=(
        Due(
            at="queued_at",
            by="promoter",
            every="PROMOTION_INTERVAL_SECONDS",
            after="LOW_TO_MEDIUM_SECONDS",
            batch="PROMOTION_BATCH_SIZE",
        ),
    ),
)
"""A task of low priority has waited for long."""

TASK_RAISE_MEDIUM: Final = Update(
    name="raise_medium",
    states=frozenset({QUEUED}),
    actors=frozenset(("promoter",)),
    where=Frozen({"effective_priority": MEDIUM}),
    sets=Frozen({"effective_priority": HIGH}),
    dues=(
        Due(
            at="queued_at",
            by="promoter",
            every="PROMOTION_INTERVAL_SECONDS",
            after="MEDIUM_TO_HIGH_SECONDS",
            batch="PROMOTION_BATCH_SIZE",
        ),
    ),
)
"""A task of medium priority has waited for long."""

TASK_RELEASE: Final = Update(
    name="release",
    states=frozenset({QUEUED}),
    actors=frozenset(("sweeper",)),
    clear=("available_at",),
    dues=(Due(at="available_at", by="sweeper", every="DELAY_CHECK_INTERVAL_SECONDS"),),
)
"""The time of a delayed task has come."""

TASK_ADVANCE: Final = Update(
    name="advance",
    states=frozenset({EXECUTING}),
    actors=frozenset(("worker",)),
    from_request=Frozen({"progress": Take("progress")}),
    fenced=True,
)
"""The worker tells how far it is."""

TASK: Final = Lifecycle(
    entity="task",
    holder="manager",
    key="task_id",
    status="status",
    states=Frozen(
        {
            QUEUED: "QUEUED",
            EXECUTING: "EXECUTING",
            COMPLETED: "COMPLETED",
            FAILED: "FAILED",
            CANCELLED: "CANCELLED",
            DEAD_LETTER: "DEAD_LETTER",
        }
    ),
    initial=QUEUED,
    terminal=frozenset({COMPLETED, FAILED, CANCELLED}),
    failed=frozenset({FAILED, CANCELLED, DEAD_LETTER}),
    creators=frozenset(("client", "worker", "admin")),
    creation_stamps=("created_at", "queued_at", "updated_at"),
    listed_by="updated_at",
    retained_by=None,
    deletable=frozenset({DEAD_LETTER}),
    deleters=frozenset(("admin", "sweeper")),
    edges=Frozen(
        {
            (QUEUED, EXECUTING): TASK_CLAIM,
            (EXECUTING, COMPLETED): TASK_COMPLETE,
            (EXECUTING, FAILED): TASK_FAIL,
            (EXECUTING, QUEUED): TASK_RETRY,
            (EXECUTING, DEAD_LETTER): TASK_BURY,
            (QUEUED, CANCELLED): TASK_CANCEL,
            (EXECUTING, CANCELLED): TASK_ABORT,
            (DEAD_LETTER, QUEUED): TASK_REPLAY,
        }
    ),
    by_name=(TASK_GIVE_BACK,),
    holders=frozenset(("manager", "promoter", "detector", "sweeper", "historian")),
    key_form="[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
    record=TaskRecord,
    storage=KeptInRedis(
        url="REDIS_URL",
        prefix="REDIS_KEY_PREFIX",
        hash="tasks:{task_id}",
        sequence="changes",
        types=Frozen(
            {
                "task_id": "string",
                "task_type": "string",
                "priority": "enum",
                "effective_priority": "enum",
                "parameters": "json",
                "required_capabilities": "repeated string",
                "status": "enum",
                "retry_count": "uint32",
                "max_retries": "uint32",
                "timeout_seconds": "uint32",
                "base_timeout_seconds": "uint32",
                "created_at": "timestamp",
                "queued_at": "timestamp",
                "updated_at": "timestamp",
                "started_at": "timestamp",
                "completed_at": "timestamp",
                "available_at": "timestamp",
                "deadline_at": "timestamp",
                "assigned_worker_id": "string",
                "attempt": "uint32",
                "result": "json",
                "error": "string",
                "retriable": "bool",
                "dead_reason": "string",
                "idempotency_key": "string",
                "digest": "string",
                "trace_id": "string",
                "progress": "json",
                "changes": "uint64",
            }
        ),
        optional=frozenset(
            (
                "max_retries",
                "timeout_seconds",
                "base_timeout_seconds",
                "started_at",
                "completed_at",
                "available_at",
                "deadline_at",
                "assigned_worker_id",
                "result",
                "error",
                "retriable",
                "dead_reason",
                "idempotency_key",
                "digest",
                "progress",
            )
        ),
        words=Frozen(
            {
                "priority": Frozen(
                    {
                        PRIORITY_UNSPECIFIED: "priority_unspecified",
                        HIGH: "high",
                        MEDIUM: "medium",
                        LOW: "low",
                    }
                ),
                "effective_priority": Frozen(
                    {
                        PRIORITY_UNSPECIFIED: "priority_unspecified",
                        HIGH: "high",
                        MEDIUM: "medium",
                        LOW: "low",
                    }
                ),
                "status": Frozen(
                    {
                        TASK_STATUS_UNSPECIFIED: "task_status_unspecified",
                        QUEUED: "queued",
                        EXECUTING: "executing",
                        COMPLETED: "completed",
                        FAILED: "failed",
                        CANCELLED: "cancelled",
                        DEAD_LETTER: "dead_letter",
                    }
                ),
            }
        ),
        trace="trace_id",
        expires="TASK_RETENTION_SECONDS",
        replicas="REDIS_WAIT_REPLICAS",
        unique=Frozen(
            {
                "idempotency_key": Remembered(
                    key="idempotent:{idempotency_key}", seconds="IDEMPOTENCY_TTL_SECONDS"
                ),
            }
        ),
        indexes=Frozen(
            {
                "waiting": Index(
                    key="queue:{effective_priority}",
                    states=frozenset({QUEUED}),
                    score="queued_at",
                    only_unless="available_at",
                    parts=Parts(
                        by="required_capabilities",
                        key="queue:{effective_priority}:cap:{signature}",
                        known="queue:capabilities",
                    ),
                ),
                "delayed": Index(
                    key="queue:delayed",
                    states=frozenset({QUEUED}),
                    score="available_at",
                    only_if="available_at",
                ),
                "running": Index(
                    key="executing:deadlines",
                    states=frozenset({EXECUTING}),
                    score="deadline_at",
                ),
                "booked": Index(
                    key="worker_tasks:{assigned_worker_id}",
                    states=frozenset({EXECUTING}),
                ),
                "dead": Index(
                    key="queue:dlq",
                    states=frozenset({DEAD_LETTER}),
                    score="completed_at",
                ),
                "listed": Index(
                    key="tasks:status:{status}",
                    states=frozenset({QUEUED, EXECUTING, COMPLETED, FAILED, CANCELLED, DEAD_LETTER}),
                    score="updated_at",
                ),
            }
        ),
        paused="queue:paused",
        wake_up="queue:wake",
        metrics="metrics",
        outbox=Outbox(
            stream="history:outbox",
            url="DATABASE_URL",
            table="task_changes",
            ended="ended_tasks",
            by="historian",
            expires="HISTORY_RETENTION_SECONDS",
        ),
    ),
    copy=Frozen({"effective_priority": "priority", "base_timeout_seconds": "timeout_seconds"}),
    defaults=Frozen(
        {
            "max_retries": Default(
                by="priority",
                of=Frozen(
                    {
                        HIGH: "HIGH_MAX_RETRIES",
                        MEDIUM: "MEDIUM_MAX_RETRIES",
                        LOW: "LOW_MAX_RETRIES",
                    }
                ),
            ),
            "timeout_seconds": Default(
                by="priority",
                of=Frozen(
                    {
                        HIGH: "HIGH_TIMEOUT_SECONDS",
                        MEDIUM: "MEDIUM_TIMEOUT_SECONDS",
                        LOW: "LOW_TIMEOUT_SECONDS",
                    }
                ),
            ),
        }
    ),
    ceiling=Ceiling(index="waiting", max="MAX_QUEUE_DEPTH"),
    deletion_due=Due(
        at="completed_at", by="sweeper", every="DLQ_SWEEP_INTERVAL_SECONDS", after="DLQ_RETENTION_SECONDS"
    ),
    updates=Frozen(
        {
            "raise_low": TASK_RAISE_LOW,
            "raise_medium": TASK_RAISE_MEDIUM,
            "release": TASK_RELEASE,
            "advance": TASK_ADVANCE,
        }
    ),
    lease=Lease(
        state=EXECUTING,
        owner="assigned_worker_id",
        expires="deadline_at",
        fence="attempt",
        seconds="timeout_seconds",
        oldest_by="queued_at",
        index="waiting",
        claim_order=(HIGH, MEDIUM, LOW),
        holder=Holder(
            entity="worker",
            states=frozenset({ACTIVE}),
            capacity="capacity",
            offers="capabilities",
            needs="required_capabilities",
            booked="booked",
        ),
        keeps_owner=True,
    ),
)
"""One piece of work with a priority, from its submission to its end."""

WORKER_DRAIN: Final = Transition(
    name="drain",
    source=ACTIVE,
    target=DRAINING,
    actors=frozenset(("worker",)),
    via=None,
    stamps=("updated_at",),
)
"""It wants no more tasks."""

WORKER_RESUME: Final = Transition(
    name="resume",
    source=DRAINING,
    target=ACTIVE,
    actors=frozenset(("worker",)),
    via=None,
    stamps=("updated_at",),
)
"""It takes tasks again."""

WORKER_LOSE: Final = Transition(
    name="lose",
    source=ACTIVE,
    target=DEAD,
    actors=frozenset(("detector",)),
    via=None,
    stamps=("updated_at",),
    dues=(
        Due(
            at="last_heartbeat",
            by="detector",
            every="WORKER_CHECK_INTERVAL_SECONDS",
            after="WORKER_DEAD_SECONDS",
        ),
    ),
)
"""It was not heard of for too long."""

WORKER_LOSE_DRAINING: Final = Transition(
    name="lose_draining",
    source=DRAINING,
    target=DEAD,
    actors=frozenset(("detector",)),
    via=None,
    stamps=("updated_at",),
    dues=(
        Due(
            at="last_heartbeat",
            by="detector",
            every="WORKER_CHECK_INTERVAL_SECONDS",
            after="WORKER_DEAD_SECONDS",
        ),
    ),
)
"""It was not heard of for too long while it drained."""

WORKER_BEAT: Final = Update(
    name="beat",
    states=frozenset({ACTIVE, DRAINING}),
    actors=frozenset(("worker",)),
    stamps=("last_heartbeat",),
    from_request=Frozen({"reported_load": Take("reported_load")}),
)
"""It is heard of."""

WORKER: Final = Lifecycle(
    entity="worker",
    holder="manager",
    key="worker_id",
    status="status",
    states=Frozen({ACTIVE: "ACTIVE", DRAINING: "DRAINING", DEAD: "DEAD"}),
    initial=ACTIVE,
    terminal=frozenset({DEAD}),
    creators=frozenset(("worker",)),
    creation_stamps=("registered_at", "last_heartbeat", "updated_at"),
    listed_by="updated_at",
    retained_by=None,
    deletable=frozenset({ACTIVE, DRAINING}),
    deleters=frozenset(("worker",)),
    edges=Frozen(
        {
            (ACTIVE, DRAINING): WORKER_DRAIN,
            (DRAINING, ACTIVE): WORKER_RESUME,
            (ACTIVE, DEAD): WORKER_LOSE,
            (DRAINING, DEAD): WORKER_LOSE_DRAINING,
        }
    ),
    holders=frozenset(("manager", "detector")),
    key_form="[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
    record=WorkerRecord,
    storage=KeptInRedis(
        url="REDIS_URL",
        prefix="REDIS_KEY_PREFIX",
        hash="workers:{worker_id}",
        sequence="changes",
        types=Frozen(
            {
                "worker_id": "string",
                "status": "enum",
                "capacity": "uint32",
                "capabilities": "repeated string",
                "version": "string",
                "reported_load": "uint32",
                "registered_at": "timestamp",
                "last_heartbeat": "timestamp",
                "updated_at": "timestamp",
                "changes": "uint64",
            }
        ),
        optional=frozenset(("version", "reported_load")),
        words=Frozen(
            {
                "status": Frozen(
                    {
                        WORKER_STATUS_UNSPECIFIED: "worker_status_unspecified",
                        ACTIVE: "active",
                        DRAINING: "draining",
                        DEAD: "dead",
                    }
                ),
            }
        ),
        expires="TASK_RETENTION_SECONDS",
        indexes=Frozen(
            {
                "alive": Index(
                    key="workers:heartbeats",
                    states=frozenset({ACTIVE, DRAINING}),
                    score="last_heartbeat",
                ),
                "listed": Index(
                    key="workers:status:{status}",
                    states=frozenset({ACTIVE, DRAINING, DEAD}),
                    score="updated_at",
                ),
            }
        ),
        metrics="metrics",
    ),
    unless_holding="task",
    updates=Frozen(
        {
            "beat": WORKER_BEAT,
        }
    ),
)
"""A process that runs tasks, as long as it is heard of."""

LIFECYCLES: Final[Mapping[str, Lifecycle]] = Frozen(
    {
        "task": TASK,
        "worker": WORKER,
    }
)
