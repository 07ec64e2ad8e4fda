"""Encoders of the new entities of priority: from a record to the keys and arguments of a script.

Generated from spec/priority (sha256:7e7cda949e7fa8e0). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, Final

from generated.priority.messages import HIGH, LOW, MEDIUM, PRIORITY_UNSPECIFIED
from generated.priority.records import TaskRecord, WorkerRecord
from runtime.stores.redis.filling import packed
from runtime.stores.redis.rows import listed
from runtime.stores.redis.rows import signature as signature_of

Handed = tuple[tuple[str, ...], tuple[str | bytes, ...]]
"""The keys and the arguments of one entity."""
_TASK_PRIORITY_WORDS: Final[Mapping[int, str]] = {
    PRIORITY_UNSPECIFIED: "priority_unspecified",
    HIGH: "high",
    MEDIUM: "medium",
    LOW: "low",
}
_TASK_EFFECTIVE_PRIORITY_WORDS: Final[Mapping[int, str]] = {
    PRIORITY_UNSPECIFIED: "priority_unspecified",
    HIGH: "high",
    MEDIUM: "medium",
    LOW: "low",
}
_TASK_MAX_RETRIES_BY_PRIORITY: Final[Mapping[int, str]] = {
    HIGH: "HIGH_MAX_RETRIES",
    MEDIUM: "MEDIUM_MAX_RETRIES",
    LOW: "LOW_MAX_RETRIES",
}
_TASK_TIMEOUT_SECONDS_BY_PRIORITY: Final[Mapping[int, str]] = {
    HIGH: "HIGH_TIMEOUT_SECONDS",
    MEDIUM: "MEDIUM_TIMEOUT_SECONDS",
    LOW: "LOW_TIMEOUT_SECONDS",
}


def encode_task(record: TaskRecord, variables: Mapping[str, Any]) -> dict[str, str] | None:
    """Encode the fields of a new task; None if it has one that only the script `create` knows."""
    new_max_retries = record.max_retries
    if new_max_retries is None:
        new_max_retries = variables[_TASK_MAX_RETRIES_BY_PRIORITY[record.priority]]
    new_timeout_seconds = record.timeout_seconds
    if new_timeout_seconds is None:
        new_timeout_seconds = variables[_TASK_TIMEOUT_SECONDS_BY_PRIORITY[record.priority]]
    if (
        record.started_at is not None
        or record.completed_at is not None
        or record.available_at is not None
        or record.deadline_at is not None
        or record.assigned_worker_id is not None
        or record.result is not None
        or record.error is not None
        or record.retriable is not None
        or record.dead_reason is not None
        or record.idempotency_key is not None
        or record.progress is not None
    ):
        return None
    fields = {
        "task_id": record.task_id,
        "task_type": record.task_type,
        "priority": _TASK_PRIORITY_WORDS[record.priority],
        "effective_priority": _TASK_EFFECTIVE_PRIORITY_WORDS[record.priority],
        "parameters": record.parameters,
        "required_capabilities": listed(record.required_capabilities),
        "retry_count": str(record.retry_count),
        "attempt": str(record.attempt),
        "trace_id": record.trace_id,
    }
    if new_max_retries is not None:
        fields["max_retries"] = str(new_max_retries)
    if new_timeout_seconds is not None:
        fields["timeout_seconds"] = str(new_timeout_seconds)
    if new_timeout_seconds is not None:
        fields["base_timeout_seconds"] = str(new_timeout_seconds)
    if record.digest is not None:
        fields["digest"] = record.digest
    return fields


def task_to_create_one(
    record: TaskRecord, _owner: str, prefix: str, variables: Mapping[str, Any]
) -> Handed | None:
    """The keys and arguments of the script `create_one` for a task; None if it does not do."""
    fields = encode_task(record, variables)
    if fields is None:
        return None
    signature = signature_of(record.required_capabilities)
    return (
        (
            f"{prefix}tasks:{record.task_id}",
            f"{prefix}queue:{fields['effective_priority']}",
            f"{prefix}queue:{fields['effective_priority']}:cap:{signature}",
        ),
        (
            record.task_id,
            packed(fields),
            signature,
            fields["required_capabilities"],
            fields["trace_id"],
        ),
    )


def task_to_create_for(
    record: TaskRecord, owner: str, prefix: str, variables: Mapping[str, Any]
) -> Handed | None:
    """The keys and arguments of the script `create_for` for a task; None if it does not do."""
    fields = encode_task(record, variables)
    if fields is None:
        return None
    signature = signature_of(record.required_capabilities)
    return (
        (
            f"{prefix}tasks:{record.task_id}",
            f"{prefix}queue:{fields['effective_priority']}",
            f"{prefix}queue:{fields['effective_priority']}:cap:{signature}",
            f"{prefix}worker_tasks:{owner}",
            f"{prefix}workers:{owner}",
        ),
        (
            record.task_id,
            packed(fields),
            signature,
            fields["required_capabilities"],
            fields["trace_id"],
            owner,
            fields.get("timeout_seconds", ""),
            fields["attempt"],
        ),
    )


def encode_worker(record: WorkerRecord, _variables: Mapping[str, Any]) -> dict[str, str] | None:
    """Encode the fields of a new worker; None if it has one that only the script `create` knows."""
    if record.reported_load is not None:
        return None
    fields = {
        "worker_id": record.worker_id,
        "capacity": str(record.capacity),
        "capabilities": listed(record.capabilities),
    }
    if record.version is not None:
        fields["version"] = record.version
    return fields


def worker_to_create_one(
    record: WorkerRecord, _owner: str, prefix: str, variables: Mapping[str, Any]
) -> Handed | None:
    """The keys and arguments of the script `create_one` for a worker; None if it does not do."""
    fields = encode_worker(record, variables)
    if fields is None:
        return None
    return (
        (f"{prefix}workers:{record.worker_id}",),
        (
            record.worker_id,
            packed([*chain(*fields.items())]),
        ),
    )


ENCODERS: Final = {
    "task": {
        "create_one": task_to_create_one,
        "create_for": task_to_create_for,
    },
    "worker": {
        "create_one": worker_to_create_one,
    },
}
"""By the name of the entity and of the script."""
