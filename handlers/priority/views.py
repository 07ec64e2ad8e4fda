"""Records as callers are shown them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from google.protobuf.timestamp_pb2 import Timestamp

from generated.priority import errors
from generated.priority.messages import (
    AssignedTask,
    Priority,
    Refusal,
    Task,
    TaskChange,
    TaskError,
    TaskPayload,
    TaskStatus,
    Worker,
    WorkerStatus,
)
from generated.priority.records import TaskRecord, WorkerRecord
from runtime.call.conditions import Condition, Failure
from runtime.stores.store import Change

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def shown(record: TaskRecord) -> Task:
    """All that there is to know of a task."""
    task = Task(
        task_id=record.task_id,
        status=_status(record.status),
        priority=_priority(record.priority),
        effective_priority=_priority(record.effective_priority),
        payload=TaskPayload(
            task_type=record.task_type,
            parameters=record.parameters,
            required_capabilities=record.required_capabilities,
        ),
        created_at=stamp(record.created_at),
        queued_at=stamp(record.queued_at),
        updated_at=stamp(record.updated_at),
        run_at=_stamp_if(record.available_at),
        started_at=_stamp_if(record.started_at),
        deadline_at=_stamp_if(record.deadline_at),
        completed_at=_stamp_if(record.completed_at),
        assigned_worker_id=record.assigned_worker_id,
        attempt=record.attempt,
        retry_count=record.retry_count,
        max_retries=record.max_retries or 0,
        timeout_seconds=record.timeout_seconds or 0,
        progress=record.progress,
        result=record.result,
        dead_reason=record.dead_reason,
        idempotency_key=record.idempotency_key,
        trace_id=record.trace_id,
    )
    if record.error is not None:
        task.error.CopyFrom(TaskError(message=record.error, retriable=record.retriable))
    return task


def assigned(record: TaskRecord) -> AssignedTask:
    """A task as its worker gets it."""
    return AssignedTask(
        task_id=record.task_id,
        task_type=record.task_type,
        parameters=record.parameters,
        timeout_seconds=record.timeout_seconds or 0,
        trace_id=record.trace_id,
        attempt=record.attempt,
        deadline_at=None if record.deadline_at is None else _same_stamp(record.deadline_at),
        priority=_priority(record.priority),
        retry_count=record.retry_count,
    )


def shown_worker(record: WorkerRecord, held: set[str]) -> Worker:
    """All that there is to know of a worker, and what is booked on it."""
    return Worker(
        worker_id=record.worker_id,
        status=WorkerStatus.ValueType(record.status),
        current_tasks=sorted(held),
        last_heartbeat=stamp(record.last_heartbeat),
        capacity=record.capacity,
        current_load=len(held),
        reported_load=record.reported_load,
        capabilities=record.capabilities,
        version=record.version,
        registered_at=stamp(record.registered_at),
    )


def shown_change(change: Change) -> TaskChange:
    """One change of a task's status."""
    return TaskChange(
        from_status=TaskStatus.Value(change.source.upper()) if change.source else None,
        to_status=TaskStatus.Value(change.target.upper()),
        actor=change.actor,
        attempt=change.fence,
        at=stamp(change.at),
        sequence=change.sequence,
        worker_id=change.owner or None,
        reason=change.reason or None,
        trace_id=change.trace or None,
    )


def refusal(failure: Failure) -> Refusal:
    """Why one part of a request was refused."""
    code = failure.code if isinstance(failure, Condition) else failure.grpc
    return Refusal(code=code.upper(), message=failure.message)


def status_word(status: int) -> str:
    """A status as JSON shows it."""
    return TaskStatus.Name(_status(status)).lower()


def stamp(at: datetime) -> Timestamp:
    """A time on the wire."""
    seconds, rest = divmod((at - _EPOCH) // _MICROSECOND, 1_000_000)
    return Timestamp(seconds=seconds, nanos=rest * 1000)


def moment(told: Timestamp, field: str) -> datetime:
    """A time from the wire."""
    try:
        return told.ToDatetime(UTC)
    except (ValueError, OverflowError):
        problem = "must be a time from the year 1 to the year 9999"
        raise errors.ValidationError(field=field, problem=problem) from None


def token(position: tuple[datetime, str] | None) -> str:
    """Where a page ended, as the next request says it."""
    return "" if position is None else f"{(position[0] - _EPOCH) // _MICROSECOND}~{position[1]}"


def position(token: str) -> tuple[datetime, str] | None:
    """Where the page before ended; the spec lets no other tokens through."""
    if not token:
        return None
    at, _, key = token.partition("~")
    return _EPOCH + timedelta(microseconds=int(at)), key


@lru_cache(maxsize=64)
def _same_stamp(at: datetime) -> Timestamp:
    """A time that many have, for messages to copy."""
    return stamp(at)


def _stamp_if(at: datetime | None) -> Timestamp | None:
    return None if at is None else stamp(at)


def _status(status: int) -> TaskStatus.ValueType:
    return TaskStatus.ValueType(status)


def _priority(priority: int) -> Priority.ValueType:
    return Priority.ValueType(priority)
