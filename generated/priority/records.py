"""The entities of priority that a server stores, as frozen structs.

Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct as _Struct

_NEVER = datetime(1, 1, 1, tzinfo=UTC)


class TaskRecord(_Struct, frozen=True, kw_only=True):
    """One task and all that became of it."""

    task_id: str
    task_type: str = ""
    priority: int = 0
    effective_priority: int = 0
    parameters: str = ""
    required_capabilities: tuple[str, ...] = ()
    status: int = 0
    retry_count: int = 0
    max_retries: int | None = None
    timeout_seconds: int | None = None
    base_timeout_seconds: int | None = None
    """The time limit before it grew."""
    created_at: datetime = _NEVER
    queued_at: datetime = _NEVER
    """Its place in a queue goes by it."""
    updated_at: datetime = _NEVER
    started_at: datetime | None = None
    completed_at: datetime | None = None
    available_at: datetime | None = None
    """Until when it is held back."""
    deadline_at: datetime | None = None
    assigned_worker_id: str | None = None
    attempt: int = 0
    """How often it was handed out. It fences what earlier holders say."""
    result: str | None = None
    error: str | None = None
    retriable: bool | None = None
    dead_reason: str | None = None
    idempotency_key: str | None = None
    digest: str | None = None
    """Of what was submitted under the key, so that another task under it is told apart."""
    trace_id: str = ""
    progress: str | None = None
    changes: int = 0


class WorkerRecord(_Struct, frozen=True, kw_only=True):
    """One worker for as long as it is heard of."""

    worker_id: str
    status: int = 0
    capacity: int = 0
    capabilities: tuple[str, ...] = ()
    version: str | None = None
    reported_load: int | None = None
    registered_at: datetime = _NEVER
    last_heartbeat: datetime = _NEVER
    updated_at: datetime = _NEVER
    changes: int = 0
