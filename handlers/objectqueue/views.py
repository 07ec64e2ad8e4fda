"""The views of tasks and workers: convert stored records to the messages of the API."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from msgspec import Struct

from generated.objectqueue.lifecycle import TASK
from generated.objectqueue.messages import PENDING, ShardStats, ShownWorker, Task, TaskVersion, Worker
from generated.objectqueue.records import TaskRecord, WorkerRecord
from runtime.stores.bucket_store import Sizes, VersionOf
from runtime.stores.layouts.s3 import KeptInS3
from runtime.stores.s3.keys import Keys

SHARDS = Keys(TASK, TASK.require_storage(KeptInS3)).shards


def to_task(record: TaskRecord) -> Task:
    """Convert a task record to its public view."""
    return Task(**_to_fields(record))


def to_task_version(version: VersionOf[TaskRecord]) -> TaskVersion:
    """Convert a stored version of a task; without the task where it cannot be read."""
    result = TaskVersion(version=version.version, etag=version.etag)
    result.at.FromDatetime(version.at)
    if version.record is not None:
        result.task.CopyFrom(to_task(version.record))
    return result


def to_shown_worker(record: WorkerRecord, now: datetime, silence_s: float) -> ShownWorker:
    """Convert a worker record to its view, with whether its last heartbeat is recent."""
    silent_s = max(0.0, (now - record.last_heartbeat).total_seconds())
    return ShownWorker(
        worker=Worker(**_to_fields(record)), live=silent_s <= silence_s, silent_ms=int(silent_s * 1000)
    )


def to_shard_stats(sizes: Sizes, shards: Iterable[str]) -> list[ShardStats]:
    """Convert sizes to statistics of some shards: tasks by state, and unreadable objects."""
    result = []
    for shard in shards:
        stats = ShardStats(shard=shard, unreadable=sizes.unreadable.get(shard, 0))
        for (size_shard, state), size in sizes.by_state.items():
            if size_shard == shard:
                setattr(stats, format_state(state).lower(), size.entities)
                if state == PENDING:
                    stats.oldest_pending_ms = int(size.oldest_s * 1000)
        result.append(stats)
    return result


def format_state(state: int) -> str:
    """Format a state as people see it."""
    return TASK.states[state].capitalize()


def _to_fields(record: Struct) -> dict[str, Any]:
    return {name: _to_field(getattr(record, name)) for name in record.__struct_fields__}


def _to_field(value: Any) -> Any:
    return _to_fields(value) if isinstance(value, Struct) else value
