"""Lookups of tasks and workers, and the errors for those that do not exist."""

from __future__ import annotations

from collections.abc import Sequence

from generated.priority import errors
from generated.priority.messages import DEAD, EXECUTING
from generated.priority.records import TaskRecord, WorkerRecord
from runtime.stores.contract import EntityStore
from runtime.world import World

_PAGE_SIZE = 500


class Lookups:
    """The lookups that all methods of the manager share."""

    _tasks: EntityStore[TaskRecord]
    _workers: EntityStore[WorkerRecord]
    _world: World

    async def _find_task(self, task_id: str) -> TaskRecord:
        """Find a task, also one that is only in the archive."""
        record = await self._tasks.get(task_id)
        if record is None:
            raise errors.TaskNotFound(task_id=task_id)
        return record

    async def _find_live_worker(self, worker_id: str) -> WorkerRecord:
        """Find a worker that is not DEAD."""
        worker = await self._workers.get(worker_id)
        if worker is None:
            raise errors.WorkerNotFound(worker_id=worker_id)
        if worker.status == DEAD:
            raise errors.WorkerDead(worker_id=worker_id)
        return worker

    async def _list_all_workers(self, states: Sequence[int]) -> list[WorkerRecord]:
        page = await self._workers.find(states=states, size=_PAGE_SIZE)
        found = [*page.records]
        while page.next is not None:
            page = await self._workers.find(states=states, after=page.next, size=_PAGE_SIZE)
            found += page.records
        return found

    async def _find_leased(self, worker_id: str) -> list[TaskRecord]:
        """Find the tasks that are leased to a worker."""
        page = await self._tasks.find(
            states=[EXECUTING], equal={"assigned_worker_id": worker_id}, size=_PAGE_SIZE
        )
        found = [*page.records]
        while page.next is not None:
            page = await self._tasks.find(
                states=[EXECUTING],
                equal={"assigned_worker_id": worker_id},
                after=page.next,
                size=_PAGE_SIZE,
            )
            found += page.records
        return found
