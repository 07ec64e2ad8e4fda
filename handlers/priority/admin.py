"""The administrator methods of the manager: dead letters, paused queues, workers and task histories."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

from generated.priority import errors
from generated.priority.lifecycle import TASK_REPLAY
from generated.priority.messages import (
    DEAD_LETTER,
    QUEUED,
    GetTaskHistoryRequest,
    GetTaskHistoryResponse,
    ListDeadLettersRequest,
    ListTasksResponse,
    ListWorkersRequest,
    ListWorkersResponse,
    PauseQueueRequest,
    PurgeDeadLetterRequest,
    PurgeDeadLettersRequest,
    PurgeDeadLettersResponse,
    QueueState,
    ReplayDeadLetterRequest,
    ReplayDeadLettersRequest,
    ReplayDeadLettersResponse,
    ResumeQueueRequest,
    TaskState,
)
from generated.priority.records import TaskRecord
from handlers.priority.tasks import TaskCalls
from handlers.priority.views import format_status, to_task_change, to_worker
from runtime.call import Call
from runtime.stores.contract import Transitioned
from runtime.stores.store import NoSuchEntity

_PAGE_SIZE = 200


class AdminCalls(TaskCalls):
    """The methods of AdminService."""

    async def list_dead_letters(self, request: ListDeadLettersRequest, _call: Call) -> ListTasksResponse:
        return await self._list_page(
            [DEAD_LETTER], request.task_type, 0, request.page_size, request.page_token
        )

    async def replay_dead_letter(self, request: ReplayDeadLetterRequest, call: Call) -> TaskState:
        try:
            transition = await self._tasks.transition(request.task_id, TASK_REPLAY.name, call)
        except NoSuchEntity:
            raise await self._explain_not_dead(request.task_id) from None
        _require_applied(transition, request.task_id)
        return TaskState(task_id=request.task_id, status=QUEUED)

    async def replay_dead_letters(
        self, request: ReplayDeadLettersRequest, call: Call
    ) -> ReplayDeadLettersResponse:
        replayed = 0
        async for each in self._iterate_dead_letters(request.task_type):
            if replayed == request.most:
                break
            try:
                replayed += (await self._tasks.transition(each.task_id, TASK_REPLAY.name, call)).applied
            except NoSuchEntity:
                continue  # It was purged concurrently.
        return ReplayDeadLettersResponse(replayed=replayed)

    async def purge_dead_letter(
        self, request: PurgeDeadLetterRequest, call: Call
    ) -> PurgeDeadLettersResponse:
        try:
            transition = await self._tasks.delete(request.task_id, DEAD_LETTER, call)
        except NoSuchEntity:
            raise await self._explain_not_dead(request.task_id) from None
        _require_applied(transition, request.task_id)
        return PurgeDeadLettersResponse(purged=1)

    async def purge_dead_letters(
        self, request: PurgeDeadLettersRequest, call: Call
    ) -> PurgeDeadLettersResponse:
        purged = 0
        now = datetime.fromtimestamp(self._world.now_ms() / 1000, UTC)
        newest = now - timedelta(seconds=request.older_than_seconds)
        async for each in self._iterate_dead_letters(""):
            if request.older_than_seconds and (each.completed_at or now) > newest:
                continue
            try:
                purged += (await self._tasks.delete(each.task_id, DEAD_LETTER, call)).applied
            except NoSuchEntity:
                continue  # It was purged or replayed concurrently.
        return PurgeDeadLettersResponse(purged=purged)

    async def pause_queue(self, request: PauseQueueRequest, _call: Call) -> QueueState:
        await self._tasks.pause(request.priority)
        return QueueState(priority=request.priority, paused=True)

    async def resume_queue(self, request: ResumeQueueRequest, _call: Call) -> QueueState:
        await self._tasks.resume(request.priority)
        return QueueState(priority=request.priority, paused=False)

    async def list_workers(self, request: ListWorkersRequest, _call: Call) -> ListWorkersResponse:
        workers = await self._list_all_workers(request.status)
        leased = await asyncio.gather(*(self._find_leased(each.worker_id) for each in workers))
        return ListWorkersResponse(workers=map(to_worker, workers, leased))

    async def get_task_history(self, request: GetTaskHistoryRequest, _call: Call) -> GetTaskHistoryResponse:
        changes = await self._tasks.history(request.task_id)
        if not changes:
            await self._find_task(request.task_id)
        return GetTaskHistoryResponse(task_id=request.task_id, changes=map(to_task_change, changes))

    async def _iterate_dead_letters(self, task_type: str) -> AsyncIterator[TaskRecord]:
        """Iterate over the dead letters page by page, the latest first."""
        equal = {"task_type": task_type} if task_type else {}
        page = await self._tasks.find(states=[DEAD_LETTER], equal=equal, size=_PAGE_SIZE)
        while True:
            for each in page.records:
                yield each
            if page.next is None:
                return
            page = await self._tasks.find(states=[DEAD_LETTER], equal=equal, after=page.next, size=_PAGE_SIZE)

    async def _explain_not_dead(self, task_id: str) -> errors.TaskNotDead:
        """Build the error for a task that is only in the archive."""
        record = await self._find_task(task_id)
        return errors.TaskNotDead(task_id=task_id, status=format_status(record.status))


def _require_applied(transition: Transitioned, task_id: str) -> None:
    if not transition.applied:
        raise errors.TaskNotDead(task_id=task_id, status=format_status(transition.state))
