"""The manager: accepts tasks, assigns them to workers, and shows their outcomes. It never runs one."""

from __future__ import annotations

from generated.priority.records import TaskRecord, WorkerRecord
from generated.priority.settings import ManagerSettings
from handlers.priority.admin import AdminCalls
from handlers.priority.workers import WorkerCalls
from runtime.stores.contract import EntityStore
from runtime.world import World


class Manager(AdminCalls, WorkerCalls):
    """All methods of the manager. It is stateless: every response comes from the store."""

    def __init__(
        self,
        tasks: EntityStore[TaskRecord],
        workers: EntityStore[WorkerRecord],
        settings: ManagerSettings,
        world: World,
    ) -> None:
        self._tasks = tasks
        self._workers = workers
        self._settings = settings
        self._world = world
