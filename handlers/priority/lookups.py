"""Lookups of tasks and workers, and the errors for those that do not exist."""

from __future__ import annotations

from collections.abc import Sequence

from generated.priority import errors
from generated.priority.messages import DEAD
from generated.priority.records import TaskRecord, WorkerRecord
from runtime.stores.store import IndexedStore
from runtime.world import World

_PAGE_SIZE = 500


class Lookups:
    """The lookups that all methods of the manager share."""

    _tasks: IndexedStore[TaskRecord]
    _workers: IndexedStore[WorkerRecord]
    _world: World

    async def _find_task(self, task_id: str) -> TaskRecord:
        """Find a task, also one that has left Redis and is only in the history."""
        record = await self._tasks.get(task_id) or await self._tasks.ended(task_id)
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
        found, after = await self._workers.find(states=states, size=_PAGE_SIZE)
        while after is not None:
            more, after = await self._workers.find(states=states, after=after, size=_PAGE_SIZE)
            found += more
        return found
