"""The client methods of the manager: submit, show and cancel tasks, and measure the queues."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime

from generated.priority import errors
from generated.priority.lifecycle import TASK, TASK_ABORT, TASK_CANCEL
from generated.priority.messages import (
    ACTIVE,
    CANCELLED,
    COMPLETED,
    DEAD,
    DEAD_LETTER,
    DRAINING,
    EXECUTING,
    FAILED,
    CancelTaskRequest,
    GetQueueStatsRequest,
    GetQueueStatsResponse,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    Priority,
    Queue,
    Queues,
    SubmitTaskRequest,
    SubmitTaskResponse,
    SubmitTasksRequest,
    SubmitTasksResponse,
    SubmittedTask,
    Task,
    TaskState,
    TaskStatus,
    Throughput,
    WorkerStats,
)
from generated.priority.records import TaskRecord
from generated.priority.settings import ManagerSettings
from handlers.priority.lookups import Lookups
from handlers.priority.views import (
    format_page_token,
    format_status,
    parse_page_token,
    parse_timestamp,
    to_refusal,
    to_task,
)
from runtime.call import Call
from runtime.call.conditions import Condition
from runtime.stores.contract import CreateResult
from runtime.stores.store import NoSuchEntity

_RESTING_STATES = TASK.terminal | {DEAD_LETTER}
"""The states that a task leaves only by a request of an administrator, if at all."""
_CANCELLATIONS = {each.source: each.name for each in (TASK_CANCEL, TASK_ABORT)}
"""By status: the edge by which a task is cancelled."""
_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.25


class TaskCalls(Lookups):
    """The methods of TasksService."""

    _settings: ManagerSettings

    async def submit_task(self, request: SubmitTaskRequest, call: Call) -> SubmitTaskResponse:
        record = self._build_record(request, call)
        created = await self._tasks.create(record, call)
        if refusal := _find_refusal(record, created):
            raise refusal
        task = created.record
        call.note(task_id=task.task_id, trace_id=task.trace_id)
        return SubmitTaskResponse(
            task_id=task.task_id,
            status=TaskStatus.ValueType(task.status),
            queue_position=await self._find_position(created),
            repeated=not created.is_new,
            trace_id=task.trace_id,
        )

    async def submit_tasks(self, request: SubmitTasksRequest, call: Call) -> SubmitTasksResponse:
        records = [self._build_record(each, call) for each in request.tasks]
        created = await self._tasks.create_many(records, call)
        positions = [await self._find_position(each) for each in created]
        return SubmitTasksResponse(tasks=map(_to_submitted_task, records, created, positions))

    async def get_task(self, request: GetTaskRequest, _call: Call) -> Task:
        world, pause = self._world, _FIRST_PAUSE_S
        deadline = world.monotonic() + request.wait_ms / 1000
        record = await self._find_task(request.task_id)
        while record.status not in _RESTING_STATES and (left := deadline - world.monotonic()) > 0:
            await world.sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_PAUSE_S)
            record = await self._find_task(request.task_id)
        return to_task(record)

    async def list_tasks(self, request: ListTasksRequest, _call: Call) -> ListTasksResponse:
        return await self._list_page(
            request.status, request.task_type, request.priority, request.page_size, request.page_token
        )

    async def cancel_task(self, request: CancelTaskRequest, call: Call) -> TaskState:
        status = (await self._find_task(request.task_id)).status
        while (edge := _CANCELLATIONS.get(status)) is not None:
            try:
                transition = await self._tasks.transition(request.task_id, edge, call)
            except NoSuchEntity:  # It was forgotten concurrently.
                status = (await self._find_task(request.task_id)).status
                continue
            if transition.applied:
                return TaskState(task_id=request.task_id, status=CANCELLED)
            status = transition.state
        raise errors.TaskTerminal(task_id=request.task_id, status=format_status(status))

    async def get_queue_stats(self, _request: GetQueueStatsRequest, _call: Call) -> GetQueueStatsResponse:
        window_ms = 1000 * self._settings.stats_window_seconds
        since = datetime.fromtimestamp((self._world.now_ms() - window_ms) / 1000, UTC)
        waiting, paused, tasks, workers, living, ended = await asyncio.gather(
            self._tasks.backlog(),
            self._tasks.paused(),
            self._tasks.count([EXECUTING]),
            self._workers.count(),
            self._list_all_workers([ACTIVE, DRAINING]),
            self._tasks.count([COMPLETED, FAILED, DEAD_LETTER], since=since),
        )
        queues = {
            Priority.Name(Priority.ValueType(priority)).lower(): Queue(
                depth=size.entities, oldest_age_seconds=int(size.oldest_s), paused=priority in paused
            )
            for priority, size in waiting.items()
        }
        return GetQueueStatsResponse(
            queues=Queues(**queues),
            workers=WorkerStats(
                active=workers.get(ACTIVE, 0),
                draining=workers.get(DRAINING, 0),
                dead=workers.get(DEAD, 0),
                total_capacity=sum(each.capacity for each in living),
                used_capacity=tasks.get(EXECUTING, 0),
            ),
            throughput=Throughput(
                completed_last_minute=ended[COMPLETED],
                failed_last_minute=ended[FAILED] + ended[DEAD_LETTER],
            ),
        )

    async def _list_page(
        self, states: Sequence[int], task_type: str, priority: int, size: int, page_token: str
    ) -> ListTasksResponse:
        """List a page of the tasks in some states, of one type and priority unless those are empty."""
        equal = {"task_type": task_type, "priority": priority}
        page = await self._tasks.find(
            states=states,
            equal={name: value for name, value in equal.items() if value},
            after=parse_page_token(page_token),
            size=size,
        )
        token = format_page_token(page.next)
        return ListTasksResponse(tasks=map(to_task, page.records), next_page_token=token)

    async def _find_position(self, created: CreateResult[TaskRecord]) -> int | None:
        """Find the position of a new task in its queue; None for one that is held back, or not new."""
        if not created.is_new or created.record.available_at is not None:
            return None
        if created.position is not None:
            return created.position
        return (await self._tasks.backlog())[created.record.effective_priority].entities

    def _build_record(self, request: SubmitTaskRequest, call: Call) -> TaskRecord:
        has_key, capabilities = request.HasField("idempotency_key"), request.required_capabilities
        task_id = self._world.new_id()
        return TaskRecord(
            task_id=task_id,
            task_type=request.task_type,
            priority=request.priority,
            parameters=_get_parameters(request),
            required_capabilities=tuple(dict.fromkeys(capabilities)) if capabilities else (),
            max_retries=request.max_retries if request.HasField("max_retries") else None,
            timeout_seconds=request.timeout_seconds if request.HasField("timeout_seconds") else None,
            available_at=self._parse_run_at(request),
            idempotency_key=request.idempotency_key if has_key else None,
            digest=_compute_digest(request) if has_key else None,
            # A trace that begins with a task has the digits of its id.
            trace_id=call.trace_id or task_id.replace("-", ""),
        )

    def _parse_run_at(self, request: SubmitTaskRequest) -> datetime | None:
        if not request.HasField("run_at"):
            return None
        run_at = parse_timestamp(request.run_at, "run_at")
        return run_at if run_at.timestamp() * 1000 > self._world.now_ms() else None


def _to_submitted_task(
    record: TaskRecord, created: CreateResult[TaskRecord], position: int | None
) -> SubmittedTask:
    if refusal := _find_refusal(record, created):
        return SubmittedTask(refused=to_refusal(refusal))
    task = created.record
    return SubmittedTask(
        task_id=task.task_id,
        status=TaskStatus.ValueType(task.status),
        queue_position=position,
        repeated=not created.is_new,
        trace_id=task.trace_id,
    )


def _find_refusal(record: TaskRecord, created: CreateResult[TaskRecord]) -> Condition | None:
    """Find why a task was refused: the queue is full, or its idempotency key has another task."""
    if created.is_refused:
        return errors.QueueFull()
    if not created.is_new and created.record.digest != record.digest:
        return errors.IdempotencyMismatch()
    return None


def _get_parameters(request: SubmitTaskRequest) -> str:
    return request.parameters if request.HasField("parameters") else "{}"


def _compute_digest(request: SubmitTaskRequest) -> str:
    """Compute a digest that is equal for equivalent requests, whatever their JSON looks like."""
    fields = [
        request.task_type,
        request.priority,
        json.loads(_get_parameters(request)),
        sorted(set(request.required_capabilities)),
        request.timeout_seconds if request.HasField("timeout_seconds") else None,
        request.max_retries if request.HasField("max_retries") else None,
        [request.run_at.seconds, request.run_at.nanos] if request.HasField("run_at") else None,
    ]
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
