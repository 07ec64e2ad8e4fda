"""Typed clients of the services of objectqueue, with the same protocols as handlers.

Generated from spec/objectqueue (sha256:bf30565a014f0db2). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from generated.objectqueue import methods
from generated.objectqueue.messages import (
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
from runtime.call import Answering, Call, Channel


class QueueServiceClient:
    """What can be done with the tasks of a queue."""

    def __init__(self, channel: Channel) -> None:
        self._submit_task = channel.bind(
            methods.QUEUE_SERVICE_SUBMIT_TASK, SubmitTaskRequest, SubmitTaskResponse
        )
        self._get_task = channel.bind(methods.QUEUE_SERVICE_GET_TASK, GetTaskRequest, Task)
        self._get_history = channel.bind(
            methods.QUEUE_SERVICE_GET_HISTORY, GetHistoryRequest, GetHistoryResponse
        )
        self._list_tasks = channel.bind(methods.QUEUE_SERVICE_LIST_TASKS, ListTasksRequest, ListTasksResponse)
        self._replay_task = channel.bind(methods.QUEUE_SERVICE_REPLAY_TASK, ReplayTaskRequest, Task)
        self._archive_task = channel.bind(methods.QUEUE_SERVICE_ARCHIVE_TASK, ArchiveTaskRequest, Task)
        self._unarchive_task = channel.bind(methods.QUEUE_SERVICE_UNARCHIVE_TASK, UnarchiveTaskRequest, Task)
        self._cancel_task = channel.bind(methods.QUEUE_SERVICE_CANCEL_TASK, CancelTaskRequest, Task)
        self._list_workers = channel.bind(
            methods.QUEUE_SERVICE_LIST_WORKERS, ListWorkersRequest, ListWorkersResponse
        )
        self._get_stats = channel.bind(methods.QUEUE_SERVICE_GET_STATS, GetStatsRequest, GetStatsResponse)

    def submit_task(self, request: SubmitTaskRequest, call: Call) -> Answering[SubmitTaskResponse]:
        """Wants something to be done. The answer has the task; a second request under one key finds that
        of the first."""
        return self._submit_task(request, call)

    def get_task(self, request: GetTaskRequest, call: Call) -> Answering[Task]:
        """Shows one task as it is now."""
        return self._get_task(request, call)

    def get_history(self, request: GetHistoryRequest, call: Call) -> Answering[GetHistoryResponse]:
        """Shows every version of a task, oldest first."""
        return self._get_history(request, call)

    def list_tasks(self, request: ListTasksRequest, call: Call) -> Answering[ListTasksResponse]:
        """Shows tasks, those that changed last first within a page."""
        return self._list_tasks(request, call)

    def replay_task(self, request: ReplayTaskRequest, call: Call) -> Answering[Task]:
        """Has a failed task tried again, with all its retries."""
        return self._replay_task(request, call)

    def archive_task(self, request: ArchiveTaskRequest, call: Call) -> Answering[Task]:
        """Puts a task that has ended out of sight."""
        return self._archive_task(request, call)

    def unarchive_task(self, request: UnarchiveTaskRequest, call: Call) -> Answering[Task]:
        """Puts an archived task back to where it was."""
        return self._unarchive_task(request, call)

    def cancel_task(self, request: CancelTaskRequest, call: Call) -> Answering[Task]:
        """Ends a task that nobody wants any more. It counts as failed."""
        return self._cancel_task(request, call)

    def list_workers(self, request: ListWorkersRequest, call: Call) -> Answering[ListWorkersResponse]:
        """Shows all workers, and the shards that none of those that live looks after."""
        return self._list_workers(request, call)

    def get_stats(self, request: GetStatsRequest, call: Call) -> Answering[GetStatsResponse]:
        """Counts tasks by shard and status."""
        return self._get_stats(request, call)


CLIENTS: Final[Mapping[str, type[Any]]] = {
    "QueueService": QueueServiceClient,
}
