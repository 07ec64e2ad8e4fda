"""The entities of objectqueue that a server stores, as frozen structs.

Generated from spec/objectqueue (sha256:bf30565a014f0db2). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct as _Struct

_NEVER = datetime(1, 1, 1, tzinfo=UTC)


class DataRef(_Struct, frozen=True, kw_only=True):
    """Where a value is that is too long for the object of its task."""

    key: str = ""
    version: str | None = None
    """The version of that object, where the bucket has versions."""


class RetryPolicy(_Struct, frozen=True, kw_only=True):
    """How long a task waits after each failure."""

    initial_interval_ms: int = 0
    """After the first failure."""
    max_interval_ms: int = 0
    """At most."""
    multiplier: float = 0.0
    """By what each wait is longer than the one before."""
    jitter_percent: float = 0.0
    """The fraction by which a wait is shorter or longer at random, from 0 to 1."""


class TaskRecord(_Struct, frozen=True, kw_only=True):
    """A task, as its object has it."""

    id: str
    schema_version: int = 0
    """By which layout it was written."""
    rev: int = 0
    """How often it was written, so that no two versions are alike."""
    task_type: str = ""
    """Which handler does it."""
    shard: str = ""
    """The first hex digit of its id."""
    status: int = 0
    archived_from: int | None = None
    """What it was before it was archived."""
    available_at: datetime = _NEVER
    """It is not taken before."""
    lease_expires_at: datetime | None = None
    input: str = ""
    """What its handler gets."""
    input_ref: DataRef | None = None
    """Where its input is if it is long."""
    output: str | None = None
    """What its handler gave."""
    output_ref: DataRef | None = None
    """Where its output is if it is long."""
    progress: str | None = None
    """What its handler said last of how far it is."""
    timeout_seconds: int = 0
    """How long an attempt may take."""
    max_retries: int = 0
    retry_count: int = 0
    """How often it failed and was put back."""
    retry_policy: RetryPolicy = RetryPolicy()
    created_at: datetime = _NEVER
    updated_at: datetime = _NEVER
    completed_at: datetime | None = None
    """When it was completed, or failed for good."""
    worker_id: str | None = None
    """Who works on it, or did last."""
    lease_id: str | None = None
    """Tells one taking from every other."""
    attempt: int = 0
    """How often it was taken."""
    last_error: str | None = None
    idempotency_key: str | None = None


class WorkerRecord(_Struct, frozen=True, kw_only=True):
    """A worker, as its object has it. It is for those who watch; no task depends on it."""

    worker_id: str
    schema_version: int = 0
    rev: int = 0
    status: int = 0
    started_at: datetime = _NEVER
    last_heartbeat: datetime = _NEVER
    shards: tuple[str, ...] = ()
    """Where it looks for tasks."""
    task_types: tuple[str, ...] = ()
    """What it has handlers for."""
    current_task: str | None = None
    """The task that it has had longest."""
    current_tasks: tuple[str, ...] = ()
    tasks_completed: int = 0
    """Since it started."""
    tasks_failed: int = 0
    """Attempts that failed since it started, also those that are tried again."""
    leases_lost: int = 0
    """Attempts whose outcome counted for nothing."""
    instance: str | None = None
    """Tells one start of a worker from every other of the same name; whoever has the name writes its own."""
    process: str | None = None
    """Machine, process namespace, number and start time of its process, where they are known."""
