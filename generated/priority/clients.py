"""Typed clients of the services of priority. A client and a handler have the same protocol.

Generated from spec/priority (sha256:b7ddec6b3ec845c4). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from generated.priority import methods
from generated.priority.messages import (
    CancelTaskRequest,
    DeregisterWorkerRequest,
    DeregisterWorkerResponse,
    ExchangeTasksRequest,
    ExchangeTasksResponse,
    ExtendTaskRequest,
    ExtendTaskResponse,
    GetQueueStatsRequest,
    GetQueueStatsResponse,
    GetTaskHistoryRequest,
    GetTaskHistoryResponse,
    GetTaskRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    ListDeadLettersRequest,
    ListTasksRequest,
    ListTasksResponse,
    ListWorkersRequest,
    ListWorkersResponse,
    PauseQueueRequest,
    PollTasksRequest,
    PollTasksResponse,
    PurgeDeadLetterRequest,
    PurgeDeadLettersRequest,
    PurgeDeadLettersResponse,
    QueueState,
    RegisterWorkerRequest,
    RegisterWorkerResponse,
    ReplayDeadLetterRequest,
    ReplayDeadLettersRequest,
    ReplayDeadLettersResponse,
    ReportProgressRequest,
    ReportResultRequest,
    ResumeQueueRequest,
    SubmitTaskRequest,
    SubmitTaskResponse,
    SubmitTasksRequest,
    SubmitTasksResponse,
    Task,
    TaskState,
)
from runtime.call import Call, Channel


class TasksServiceClient:
    """Accepts tasks and shows what became of them."""

    def __init__(self, channel: Channel) -> None:
        self._submit_task = channel.bind(
            methods.TASKS_SERVICE_SUBMIT_TASK, SubmitTaskRequest, SubmitTaskResponse
        )
        self._submit_tasks = channel.bind(
            methods.TASKS_SERVICE_SUBMIT_TASKS, SubmitTasksRequest, SubmitTasksResponse
        )
        self._get_task = channel.bind(methods.TASKS_SERVICE_GET_TASK, GetTaskRequest, Task)
        self._list_tasks = channel.bind(methods.TASKS_SERVICE_LIST_TASKS, ListTasksRequest, ListTasksResponse)
        self._cancel_task = channel.bind(methods.TASKS_SERVICE_CANCEL_TASK, CancelTaskRequest, TaskState)
        self._get_queue_stats = channel.bind(
            methods.TASKS_SERVICE_GET_QUEUE_STATS, GetQueueStatsRequest, GetQueueStatsResponse
        )

    async def submit_task(self, request: SubmitTaskRequest, call: Call) -> SubmitTaskResponse:
        """Accepts a task, or finds the one that the key already has."""
        return await self._submit_task(request, call)

    async def submit_tasks(self, request: SubmitTasksRequest, call: Call) -> SubmitTasksResponse:
        """Accepts many tasks at once, each by itself."""
        return await self._submit_tasks(request, call)

    async def get_task(self, request: GetTaskRequest, call: Call) -> Task:
        """Shows one task, at once or when it has ended."""
        return await self._get_task(request, call)

    async def list_tasks(self, request: ListTasksRequest, call: Call) -> ListTasksResponse:
        """Shows tasks, those that changed last first."""
        return await self._list_tasks(request, call)

    async def cancel_task(self, request: CancelTaskRequest, call: Call) -> TaskState:
        """Cancels a task that has not ended."""
        return await self._cancel_task(request, call)

    async def get_queue_stats(self, request: GetQueueStatsRequest, call: Call) -> GetQueueStatsResponse:
        """Shows what waits, who works and what was done."""
        return await self._get_queue_stats(request, call)


class WorkersServiceClient:
    """What workers say and ask. Nobody calls a worker."""

    def __init__(self, channel: Channel) -> None:
        self._register_worker = channel.bind(
            methods.WORKERS_SERVICE_REGISTER_WORKER, RegisterWorkerRequest, RegisterWorkerResponse
        )
        self._poll_tasks = channel.bind(
            methods.WORKERS_SERVICE_POLL_TASKS, PollTasksRequest, PollTasksResponse
        )
        self._report_result = channel.bind(
            methods.WORKERS_SERVICE_REPORT_RESULT, ReportResultRequest, TaskState
        )
        self._heartbeat = channel.bind(methods.WORKERS_SERVICE_HEARTBEAT, HeartbeatRequest, HeartbeatResponse)
        self._extend_task = channel.bind(
            methods.WORKERS_SERVICE_EXTEND_TASK, ExtendTaskRequest, ExtendTaskResponse
        )
        self._report_progress = channel.bind(
            methods.WORKERS_SERVICE_REPORT_PROGRESS, ReportProgressRequest, TaskState
        )
        self._exchange_tasks = channel.bind(
            methods.WORKERS_SERVICE_EXCHANGE_TASKS, ExchangeTasksRequest, ExchangeTasksResponse
        )
        self._deregister_worker = channel.bind(
            methods.WORKERS_SERVICE_DEREGISTER_WORKER, DeregisterWorkerRequest, DeregisterWorkerResponse
        )

    async def register_worker(self, request: RegisterWorkerRequest, call: Call) -> RegisterWorkerResponse:
        """Introduces a worker. Each time it is a new one."""
        return await self._register_worker(request, call)

    async def poll_tasks(self, request: PollTasksRequest, call: Call) -> PollTasksResponse:
        """Hands out tasks that the worker is able to run."""
        return await self._poll_tasks(request, call)

    async def report_result(self, request: ReportResultRequest, call: Call) -> TaskState:
        """Ends a run. The same report once more has the same answer."""
        return await self._report_result(request, call)

    async def heartbeat(self, request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
        """Tells that a worker lives and whether it wants more; it learns what it should stop."""
        return await self._heartbeat(request, call)

    async def extend_task(self, request: ExtendTaskRequest, call: Call) -> ExtendTaskResponse:
        """Gives a run more time."""
        return await self._extend_task(request, call)

    async def report_progress(self, request: ReportProgressRequest, call: Call) -> TaskState:
        """Keeps how far a run is for those who ask."""
        return await self._report_progress(request, call)

    async def exchange_tasks(self, request: ExchangeTasksRequest, call: Call) -> ExchangeTasksResponse:
        """Ends many runs and hands out new tasks in one request."""
        return await self._exchange_tasks(request, call)

    async def deregister_worker(
        self, request: DeregisterWorkerRequest, call: Call
    ) -> DeregisterWorkerResponse:
        """Lets a worker leave that holds no task."""
        return await self._deregister_worker(request, call)


class AdminServiceClient:
    """What administrators need beyond that."""

    def __init__(self, channel: Channel) -> None:
        self._list_dead_letters = channel.bind(
            methods.ADMIN_SERVICE_LIST_DEAD_LETTERS, ListDeadLettersRequest, ListTasksResponse
        )
        self._replay_dead_letter = channel.bind(
            methods.ADMIN_SERVICE_REPLAY_DEAD_LETTER, ReplayDeadLetterRequest, TaskState
        )
        self._replay_dead_letters = channel.bind(
            methods.ADMIN_SERVICE_REPLAY_DEAD_LETTERS, ReplayDeadLettersRequest, ReplayDeadLettersResponse
        )
        self._purge_dead_letter = channel.bind(
            methods.ADMIN_SERVICE_PURGE_DEAD_LETTER, PurgeDeadLetterRequest, PurgeDeadLettersResponse
        )
        self._purge_dead_letters = channel.bind(
            methods.ADMIN_SERVICE_PURGE_DEAD_LETTERS, PurgeDeadLettersRequest, PurgeDeadLettersResponse
        )
        self._pause_queue = channel.bind(methods.ADMIN_SERVICE_PAUSE_QUEUE, PauseQueueRequest, QueueState)
        self._resume_queue = channel.bind(methods.ADMIN_SERVICE_RESUME_QUEUE, ResumeQueueRequest, QueueState)
        self._list_workers = channel.bind(
            methods.ADMIN_SERVICE_LIST_WORKERS, ListWorkersRequest, ListWorkersResponse
        )
        self._get_task_history = channel.bind(
            methods.ADMIN_SERVICE_GET_TASK_HISTORY, GetTaskHistoryRequest, GetTaskHistoryResponse
        )

    async def list_dead_letters(self, request: ListDeadLettersRequest, call: Call) -> ListTasksResponse:
        """Shows dead letters, the latest first."""
        return await self._list_dead_letters(request, call)

    async def replay_dead_letter(self, request: ReplayDeadLetterRequest, call: Call) -> TaskState:
        """Queues a dead letter again with all its tries."""
        return await self._replay_dead_letter(request, call)

    async def replay_dead_letters(
        self, request: ReplayDeadLettersRequest, call: Call
    ) -> ReplayDeadLettersResponse:
        """Queues many dead letters again."""
        return await self._replay_dead_letters(request, call)

    async def purge_dead_letter(
        self, request: PurgeDeadLetterRequest, call: Call
    ) -> PurgeDeadLettersResponse:
        """Deletes one dead letter."""
        return await self._purge_dead_letter(request, call)

    async def purge_dead_letters(
        self, request: PurgeDeadLettersRequest, call: Call
    ) -> PurgeDeadLettersResponse:
        """Deletes dead letters that have been there for long."""
        return await self._purge_dead_letters(request, call)

    async def pause_queue(self, request: PauseQueueRequest, call: Call) -> QueueState:
        """Stops handing out the tasks of a queue. They are still accepted."""
        return await self._pause_queue(request, call)

    async def resume_queue(self, request: ResumeQueueRequest, call: Call) -> QueueState:
        """Hands them out again."""
        return await self._resume_queue(request, call)

    async def list_workers(self, request: ListWorkersRequest, call: Call) -> ListWorkersResponse:
        """Shows the workers with what each holds."""
        return await self._list_workers(request, call)

    async def get_task_history(self, request: GetTaskHistoryRequest, call: Call) -> GetTaskHistoryResponse:
        """Shows every change of a task that has been written down."""
        return await self._get_task_history(request, call)


CLIENTS: Final[Mapping[str, type[Any]]] = {
    "TasksService": TasksServiceClient,
    "WorkersService": WorkersServiceClient,
    "AdminService": AdminServiceClient,
}
