"""The method tables of priority, from which the engine serves and calls.

Generated from spec/priority (sha256:461d063c7f6f0b75). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from generated.priority import messages
from generated.priority.policy import CALLS, MESSAGE_BYTES
from generated.priority.requests import (
    check_cancel_task_request,
    check_deregister_worker_request,
    check_exchange_tasks_request,
    check_extend_task_request,
    check_get_task_history_request,
    check_get_task_request,
    check_heartbeat_request,
    check_list_dead_letters_request,
    check_list_tasks_request,
    check_list_workers_request,
    check_pause_queue_request,
    check_poll_tasks_request,
    check_purge_dead_letter_request,
    check_register_worker_request,
    check_replay_dead_letter_request,
    check_replay_dead_letters_request,
    check_report_progress_request,
    check_report_result_request,
    check_resume_queue_request,
    check_submit_task_request,
    check_submit_tasks_request,
    settle_exchange_tasks_request,
    settle_heartbeat_request,
    settle_list_dead_letters_request,
    settle_list_tasks_request,
    settle_replay_dead_letters_request,
    settle_report_result_request,
    settle_submit_task_request,
    settle_submit_tasks_request,
)
from runtime.tables import Instead, Method, Route, Service

TASKS_SERVICE_SUBMIT_TASK: Final = Method(
    service="priority.v1.TasksService",
    name="SubmitTask",
    attribute="submit_task",
    request=messages.SubmitTaskRequest,
    response=messages.SubmitTaskResponse,
    policy=CALLS["TasksService.SubmitTask"],
    check=check_submit_task_request,
    settle=settle_submit_task_request,
    max_request_bytes=MESSAGE_BYTES,
    route=Route("POST", "/api/v1/tasks", 201, instead=(Instead(200, "repeated", is_set=True),)),
)
TASKS_SERVICE_SUBMIT_TASKS: Final = Method(
    service="priority.v1.TasksService",
    name="SubmitTasks",
    attribute="submit_tasks",
    request=messages.SubmitTasksRequest,
    response=messages.SubmitTasksResponse,
    policy=CALLS["TasksService.SubmitTasks"],
    check=check_submit_tasks_request,
    settle=settle_submit_tasks_request,
    max_request_bytes=MESSAGE_BYTES,
    route=Route("POST", "/api/v1/tasks/batch", 200),
)
TASKS_SERVICE_GET_TASK: Final = Method(
    service="priority.v1.TasksService",
    name="GetTask",
    attribute="get_task",
    request=messages.GetTaskRequest,
    response=messages.Task,
    policy=CALLS["TasksService.GetTask"],
    check=check_get_task_request,
    max_request_bytes=MESSAGE_BYTES,
    log_fields=("task_id",),
    route=Route("GET", "/api/v1/tasks/{task_id}", 200),
)
TASKS_SERVICE_LIST_TASKS: Final = Method(
    service="priority.v1.TasksService",
    name="ListTasks",
    attribute="list_tasks",
    request=messages.ListTasksRequest,
    response=messages.ListTasksResponse,
    policy=CALLS["TasksService.ListTasks"],
    check=check_list_tasks_request,
    settle=settle_list_tasks_request,
    max_request_bytes=MESSAGE_BYTES,
    route=Route("GET", "/api/v1/tasks", 200),
)
TASKS_SERVICE_CANCEL_TASK: Final = Method(
    service="priority.v1.TasksService",
    name="CancelTask",
    attribute="cancel_task",
    request=messages.CancelTaskRequest,
    response=messages.TaskState,
    policy=CALLS["TasksService.CancelTask"],
    check=check_cancel_task_request,
    max_request_bytes=MESSAGE_BYTES,
    log_fields=("task_id",),
    route=Route("DELETE", "/api/v1/tasks/{task_id}", 200),
)
TASKS_SERVICE_GET_QUEUE_STATS: Final = Method(
    service="priority.v1.TasksService",
    name="GetQueueStats",
    attribute="get_queue_stats",
    request=messages.GetQueueStatsRequest,
    response=messages.GetQueueStatsResponse,
    policy=CALLS["TasksService.GetQueueStats"],
    max_request_bytes=MESSAGE_BYTES,
    route=Route("GET", "/api/v1/queue/stats", 200),
)

WORKERS_SERVICE_REGISTER_WORKER: Final = Method(
    service="priority.v1.WorkersService",
    name="RegisterWorker",
    attribute="register_worker",
    request=messages.RegisterWorkerRequest,
    response=messages.RegisterWorkerResponse,
    policy=CALLS["WorkersService.RegisterWorker"],
    check=check_register_worker_request,
    max_request_bytes=MESSAGE_BYTES,
    route=Route("POST", "/internal/workers/register", 200),
)
WORKERS_SERVICE_POLL_TASKS: Final = Method(
    service="priority.v1.WorkersService",
    name="PollTasks",
    attribute="poll_tasks",
    request=messages.PollTasksRequest,
    response=messages.PollTasksResponse,
    policy=CALLS["WorkersService.PollTasks"],
    check=check_poll_tasks_request,
    max_request_bytes=MESSAGE_BYTES,
    log_fields=("worker_id",),
    route=Route("POST", "/internal/workers/{worker_id}/poll", 200),
)
WORKERS_SERVICE_REPORT_RESULT: Final = Method(
    service="priority.v1.WorkersService",
    name="ReportResult",
    attribute="report_result",
    request=messages.ReportResultRequest,
    response=messages.TaskState,
    policy=CALLS["WorkersService.ReportResult"],
    check=check_report_result_request,
    settle=settle_report_result_request,
    max_request_bytes=MESSAGE_BYTES,
    log_fields=("task_id", "worker_id"),
    route=Route("POST", "/internal/workers/{worker_id}/result", 200),
)
WORKERS_SERVICE_HEARTBEAT: Final = Method(
    service="priority.v1.WorkersService",
    name="Heartbeat",
    attribute="heartbeat",
    request=messages.HeartbeatRequest,
    response=messages.HeartbeatResponse,
    policy=CALLS["WorkersService.Heartbeat"],
    check=check_heartbeat_request,
    settle=settle_heartbeat_request,
    max_request_bytes=MESSAGE_BYTES,
    log_fields=("worker_id",),
    route=Route("POST", "/internal/workers/{worker_id}/heartbeat", 200),
)
WORKERS_SERVICE_EXTEND_TASK: Final = Method(
    service="priority.v1.WorkersService",
    name="ExtendTask",
    attribute="extend_task",
    request=messages.ExtendTaskRequest,
    response=messages.ExtendTaskResponse,
    policy=CALLS["WorkersService.ExtendTask"],
    check=check_extend_task_request,
    max_request_bytes=MESSAGE_BYTES,
    log_fields=("task_id", "worker_id"),
    route=Route("POST", "/internal/workers/{worker_id}/extend", 200),
)
WORKERS_SERVICE_REPORT_PROGRESS: Final = Method(
    service="priority.v1.WorkersService",
    name="ReportProgress",
    attribute="report_progress",
    request=messages.ReportProgressRequest,
    response=messages.TaskState,
    policy=CALLS["WorkersService.ReportProgress"],
    check=check_report_progress_request,
    max_request_bytes=MESSAGE_BYTES,
    log_fields=("task_id", "worker_id"),
    route=Route("POST", "/internal/workers/{worker_id}/progress", 200),
)
WORKERS_SERVICE_EXCHANGE_TASKS: Final = Method(
    service="priority.v1.WorkersService",
    name="ExchangeTasks",
    attribute="exchange_tasks",
    request=messages.ExchangeTasksRequest,
    response=messages.ExchangeTasksResponse,
    policy=CALLS["WorkersService.ExchangeTasks"],
    check=check_exchange_tasks_request,
    settle=settle_exchange_tasks_request,
    max_request_bytes=MESSAGE_BYTES,
    log_fields=("worker_id",),
    route=Route("POST", "/internal/workers/{worker_id}/exchange", 200),
)
WORKERS_SERVICE_DEREGISTER_WORKER: Final = Method(
    service="priority.v1.WorkersService",
    name="DeregisterWorker",
    attribute="deregister_worker",
    request=messages.DeregisterWorkerRequest,
    response=messages.DeregisterWorkerResponse,
    policy=CALLS["WorkersService.DeregisterWorker"],
    check=check_deregister_worker_request,
    max_request_bytes=MESSAGE_BYTES,
    log_fields=("worker_id",),
    route=Route("DELETE", "/internal/workers/{worker_id}", 200),
)

ADMIN_SERVICE_LIST_DEAD_LETTERS: Final = Method(
    service="priority.v1.AdminService",
    name="ListDeadLetters",
    attribute="list_dead_letters",
    request=messages.ListDeadLettersRequest,
    response=messages.ListTasksResponse,
    policy=CALLS["AdminService.ListDeadLetters"],
    check=check_list_dead_letters_request,
    settle=settle_list_dead_letters_request,
    max_request_bytes=MESSAGE_BYTES,
    route=Route("GET", "/api/v1/admin/dlq", 200),
)
ADMIN_SERVICE_REPLAY_DEAD_LETTER: Final = Method(
    service="priority.v1.AdminService",
    name="ReplayDeadLetter",
    attribute="replay_dead_letter",
    request=messages.ReplayDeadLetterRequest,
    response=messages.TaskState,
    policy=CALLS["AdminService.ReplayDeadLetter"],
    check=check_replay_dead_letter_request,
    max_request_bytes=MESSAGE_BYTES,
    log_fields=("task_id",),
    route=Route("POST", "/api/v1/admin/dlq/{task_id}/replay", 200),
)
ADMIN_SERVICE_REPLAY_DEAD_LETTERS: Final = Method(
    service="priority.v1.AdminService",
    name="ReplayDeadLetters",
    attribute="replay_dead_letters",
    request=messages.ReplayDeadLettersRequest,
    response=messages.ReplayDeadLettersResponse,
    policy=CALLS["AdminService.ReplayDeadLetters"],
    check=check_replay_dead_letters_request,
    settle=settle_replay_dead_letters_request,
    max_request_bytes=MESSAGE_BYTES,
    route=Route("POST", "/api/v1/admin/dlq/replay", 200),
)
ADMIN_SERVICE_PURGE_DEAD_LETTER: Final = Method(
    service="priority.v1.AdminService",
    name="PurgeDeadLetter",
    attribute="purge_dead_letter",
    request=messages.PurgeDeadLetterRequest,
    response=messages.PurgeDeadLettersResponse,
    policy=CALLS["AdminService.PurgeDeadLetter"],
    check=check_purge_dead_letter_request,
    max_request_bytes=MESSAGE_BYTES,
    log_fields=("task_id",),
    route=Route("DELETE", "/api/v1/admin/dlq/{task_id}", 200),
)
ADMIN_SERVICE_PURGE_DEAD_LETTERS: Final = Method(
    service="priority.v1.AdminService",
    name="PurgeDeadLetters",
    attribute="purge_dead_letters",
    request=messages.PurgeDeadLettersRequest,
    response=messages.PurgeDeadLettersResponse,
    policy=CALLS["AdminService.PurgeDeadLetters"],
    max_request_bytes=MESSAGE_BYTES,
    route=Route("POST", "/api/v1/admin/dlq/purge", 200),
)
ADMIN_SERVICE_PAUSE_QUEUE: Final = Method(
    service="priority.v1.AdminService",
    name="PauseQueue",
    attribute="pause_queue",
    request=messages.PauseQueueRequest,
    response=messages.QueueState,
    policy=CALLS["AdminService.PauseQueue"],
    check=check_pause_queue_request,
    max_request_bytes=MESSAGE_BYTES,
    route=Route("POST", "/api/v1/admin/queues/{priority}/pause", 200),
)
ADMIN_SERVICE_RESUME_QUEUE: Final = Method(
    service="priority.v1.AdminService",
    name="ResumeQueue",
    attribute="resume_queue",
    request=messages.ResumeQueueRequest,
    response=messages.QueueState,
    policy=CALLS["AdminService.ResumeQueue"],
    check=check_resume_queue_request,
    max_request_bytes=MESSAGE_BYTES,
    route=Route("POST", "/api/v1/admin/queues/{priority}/resume", 200),
)
ADMIN_SERVICE_LIST_WORKERS: Final = Method(
    service="priority.v1.AdminService",
    name="ListWorkers",
    attribute="list_workers",
    request=messages.ListWorkersRequest,
    response=messages.ListWorkersResponse,
    policy=CALLS["AdminService.ListWorkers"],
    check=check_list_workers_request,
    max_request_bytes=MESSAGE_BYTES,
    route=Route("GET", "/api/v1/admin/workers", 200),
)
ADMIN_SERVICE_GET_TASK_HISTORY: Final = Method(
    service="priority.v1.AdminService",
    name="GetTaskHistory",
    attribute="get_task_history",
    request=messages.GetTaskHistoryRequest,
    response=messages.GetTaskHistoryResponse,
    policy=CALLS["AdminService.GetTaskHistory"],
    check=check_get_task_history_request,
    max_request_bytes=MESSAGE_BYTES,
    log_fields=("task_id",),
    route=Route("GET", "/api/v1/admin/tasks/{task_id}/history", 200),
)

SERVICES: Final[Mapping[str, Service]] = {
    "TasksService": Service(
        name="priority.v1.TasksService",
        component="manager",
        methods=(
            TASKS_SERVICE_SUBMIT_TASK,
            TASKS_SERVICE_SUBMIT_TASKS,
            TASKS_SERVICE_GET_TASK,
            TASKS_SERVICE_LIST_TASKS,
            TASKS_SERVICE_CANCEL_TASK,
            TASKS_SERVICE_GET_QUEUE_STATS,
        ),
    ),
    "WorkersService": Service(
        name="priority.v1.WorkersService",
        component="manager",
        methods=(
            WORKERS_SERVICE_REGISTER_WORKER,
            WORKERS_SERVICE_POLL_TASKS,
            WORKERS_SERVICE_REPORT_RESULT,
            WORKERS_SERVICE_HEARTBEAT,
            WORKERS_SERVICE_EXTEND_TASK,
            WORKERS_SERVICE_REPORT_PROGRESS,
            WORKERS_SERVICE_EXCHANGE_TASKS,
            WORKERS_SERVICE_DEREGISTER_WORKER,
        ),
    ),
    "AdminService": Service(
        name="priority.v1.AdminService",
        component="manager",
        methods=(
            ADMIN_SERVICE_LIST_DEAD_LETTERS,
            ADMIN_SERVICE_REPLAY_DEAD_LETTER,
            ADMIN_SERVICE_REPLAY_DEAD_LETTERS,
            ADMIN_SERVICE_PURGE_DEAD_LETTER,
            ADMIN_SERVICE_PURGE_DEAD_LETTERS,
            ADMIN_SERVICE_PAUSE_QUEUE,
            ADMIN_SERVICE_RESUME_QUEUE,
            ADMIN_SERVICE_LIST_WORKERS,
            ADMIN_SERVICE_GET_TASK_HISTORY,
        ),
    ),
}
