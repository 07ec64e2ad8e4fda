"""Typed clients of the services of priority, with the same protocols as handlers.

Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
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
from runtime.call import Answering, Call, Channel


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

    def submit_task(self, request: SubmitTaskRequest, call: Call) -> Answering[SubmitTaskResponse]:
        """Accepts a task, or finds the one that the key already has."""
        return self._submit_task(request, call)

    def submit_tasks(self, request: SubmitTasksRequest, call: Call) -> Answering[SubmitTasksResponse]:
        """Accepts many tasks at once, each by itself."""
        return self._submit_tasks(request, call)

    def get_task(self, request: GetTaskRequest, call: Call) -> Answering[Task]:
        """Shows one task, at once or when it has ended."""
        return self._get_task(request, call)

    def list_tasks(self, request: ListTasksRequest, call: Call) -> Answering[ListTasksResponse]:
        """Shows tasks, those that changed last first."""
        return self._list_tasks(request, call)

    def cancel_task(self, request: CancelTaskRequest, call: Call) -> Answering[TaskState]:
        """Cancels a task that has not ended."""
        return self._cancel_task(request, call)

    def get_queue_stats(self, request: GetQueueStatsRequest, call: Call) -> Answering[GetQueueStatsResponse]:
        """Shows what waits, who works and what was done."""
        return self._get_queue_stats(request, call)


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

    def register_worker(
        self, request: RegisterWorkerRequest, call: Call
    ) -> Answering[RegisterWorkerResponse]:
        """Introduces a worker. Each time it is a new one."""
        return self._register_worker(request, call)

    def poll_tasks(self, request: PollTasksRequest, call: Call) -> Answering[PollTasksResponse]:
        """Hands out tasks that the worker is able to run."""
        return self._poll_tasks(request, call)

    def report_result(self, request: ReportResultRequest, call: Call) -> Answering[TaskState]:
        """Ends a run. The same report once more has the same answer."""
        return self._report_result(request, call)

    def heartbeat(self, request: HeartbeatRequest, call: Call) -> Answering[HeartbeatResponse]:
        """Tells that a worker lives, what it runs and whether it wants more; it learns what it should
        stop, and what it does not know of is queued again."""
        return self._heartbeat(request, call)

    def extend_task(self, request: ExtendTaskRequest, call: Call) -> Answering[ExtendTaskResponse]:
        """Gives a run more time."""
        return self._extend_task(request, call)

    def report_progress(self, request: ReportProgressRequest, call: Call) -> Answering[TaskState]:
        """Keeps how far a run is for those who ask."""
        return self._report_progress(request, call)

    def exchange_tasks(self, request: ExchangeTasksRequest, call: Call) -> Answering[ExchangeTasksResponse]:
        """Ends many runs and hands out new tasks in one request."""
        return self._exchange_tasks(request, call)

    def deregister_worker(
        self, request: DeregisterWorkerRequest, call: Call
    ) -> Answering[DeregisterWorkerResponse]:
        """Lets a worker leave that holds no task."""
        return self._deregister_worker(request, call)


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

    def list_dead_letters(self, request: ListDeadLettersRequest, call: Call) -> Answering[ListTasksResponse]:
        """Shows dead letters, the latest first."""
        return self._list_dead_letters(request, call)

    def replay_dead_letter(self, request: ReplayDeadLetterRequest, call: Call) -> Answering[TaskState]:
        """Queues a dead letter again with all its tries."""
        return self._replay_dead_letter(request, call)

    def replay_dead_letters(
        self, request: ReplayDeadLettersRequest, call: Call
    ) -> Answering[ReplayDeadLettersResponse]:
        """Queues many dead letters again."""
        return self._replay_dead_letters(request, call)

    def purge_dead_letter(
        self, request: PurgeDeadLetterRequest, call: Call
    ) -> Answering[PurgeDeadLettersResponse]:
        """Deletes one dead letter."""
        return self._purge_dead_letter(request, call)

    def purge_dead_letters(
        self, request: PurgeDeadLettersRequest, call: Call
    ) -> Answering[PurgeDeadLettersResponse]:
        """Deletes dead letters that have been there for long."""
        return self._purge_dead_letters(request, call)

    def pause_queue(self, request: PauseQueueRequest, call: Call) -> Answering[QueueState]:
        """Stops handing out the tasks of a queue. They are still accepted."""
        return self._pause_queue(request, call)

    def resume_queue(self, request: ResumeQueueRequest, call: Call) -> Answering[QueueState]:
        """Hands them out again."""
        return self._resume_queue(request, call)

    def list_workers(self, request: ListWorkersRequest, call: Call) -> Answering[ListWorkersResponse]:
        """Shows the workers with what each holds."""
        return self._list_workers(request, call)

    def get_task_history(
        self, request: GetTaskHistoryRequest, call: Call
    ) -> Answering[GetTaskHistoryResponse]:
        """Shows every change of a task that has been written down."""
        return self._get_task_history(request, call)


CLIENTS: Final[Mapping[str, type[Any]]] = {
    "TasksService": TasksServiceClient,
    "WorkersService": WorkersServiceClient,
    "AdminService": AdminServiceClient,
}
