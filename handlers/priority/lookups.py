"""How tasks and workers are looked up, and what is said of those that are not there."""

from __future__ import annotations

from collections.abc import Sequence

from generated.priority import errors
from generated.priority.messages import DEAD
from generated.priority.records import TaskRecord, WorkerRecord
from runtime.stores.store import IndexedStore
from runtime.world import World

_AT_ONCE = 500


class Reading:
    """What all calls look things up with."""

    _tasks: IndexedStore[TaskRecord]
    _workers: IndexedStore[WorkerRecord]
    _world: World

    async def _task(self, task_id: str) -> TaskRecord:
        """A task, be it one that is remembered by the history alone."""
        record = await self._tasks.get(task_id) or await self._tasks.ended(task_id)
        if record is None:
            raise errors.TaskNotFound(task_id=task_id)
        return record

    async def _living(self, worker_id: str) -> WorkerRecord:
        """A worker that has not been given up."""
        worker = await self._workers.get(worker_id)
        if worker is None:
            raise errors.WorkerNotFound(worker_id=worker_id)
        if worker.status == DEAD:
            raise errors.WorkerDead(worker_id=worker_id)
        return worker

    async def _all_workers(self, states: Sequence[int]) -> list[WorkerRecord]:
        found, after = await self._workers.find(states=states, size=_AT_ONCE)
        while after is not None:
            more, after = await self._workers.find(states=states, after=after, size=_AT_ONCE)
            found += more
        return found
