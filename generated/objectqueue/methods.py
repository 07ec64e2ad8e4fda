"""Method tables of objectqueue, which the engine serves and calls by.

Generated from spec/objectqueue (sha256:bf30565a014f0db2). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from generated.objectqueue import messages
from generated.objectqueue.policy import CALLS, MESSAGE_BYTES
from generated.objectqueue.requests import (
    check_archive_task_request,
    check_cancel_task_request,
    check_get_history_request,
    check_get_stats_request,
    check_get_task_request,
    check_list_tasks_request,
    check_replay_task_request,
    check_submit_task_request,
    check_unarchive_task_request,
    settle_cancel_task_request,
    settle_list_tasks_request,
    settle_submit_task_request,
)
from runtime.model.system import Method, Service

QUEUE_SERVICE_SUBMIT_TASK: Final = Method(
    service="objectqueue.v1.QueueService",
    name="SubmitTask",
    attribute="submit_task",
    request=messages.SubmitTaskRequest,
    response=messages.SubmitTaskResponse,
    policy=CALLS["QueueService.SubmitTask"],
    check=check_submit_task_request,
    settle=settle_submit_task_request,
    max_request_bytes=MESSAGE_BYTES,
    log_fields=("task_id",),
)
QUEUE_SERVICE_GET_TASK: Final = Method(
    service="objectqueue.v1.QueueService",
    name="GetTask",
    attribute="get_task",
    request=messages.GetTaskRequest,
    response=messages.Task,
    policy=CALLS["QueueService.GetTask"],
    check=check_get_task_request,
    max_request_bytes=MESSAGE_BYTES,
    log_fields=("task_id",),
)
QUEUE_SERVICE_GET_HISTORY: Final = Method(
    service="objectqueue.v1.QueueService",
    name="GetHistory",
    attribute="get_history",
    request=messages.GetHistoryRequest,
    response=messages.GetHistoryResponse,
    policy=CALLS["QueueService.GetHistory"],
    check=check_get_history_request,
    max_request_bytes=MESSAGE_BYTES,
    log_fields=("task_id",),
)
QUEUE_SERVICE_LIST_TASKS: Final = Method(
    service="objectqueue.v1.QueueService",
    name="ListTasks",
    attribute="list_tasks",
    request=messages.ListTasksRequest,
    response=messages.ListTasksResponse,
    policy=CALLS["QueueService.ListTasks"],
    check=check_list_tasks_request,
    settle=settle_list_tasks_request,
    max_request_bytes=MESSAGE_BYTES,
)
QUEUE_SERVICE_REPLAY_TASK: Final = Method(
    service="objectqueue.v1.QueueService",
    name="ReplayTask",
    attribute="replay_task",
    request=messages.ReplayTaskRequest,
    response=messages.Task,
    policy=CALLS["QueueService.ReplayTask"],
    check=check_replay_task_request,
    max_request_bytes=MESSAGE_BYTES,
    log_fields=("task_id",),
)
QUEUE_SERVICE_ARCHIVE_TASK: Final = Method(
    service="objectqueue.v1.QueueService",
    name="ArchiveTask",
    attribute="archive_task",
    request=messages.ArchiveTaskRequest,
    response=messages.Task,
    policy=CALLS["QueueService.ArchiveTask"],
    check=check_archive_task_request,
    max_request_bytes=MESSAGE_BYTES,
    log_fields=("task_id",),
)
QUEUE_SERVICE_UNARCHIVE_TASK: Final = Method(
    service="objectqueue.v1.QueueService",
    name="UnarchiveTask",
    attribute="unarchive_task",
    request=messages.UnarchiveTaskRequest,
    response=messages.Task,
    policy=CALLS["QueueService.UnarchiveTask"],
    check=check_unarchive_task_request,
    max_request_bytes=MESSAGE_BYTES,
    log_fields=("task_id",),
)
QUEUE_SERVICE_CANCEL_TASK: Final = Method(
    service="objectqueue.v1.QueueService",
    name="CancelTask",
    attribute="cancel_task",
    request=messages.CancelTaskRequest,
    response=messages.Task,
    policy=CALLS["QueueService.CancelTask"],
    check=check_cancel_task_request,
    settle=settle_cancel_task_request,
    max_request_bytes=MESSAGE_BYTES,
    log_fields=("task_id",),
)
QUEUE_SERVICE_LIST_WORKERS: Final = Method(
    service="objectqueue.v1.QueueService",
    name="ListWorkers",
    attribute="list_workers",
    request=messages.ListWorkersRequest,
    response=messages.ListWorkersResponse,
    policy=CALLS["QueueService.ListWorkers"],
    max_request_bytes=MESSAGE_BYTES,
)
QUEUE_SERVICE_GET_STATS: Final = Method(
    service="objectqueue.v1.QueueService",
    name="GetStats",
    attribute="get_stats",
    request=messages.GetStatsRequest,
    response=messages.GetStatsResponse,
    policy=CALLS["QueueService.GetStats"],
    check=check_get_stats_request,
    max_request_bytes=MESSAGE_BYTES,
)

SERVICES: Final[Mapping[str, Service]] = {
    "QueueService": Service(
        name="objectqueue.v1.QueueService",
        component="queue",
        methods=(
            QUEUE_SERVICE_SUBMIT_TASK,
            QUEUE_SERVICE_GET_TASK,
            QUEUE_SERVICE_GET_HISTORY,
            QUEUE_SERVICE_LIST_TASKS,
            QUEUE_SERVICE_REPLAY_TASK,
            QUEUE_SERVICE_ARCHIVE_TASK,
            QUEUE_SERVICE_UNARCHIVE_TASK,
            QUEUE_SERVICE_CANCEL_TASK,
            QUEUE_SERVICE_LIST_WORKERS,
            QUEUE_SERVICE_GET_STATS,
        ),
    ),
}
