"""The views of records: convert them to the messages of the API."""

from __future__ import annotations

from collections.abc import Sequence
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
from runtime.stores.contract import Cursor, HistoryEntry

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_task(record: TaskRecord) -> Task:
    """Convert a task record to its full view."""
    task = Task(
        task_id=record.task_id,
        status=_to_status(record.status),
        priority=_to_priority(record.priority),
        effective_priority=_to_priority(record.effective_priority),
        payload=TaskPayload(
            task_type=record.task_type,
            parameters=record.parameters,
            required_capabilities=record.required_capabilities,
        ),
        created_at=to_timestamp(record.created_at),
        queued_at=to_timestamp(record.queued_at),
        updated_at=to_timestamp(record.updated_at),
        run_at=_to_optional_timestamp(record.available_at),
        started_at=_to_optional_timestamp(record.started_at),
        deadline_at=_to_optional_timestamp(record.deadline_at),
        completed_at=_to_optional_timestamp(record.completed_at),
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


def to_assigned_task(record: TaskRecord) -> AssignedTask:
    """Convert a task record to the assignment that its worker gets."""
    return AssignedTask(
        task_id=record.task_id,
        task_type=record.task_type,
        parameters=record.parameters,
        timeout_seconds=record.timeout_seconds or 0,
        trace_id=record.trace_id,
        attempt=record.attempt,
        deadline_at=None if record.deadline_at is None else _to_shared_timestamp(record.deadline_at),
        priority=_to_priority(record.priority),
        retry_count=record.retry_count,
    )


def to_worker(record: WorkerRecord, leased: Sequence[TaskRecord]) -> Worker:
    """Convert a worker record to its full view, with the tasks leased to it."""
    return Worker(
        worker_id=record.worker_id,
        status=WorkerStatus.ValueType(record.status),
        current_tasks=sorted(each.task_id for each in leased),
        last_heartbeat=to_timestamp(record.last_heartbeat),
        capacity=record.capacity,
        current_load=len(leased),
        reported_load=record.reported_load,
        capabilities=record.capabilities,
        version=record.version,
        registered_at=to_timestamp(record.registered_at),
    )


def to_task_change(change: HistoryEntry) -> TaskChange:
    """Convert an entry of the history to a status change."""
    return TaskChange(
        from_status=None if change.source is None else _to_status(change.source),
        to_status=_to_status(change.target),
        actor=change.actor,
        attempt=change.fence,
        at=to_timestamp(change.at),
        sequence=change.sequence,
        worker_id=change.owner or None,
        reason=change.reason or None,
        trace_id=change.trace or None,
    )


def to_refusal(failure: Failure) -> Refusal:
    """Convert a failure to the refusal of one item of a batch."""
    code = failure.code if isinstance(failure, Condition) else failure.grpc
    return Refusal(code=code.upper(), message=failure.message)


def format_status(status: int) -> str:
    """Format a status as JSON has it."""
    return TaskStatus.Name(_to_status(status)).lower()


def to_timestamp(at: datetime) -> Timestamp:
    """Convert a time to a protobuf Timestamp."""
    seconds, rest = divmod((at - _EPOCH) // _MICROSECOND, 1_000_000)
    return Timestamp(seconds=seconds, nanos=rest * 1000)


def parse_timestamp(timestamp: Timestamp, field: str) -> datetime:
    """Parse a protobuf Timestamp; ValidationError where it is out of range."""
    try:
        return timestamp.ToDatetime(UTC)
    except (ValueError, OverflowError):
        problem = "must be a time from the year 1 to the year 9999"
        raise errors.ValidationError(field=field, problem=problem) from None


def format_page_token(position: Cursor | None) -> str:
    """Format the position where a page ended as a page token."""
    return "" if position is None else f"{position.at}~{position.key}"


def parse_page_token(token: str) -> Cursor | None:
    """Parse the position where the previous page ended; the spec lets no other tokens through."""
    if not token:
        return None
    at, _, key = token.partition("~")
    return Cursor(int(at), key)


@lru_cache(maxsize=64)
def _to_shared_timestamp(at: datetime) -> Timestamp:
    """Convert a time that many tasks share, cached; messages copy it."""
    return to_timestamp(at)


def _to_optional_timestamp(at: datetime | None) -> Timestamp | None:
    return None if at is None else to_timestamp(at)


def _to_status(status: int) -> TaskStatus.ValueType:
    return TaskStatus.ValueType(status)


def _to_priority(priority: int) -> Priority.ValueType:
    return Priority.ValueType(priority)
