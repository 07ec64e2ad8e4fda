"""The queue: submits, shows, lists and moves tasks for `qo`. All state is in the bucket."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from generated.objectqueue import errors
from generated.objectqueue.lifecycle import TASK
from generated.objectqueue.messages import (
    ARCHIVED,
    COMPLETED,
    FAILED,
    PENDING,
    RUNNING,
    ArchiveTaskRequest,
    CancelTaskRequest,
    GetHistoryRequest,
    GetHistoryResponse,
    GetStatsRequest,
    GetStatsResponse,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    ListWorkersRequest,
    ListWorkersResponse,
    ReplayTaskRequest,
    SubmitTaskRequest,
    SubmitTaskResponse,
    Task,
    UnarchiveTaskRequest,
)
from generated.objectqueue.records import RetryPolicy, TaskRecord, WorkerRecord
from generated.objectqueue.settings import QueueSettings
from handlers.objectqueue.views import (
    SHARDS,
    format_state,
    to_shard_stats,
    to_shown_worker,
    to_task,
    to_task_version,
)
from runtime.call import Call
from runtime.stores.bucket_store import BucketPage, BucketStore, NotReadable, ShardSize, Sizes
from runtime.stores.contract import Cursor, EntityStore, RecordPage
from runtime.stores.semantics.rules import to_moment
from runtime.stores.store import GuardBreach
from runtime.world import World

_LISTED_STATES = (PENDING, RUNNING, COMPLETED, FAILED)
_SCHEMA_VERSION, _SHARD_DIGITS = 1, 1
_ENDED_STATES = (COMPLETED, FAILED)
_SCANNED_TASKS = 160
"""Number of the oldest waiting tasks that are scanned for types that no worker runs."""


class Queue:
    """The methods of QueueService. It is stateless: every response comes from the bucket."""

    def __init__(
        self,
        tasks: EntityStore[TaskRecord],
        workers: EntityStore[WorkerRecord],
        settings: QueueSettings,
        world: World,
    ) -> None:
        self._tasks = tasks
        self._bucket: BucketStore[TaskRecord] | None = tasks if isinstance(tasks, BucketStore) else None
        """The operations of a bucket store beyond the contract: versions, and indexes that lag behind."""
        self._workers = workers
        self._max_silence_s = settings.qo_monitor_worker_health_threshold
        self._world = world

    async def submit_task(self, request: SubmitTaskRequest, call: Call) -> SubmitTaskResponse:
        record = self._build_record(request)
        try:
            found, is_new, *_ = await self._tasks.create(record, call)
        except GuardBreach:
            await self._get_existing(record.id)
            raise errors.TaskExists(task_id=record.id) from None
        call.note(task_id=found.id)
        if not is_new and not _is_same_request(record, found):
            key = request.idempotency_key
            raise errors.KeyReused(entity=TASK.entity, field="idempotency_key", key=key)
        is_indexed = self._bucket is None or await self._bucket.wait_indexed(found.id)
        return SubmitTaskResponse(task=to_task(found), created=is_new, hinted=is_indexed)

    async def get_task(self, request: GetTaskRequest, _call: Call) -> Task:
        return to_task(await self._get_existing(request.task_id))

    async def get_history(self, request: GetHistoryRequest, _call: Call) -> GetHistoryResponse:
        if self._bucket is None or not await self._bucket.is_versioned():
            await self._get_existing(request.task_id)
            raise errors.HistoryUnavailable
        versions = await self._bucket.versions(request.task_id)
        if not versions:
            raise errors.TaskNotFound(task_id=request.task_id)
        return GetHistoryResponse(versions=[to_task_version(each) for each in versions])

    async def list_tasks(self, request: ListTasksRequest, _call: Call) -> ListTasksResponse:
        equal = {"task_type": request.task_type} if request.HasField("task_type") else {}
        shards: list[dict[str, object]] = [{"shard": each} for each in dict.fromkeys(request.shards)]
        states, after = list(request.status) or _LISTED_STATES, _parse_page_token(request.page_token)
        pages = [
            await self._tasks.find(
                states=states, equal={**equal, **shard}, after=after, size=request.page_size + 1
            )
            for shard in shards or [{}]
        ]
        found = [record for each in pages for record in each.records]
        found.sort(key=lambda each: each.id)
        found.sort(key=lambda each: each.updated_at, reverse=True)
        page = found[: request.page_size]
        has_more = len(found) > len(page)
        is_filtered = bool(request.status) or bool(equal)
        # Objects that were written before the last task of this page belong to a later page.
        unreadable = [
            key
            for each in pages
            for at, key in _list_unreadable(each)
            if not is_filtered and (not has_more or at >= page[-1].updated_at)
        ]
        return ListTasksResponse(
            tasks=map(to_task, page),
            next_page_token=_format_page_token(page[-1]) if has_more else "",
            unreadable_ids=sorted(unreadable),
        )

    async def replay_task(self, request: ReplayTaskRequest, call: Call) -> Task:
        record = await self._get_existing(request.task_id)
        if FAILED not in (record.status, record.archived_from):
            raise _build_not_allowed(record, "and only a failed task is replayed")
        return await self._move(record, PENDING, call)

    async def archive_task(self, request: ArchiveTaskRequest, call: Call) -> Task:
        record = await self._get_existing(request.task_id)
        if record.status not in _ENDED_STATES:
            raise _build_not_allowed(record, "and only what has ended is archived")
        return await self._move(record, ARCHIVED, call)

    async def unarchive_task(self, request: UnarchiveTaskRequest, call: Call) -> Task:
        record = await self._get_existing(request.task_id)
        if record.status != ARCHIVED:
            raise _build_not_allowed(record, "not archived")
        return await self._move(record, record.archived_from or FAILED, call)

    async def cancel_task(self, request: CancelTaskRequest, call: Call) -> Task:
        record = await self._get_existing(request.task_id)
        if record.status not in (PENDING, RUNNING):
            raise _build_not_allowed(record, "and what has ended is not cancelled")
        fields = {"error": request.reason} if request.reason else {}
        return await self._move(record, FAILED, call, **fields)

    async def list_workers(self, request: ListWorkersRequest, _call: Call) -> ListWorkersResponse:
        now = self._get_now()
        records = (await self._workers.find(size=10_000)).records
        workers = [to_shown_worker(each, now, self._max_silence_s) for each in records]
        covered = {shard for each in workers if each.live for shard in each.worker.shards}
        known = {kind for each in workers if each.live for kind in each.worker.task_types}
        waiting = await self._find_waiting() if request.with_waiting else ()
        return ListWorkersResponse(
            workers=sorted(workers, key=lambda each: each.worker.worker_id),
            uncovered_shards=[each for each in SHARDS if each not in covered],
            task_types=sorted(known),
            unserved_types=sorted({each.task_type for each in waiting} - known),
        )

    async def get_stats(self, request: GetStatsRequest, _call: Call) -> GetStatsResponse:
        return GetStatsResponse(shards=to_shard_stats(await self._count(), request.shards or SHARDS))

    def _build_record(self, request: SubmitTaskRequest) -> TaskRecord:
        policy = request.retry_policy
        available_at = datetime.min.replace(tzinfo=UTC)
        if request.HasField("available_at"):
            available_at = request.available_at.ToDatetime(UTC)
        elif request.HasField("delay_ms"):
            available_at = self._get_now() + timedelta(milliseconds=request.delay_ms)
        task_id = request.task_id if request.HasField("task_id") else self._world.new_id()
        return TaskRecord(
            id=task_id,
            schema_version=_SCHEMA_VERSION,
            shard=task_id[:_SHARD_DIGITS],
            task_type=request.task_type,
            input=request.input,
            timeout_seconds=request.timeout_seconds,
            max_retries=request.max_retries,
            retry_policy=RetryPolicy(
                initial_interval_ms=policy.initial_interval_ms,
                max_interval_ms=policy.max_interval_ms,
                multiplier=policy.multiplier,
                jitter_percent=policy.jitter_percent,
            ),
            idempotency_key=request.idempotency_key if request.HasField("idempotency_key") else None,
            available_at=available_at,
        )

    async def _find_waiting(self) -> Sequence[TaskRecord]:
        """Find some of the tasks that have waited longest."""
        if self._bucket is not None:
            return await self._bucket.oldest_waiting(_SCANNED_TASKS)
        return (await self._tasks.find(states=[PENDING], size=_SCANNED_TASKS, newest_first=False)).records

    async def _count(self) -> Sizes:
        """Count the tasks by shard and state."""
        if self._bucket is not None:
            return await self._bucket.sizes()
        sizes: dict[tuple[str, int], ShardSize] = {}
        page: RecordPage[TaskRecord] | None = None
        while page is None or page.next is not None:
            page = await self._tasks.find(after=page and page.next, size=1000)
            for each in page.records:
                count, oldest_s = sizes.get((each.shard, each.status), (0, 0.0))
                age_s = max(0.0, (self._get_now() - each.updated_at).total_seconds())
                sizes[each.shard, each.status] = ShardSize(count + 1, max(oldest_s, age_s))
        return Sizes(sizes, {})

    def _get_now(self) -> datetime:
        return datetime.fromtimestamp(self._world.now_ms() / 1000, UTC)

    async def _move(self, record: TaskRecord, target: int, call: Call, **fields: str) -> Task:
        """Move a task; TaskChanged where it was changed concurrently."""
        edge = self._tasks.edge_between(record.status, target, call)
        transition = await self._tasks.transition(record.id, edge.name, call, given=fields)
        if not transition.applied:
            raise errors.TaskChanged(task_id=record.id, status=format_state(transition.state))
        return to_task(await self._get_existing(record.id))

    async def _get_existing(self, task_id: str) -> TaskRecord:
        try:
            record = await self._tasks.get(task_id)
        except NotReadable as error:
            raise errors.TaskUnreadable(task_id=task_id, problem=error.problem) from None
        if record is None:
            raise errors.TaskNotFound(task_id=task_id)
        return record


def _build_not_allowed(record: TaskRecord, wanted: str) -> errors.NotAllowedNow:
    return errors.NotAllowedNow(task_id=record.id, status=format_state(record.status), wanted=wanted)


def _format_page_token(record: TaskRecord) -> str:
    return f"{record.updated_at.isoformat()}~{record.id}"


def _is_same_request(wanted: TaskRecord, found: TaskRecord) -> bool:
    """Whether two tasks of one idempotency key ask for the same, however their input is written."""
    names = ("task_type", "timeout_seconds", "max_retries", "retry_policy")
    is_same = all(getattr(wanted, name) == getattr(found, name) for name in names)
    return is_same and json.loads(wanted.input or "null") == json.loads(found.input or "null")


def _list_unreadable(page: RecordPage[TaskRecord]) -> Sequence[tuple[datetime, str]]:
    return page.unreadable if isinstance(page, BucketPage) else ()


def _parse_page_token(token: str) -> Cursor | None:
    """Parse the position where a page begins; InvalidRequest for any other text."""
    if not token:
        return None
    at, _, key = token.partition("~")
    try:
        moment = to_moment(datetime.fromisoformat(at))
    except (ValueError, TypeError, OverflowError):
        raise errors.InvalidRequest(field="page_token", problem="is not from a page before") from None
    return None if moment is None else Cursor(moment, key)
