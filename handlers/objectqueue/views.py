"""Tasks and workers as they are told, made from what the bucket has."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from msgspec import Struct

from generated.objectqueue.lifecycle import TASK
from generated.objectqueue.messages import PENDING, ShardStats, ShownWorker, Task, TaskVersion, Worker
from generated.objectqueue.records import TaskRecord, WorkerRecord
from runtime.stores.object_store import Sizes, VersionOf
from runtime.stores.s3.keys import Keys

assert TASK.in_s3 is not None
SHARDS = Keys(TASK, TASK.in_s3).shards


def shown(record: TaskRecord) -> Task:
    """A task as everybody sees it."""
    return Task(**_members(record))


def shown_version(version: VersionOf[TaskRecord]) -> TaskVersion:
    """A task as it once was; without it where it cannot be read."""
    found = TaskVersion(version=version.version, etag=version.etag)
    found.at.FromDatetime(version.at)
    if version.record is not None:
        found.task.CopyFrom(shown(version.record))
    return found


def shown_worker(record: WorkerRecord, now: datetime, silence_s: float) -> ShownWorker:
    """A worker, and whether it was heard of lately."""
    silent_s = max(0.0, (now - record.last_heartbeat).total_seconds())
    return ShownWorker(
        worker=Worker(**_members(record)), live=silent_s <= silence_s, silent_ms=int(silent_s * 1000)
    )


def stats_of(sizes: Sizes, shards: Iterable[str]) -> list[ShardStats]:
    """How many tasks there are in some shards, by state, and what cannot be read as one."""
    found = []
    for shard in shards:
        stats = ShardStats(shard=shard, unreadable=sizes.unreadable.get(shard, 0))
        for (part, state), size in sizes.by_state.items():
            if part == shard:
                setattr(stats, word(state).lower(), size.entities)
                if state == PENDING:
                    stats.oldest_pending_ms = int(size.oldest_s * 1000)
        found.append(stats)
    return found


def word(state: int) -> str:
    """What a state is called."""
    return TASK.states[state].capitalize()


def _members(record: Struct) -> dict[str, Any]:
    return {name: _member(getattr(record, name)) for name in record.__struct_fields__}


def _member(value: Any) -> Any:
    return _members(value) if isinstance(value, Struct) else value
