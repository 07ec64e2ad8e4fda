"""Services of priority as protocols: a handler implements one, a typed client has the same shape.

Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from typing import Protocol

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
from runtime.call import Call


class TasksService(Protocol):
    """Accepts tasks and shows what became of them."""

    async def submit_task(self, request: SubmitTaskRequest, call: Call) -> SubmitTaskResponse:
        """Accepts a task, or finds the one that the key already has.

        Conditions: idempotency_mismatch, queue_full.
        """
        ...

    async def submit_tasks(self, request: SubmitTasksRequest, call: Call) -> SubmitTasksResponse:
        """Accepts many tasks at once, each by itself."""
        ...

    async def get_task(self, request: GetTaskRequest, call: Call) -> Task:
        """Shows one task, at once or when it has ended.

        Conditions: task_not_found.
        """
        ...

    async def list_tasks(self, request: ListTasksRequest, call: Call) -> ListTasksResponse:
        """Shows tasks, those that changed last first."""
        ...

    async def cancel_task(self, request: CancelTaskRequest, call: Call) -> TaskState:
        """Cancels a task that has not ended.

        Conditions: task_not_found, task_terminal.
        """
        ...

    async def get_queue_stats(self, request: GetQueueStatsRequest, call: Call) -> GetQueueStatsResponse:
        """Shows what waits, who works and what was done."""
        ...


class WorkersService(Protocol):
    """What workers say and ask. Nobody calls a worker."""

    async def register_worker(self, request: RegisterWorkerRequest, call: Call) -> RegisterWorkerResponse:
        """Introduces a worker. Each time it is a new one."""
        ...

    async def poll_tasks(self, request: PollTasksRequest, call: Call) -> PollTasksResponse:
        """Hands out tasks that the worker is able to run.

        Conditions: worker_not_found, worker_dead.
        """
        ...

    async def report_result(self, request: ReportResultRequest, call: Call) -> TaskState:
        """Ends a run. The same report once more has the same answer.

        Conditions: task_not_found, stale_attempt.
        """
        ...

    async def heartbeat(self, request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
        """Tells that a worker lives, what it runs and whether it wants more; it learns what it should
        stop, and what it does not know of is queued again.

        Conditions: worker_not_found, worker_dead.
        """
        ...

    async def extend_task(self, request: ExtendTaskRequest, call: Call) -> ExtendTaskResponse:
        """Gives a run more time.

        Conditions: task_not_found, stale_attempt.
        """
        ...

    async def report_progress(self, request: ReportProgressRequest, call: Call) -> TaskState:
        """Keeps how far a run is for those who ask.

        Conditions: task_not_found, stale_attempt.
        """
        ...

    async def exchange_tasks(self, request: ExchangeTasksRequest, call: Call) -> ExchangeTasksResponse:
        """Ends many runs and hands out new tasks in one request.

        Conditions: worker_not_found, worker_dead.
        """
        ...

    async def deregister_worker(
        self, request: DeregisterWorkerRequest, call: Call
    ) -> DeregisterWorkerResponse:
        """Lets a worker leave that holds no task.

        Conditions: worker_not_found, worker_dead, worker_busy.
        """
        ...


class AdminService(Protocol):
    """What administrators need beyond that."""

    async def list_dead_letters(self, request: ListDeadLettersRequest, call: Call) -> ListTasksResponse:
        """Shows dead letters, the latest first."""
        ...

    async def replay_dead_letter(self, request: ReplayDeadLetterRequest, call: Call) -> TaskState:
        """Queues a dead letter again with all its tries.

        Conditions: task_not_found, task_not_dead.
        """
        ...

    async def replay_dead_letters(
        self, request: ReplayDeadLettersRequest, call: Call
    ) -> ReplayDeadLettersResponse:
        """Queues many dead letters again."""
        ...

    async def purge_dead_letter(
        self, request: PurgeDeadLetterRequest, call: Call
    ) -> PurgeDeadLettersResponse:
        """Deletes one dead letter.

        Conditions: task_not_found, task_not_dead.
        """
        ...

    async def purge_dead_letters(
        self, request: PurgeDeadLettersRequest, call: Call
    ) -> PurgeDeadLettersResponse:
        """Deletes dead letters that have been there for long."""
        ...

    async def pause_queue(self, request: PauseQueueRequest, call: Call) -> QueueState:
        """Stops handing out the tasks of a queue. They are still accepted."""
        ...

    async def resume_queue(self, request: ResumeQueueRequest, call: Call) -> QueueState:
        """Hands them out again."""
        ...

    async def list_workers(self, request: ListWorkersRequest, call: Call) -> ListWorkersResponse:
        """Shows the workers with what each holds."""
        ...

    async def get_task_history(self, request: GetTaskHistoryRequest, call: Call) -> GetTaskHistoryResponse:
        """Shows every change of a task that has been written down.

        Conditions: task_not_found.
        """
        ...
