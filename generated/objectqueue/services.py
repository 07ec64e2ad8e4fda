"""Services of objectqueue as protocols: a handler implements one, a typed client has the same shape.

Generated from spec/objectqueue (sha256:bf30565a014f0db2). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from typing import Protocol

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
from runtime.call import Call


class QueueService(Protocol):
    """What can be done with the tasks of a queue."""

    async def submit_task(self, request: SubmitTaskRequest, call: Call) -> SubmitTaskResponse:
        """Wants something to be done. The answer has the task; a second request under one key finds that
        of the first.

        Conditions: task_exists.
        """
        ...

    async def get_task(self, request: GetTaskRequest, call: Call) -> Task:
        """Shows one task as it is now.

        Conditions: task_not_found, task_unreadable.
        """
        ...

    async def get_history(self, request: GetHistoryRequest, call: Call) -> GetHistoryResponse:
        """Shows every version of a task, oldest first.

        Conditions: task_not_found, history_unavailable.
        """
        ...

    async def list_tasks(self, request: ListTasksRequest, call: Call) -> ListTasksResponse:
        """Shows tasks, those that changed last first within a page."""
        ...

    async def replay_task(self, request: ReplayTaskRequest, call: Call) -> Task:
        """Has a failed task tried again, with all its retries.

        Conditions: task_not_found, task_unreadable, not_allowed_now, task_changed.
        """
        ...

    async def archive_task(self, request: ArchiveTaskRequest, call: Call) -> Task:
        """Puts a task that has ended out of sight.

        Conditions: task_not_found, task_unreadable, not_allowed_now, task_changed.
        """
        ...

    async def unarchive_task(self, request: UnarchiveTaskRequest, call: Call) -> Task:
        """Puts an archived task back to where it was.

        Conditions: task_not_found, task_unreadable, not_allowed_now, task_changed.
        """
        ...

    async def cancel_task(self, request: CancelTaskRequest, call: Call) -> Task:
        """Ends a task that nobody wants any more. It counts as failed.

        Conditions: task_not_found, task_unreadable, not_allowed_now, task_changed.
        """
        ...

    async def list_workers(self, request: ListWorkersRequest, call: Call) -> ListWorkersResponse:
        """Shows all workers, and the shards that none of those that live looks after."""
        ...

    async def get_stats(self, request: GetStatsRequest, call: Call) -> GetStatsResponse:
        """Counts tasks by shard and status."""
        ...
