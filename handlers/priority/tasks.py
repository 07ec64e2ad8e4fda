"""What clients ask for: tasks are accepted, shown and cancelled, and the queues are measured."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from datetime import datetime

from generated.priority import errors
from generated.priority.lifecycle import TASK
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
from handlers.priority.lookups import Reading
from handlers.priority.views import moment, position, refusal, shown, status_word, token
from runtime.call import Call
from runtime.call.conditions import Condition
from runtime.stores.store import Created, NoSuchEntity

_RESTING = TASK.terminal | {DEAD_LETTER}
"""Where a task stays unless somebody does something about it."""
_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.25


class TaskCalls(Reading):
    """The methods of TasksService."""

    async def submit_task(self, request: SubmitTaskRequest, call: Call) -> SubmitTaskResponse:
        wanted = self._wanted(request, call)
        (made,) = await self._tasks.create_or_find_all([wanted], call)
        if refused := _refused(wanted, made):
            raise refused
        task = wanted if made.is_new else made.record
        call.note(task_id=task.task_id, trace_id=task.trace_id)
        return SubmitTaskResponse(
            task_id=task.task_id,
            status=TaskStatus.ValueType(made.state),
            queue_position=made.position,
            repeated=not made.is_new,
            trace_id=task.trace_id,
        )

    async def submit_tasks(self, request: SubmitTasksRequest, call: Call) -> SubmitTasksResponse:
        wanted = [self._wanted(each, call) for each in request.tasks]
        made = await self._tasks.create_or_find_all(wanted, call)
        return SubmitTasksResponse(tasks=map(_submitted, wanted, made))

    async def get_task(self, request: GetTaskRequest, _call: Call) -> Task:
        world, pause = self._world, _FIRST_PAUSE_S
        until = world.monotonic() + request.wait_ms / 1000
        record = await self._task(request.task_id)
        while record.status not in _RESTING and (left := until - world.monotonic()) > 0:
            await world.sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_PAUSE_S)
            record = await self._task(request.task_id)
        return shown(record)

    async def list_tasks(self, request: ListTasksRequest, _call: Call) -> ListTasksResponse:
        return await self._page(
            request.status, request.task_type, request.priority, request.page_size, request.page_token
        )

    async def cancel_task(self, request: CancelTaskRequest, call: Call) -> TaskState:
        try:
            moved = await self._tasks.move_to(request.task_id, CANCELLED, call)
            status = moved.state
        except NoSuchEntity:
            moved, status = None, (await self._task(request.task_id)).status
        if moved is None or not moved.applied:
            raise errors.TaskTerminal(task_id=request.task_id, status=status_word(status))
        return TaskState(task_id=request.task_id, status=CANCELLED)

    async def get_queue_stats(self, _request: GetQueueStatsRequest, _call: Call) -> GetQueueStatsResponse:
        waiting, paused, (tasks, _), (workers, living), ended = await asyncio.gather(
            self._tasks.sizes("waiting"),
            self._tasks.paused(),
            self._tasks.census(),
            self._workers.census([ACTIVE, DRAINING]),
            self._tasks.recent("tasks_ended_recently"),
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
                completed_last_minute=_ended(ended, COMPLETED),
                failed_last_minute=_ended(ended, FAILED, DEAD_LETTER),
            ),
        )

    async def _page(
        self, states: Sequence[int], task_type: str, priority: int, size: int, page_token: str
    ) -> ListTasksResponse:
        """Tasks of some states, of one type and priority unless those are empty."""
        equal = {"task_type": task_type, "priority": priority}
        found, after = await self._tasks.find(
            states=states,
            equal={name: value for name, value in equal.items() if value},
            after=position(page_token),
            size=size,
        )
        return ListTasksResponse(tasks=map(shown, found), next_page_token=token(after))

    def _wanted(self, request: SubmitTaskRequest, call: Call) -> TaskRecord:
        keyed, needs = request.HasField("idempotency_key"), request.required_capabilities
        task_id = self._world.new_id()
        return TaskRecord(
            task_id=task_id,
            task_type=request.task_type,
            priority=request.priority,
            parameters=_parameters(request),
            required_capabilities=tuple(dict.fromkeys(needs)) if needs else (),
            max_retries=request.max_retries if request.HasField("max_retries") else None,
            timeout_seconds=request.timeout_seconds if request.HasField("timeout_seconds") else None,
            available_at=self._held_back_until(request),
            idempotency_key=request.idempotency_key if keyed else None,
            digest=_digest(request) if keyed else None,
            # A trace that begins with a task is known by its digits.
            trace_id=call.trace_id or task_id.replace("-", ""),
        )

    def _held_back_until(self, request: SubmitTaskRequest) -> datetime | None:
        if not request.HasField("run_at"):
            return None
        found = moment(request.run_at, "run_at")
        return found if found.timestamp() * 1000 > self._world.now_ms() else None


def _submitted(wanted: TaskRecord, made: Created[TaskRecord]) -> SubmittedTask:
    if refused := _refused(wanted, made):
        return SubmittedTask(refused=refusal(refused))
    task = wanted if made.is_new else made.record
    return SubmittedTask(
        task_id=task.task_id,
        status=TaskStatus.ValueType(made.state),
        queue_position=made.position,
        repeated=not made.is_new,
        trace_id=task.trace_id,
    )


def _refused(wanted: TaskRecord, made: Created[TaskRecord]) -> Condition | None:
    """Why a task was not accepted: there is no room, or its key has another one."""
    if made.full:
        return errors.QueueFull()
    if not made.is_new and made.record.digest != wanted.digest:
        return errors.IdempotencyMismatch()
    return None


def _parameters(request: SubmitTaskRequest) -> str:
    return request.parameters if request.HasField("parameters") else "{}"


def _digest(request: SubmitTaskRequest) -> str:
    """The same for requests that ask for the same, however they are written."""
    said = [
        request.task_type,
        request.priority,
        json.loads(_parameters(request)),
        sorted(set(request.required_capabilities)),
        request.timeout_seconds if request.HasField("timeout_seconds") else None,
        request.max_retries if request.HasField("max_retries") else None,
        [request.run_at.seconds, request.run_at.nanos] if request.HasField("run_at") else None,
    ]
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _ended(counts: dict[tuple[str, ...], int], *states: int) -> int:
    return sum(counts.get((status_word(state),), 0) for state in states)
