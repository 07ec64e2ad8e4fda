"""Method tables of taskqueue, which the engine serves and calls by.

Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from generated.taskqueue import messages
from generated.taskqueue.policy import CALLS, MESSAGE_BYTES, REQUEST_SIZE
from generated.taskqueue.requests import (
    check_cancel_job_request,
    check_create_job_request,
    check_delete_job_if_status_request,
    check_dequeue_job_request,
    check_enqueue_job_request,
    check_fetch_work_request,
    check_get_job_record_request,
    check_get_job_result_request,
    check_get_job_status_request,
    check_get_result_request,
    check_list_job_records_request,
    check_list_jobs_request,
    check_remove_job_if_present_request,
    check_report_work_outcome_request,
    check_set_cancel_requested_request,
    check_store_result_request,
    check_submit_job_request,
    check_transition_job_status_request,
    check_worker_heartbeat_request,
    settle_cancel_job_request,
    settle_list_job_records_request,
    settle_list_jobs_request,
    settle_report_work_outcome_request,
    settle_set_cancel_requested_request,
    settle_store_result_request,
    settle_transition_job_status_request,
)
from runtime.model.system import Drive, Method, Service

TASK_QUEUE_PUBLIC_SERVICE_SUBMIT_JOB: Final = Method(
    service="taskqueue.v1.TaskQueuePublicService",
    name="SubmitJob",
    attribute="submit_job",
    request=messages.SubmitJobRequest,
    response=messages.SubmitJobResponse,
    policy=CALLS["TaskQueuePublicService.SubmitJob"],
    check=check_submit_job_request,
    max_request_bytes=REQUEST_SIZE,
    detached=True,
)
TASK_QUEUE_PUBLIC_SERVICE_GET_JOB_STATUS: Final = Method(
    service="taskqueue.v1.TaskQueuePublicService",
    name="GetJobStatus",
    attribute="get_job_status",
    request=messages.GetJobStatusRequest,
    response=messages.GetJobStatusResponse,
    policy=CALLS["TaskQueuePublicService.GetJobStatus"],
    check=check_get_job_status_request,
    max_request_bytes=REQUEST_SIZE,
    detached=True,
    log_fields=("job_id",),
)
TASK_QUEUE_PUBLIC_SERVICE_GET_JOB_RESULT: Final = Method(
    service="taskqueue.v1.TaskQueuePublicService",
    name="GetJobResult",
    attribute="get_job_result",
    request=messages.GetJobResultRequest,
    response=messages.GetJobResultResponse,
    policy=CALLS["TaskQueuePublicService.GetJobResult"],
    check=check_get_job_result_request,
    max_request_bytes=REQUEST_SIZE,
    detached=True,
    log_fields=("job_id",),
)
TASK_QUEUE_PUBLIC_SERVICE_CANCEL_JOB: Final = Method(
    service="taskqueue.v1.TaskQueuePublicService",
    name="CancelJob",
    attribute="cancel_job",
    request=messages.CancelJobRequest,
    response=messages.CancelJobResponse,
    policy=CALLS["TaskQueuePublicService.CancelJob"],
    check=check_cancel_job_request,
    settle=settle_cancel_job_request,
    max_request_bytes=REQUEST_SIZE,
    detached=True,
    log_fields=("job_id",),
)
TASK_QUEUE_PUBLIC_SERVICE_LIST_JOBS: Final = Method(
    service="taskqueue.v1.TaskQueuePublicService",
    name="ListJobs",
    attribute="list_jobs",
    request=messages.ListJobsRequest,
    response=messages.ListJobsResponse,
    policy=CALLS["TaskQueuePublicService.ListJobs"],
    check=check_list_jobs_request,
    settle=settle_list_jobs_request,
    max_request_bytes=REQUEST_SIZE,
    detached=True,
)

JOB_INTERNAL_SERVICE_CREATE_JOB: Final = Method(
    service="taskqueue.internal.v1.JobInternalService",
    name="CreateJob",
    attribute="create_job",
    request=messages.CreateJobRequest,
    response=messages.CreateJobResponse,
    policy=CALLS["JobInternalService.CreateJob"],
    check=check_create_job_request,
    max_request_bytes=REQUEST_SIZE,
)
JOB_INTERNAL_SERVICE_DELETE_JOB_IF_STATUS: Final = Method(
    service="taskqueue.internal.v1.JobInternalService",
    name="DeleteJobIfStatus",
    attribute="delete_job_if_status",
    request=messages.DeleteJobIfStatusRequest,
    response=messages.DeleteJobIfStatusResponse,
    policy=CALLS["JobInternalService.DeleteJobIfStatus"],
    check=check_delete_job_if_status_request,
    max_request_bytes=REQUEST_SIZE,
    log_fields=("job_id",),
)
JOB_INTERNAL_SERVICE_GET_JOB_RECORD: Final = Method(
    service="taskqueue.internal.v1.JobInternalService",
    name="GetJobRecord",
    attribute="get_job_record",
    request=messages.GetJobRecordRequest,
    response=messages.GetJobRecordResponse,
    policy=CALLS["JobInternalService.GetJobRecord"],
    check=check_get_job_record_request,
    max_request_bytes=REQUEST_SIZE,
    log_fields=("job_id",),
)
JOB_INTERNAL_SERVICE_LIST_JOB_RECORDS: Final = Method(
    service="taskqueue.internal.v1.JobInternalService",
    name="ListJobRecords",
    attribute="list_job_records",
    request=messages.ListJobRecordsRequest,
    response=messages.ListJobRecordsResponse,
    policy=CALLS["JobInternalService.ListJobRecords"],
    check=check_list_job_records_request,
    settle=settle_list_job_records_request,
    max_request_bytes=REQUEST_SIZE,
)
JOB_INTERNAL_SERVICE_TRANSITION_JOB_STATUS: Final = Method(
    service="taskqueue.internal.v1.JobInternalService",
    name="TransitionJobStatus",
    attribute="transition_job_status",
    request=messages.TransitionJobStatusRequest,
    response=messages.TransitionJobStatusResponse,
    policy=CALLS["JobInternalService.TransitionJobStatus"],
    check=check_transition_job_status_request,
    settle=settle_transition_job_status_request,
    max_request_bytes=REQUEST_SIZE,
    drive=Drive("job", "expected_from_status", "to_status"),
    names_caller="actor",
    log_fields=("job_id",),
)
JOB_INTERNAL_SERVICE_SET_CANCEL_REQUESTED: Final = Method(
    service="taskqueue.internal.v1.JobInternalService",
    name="SetCancelRequested",
    attribute="set_cancel_requested",
    request=messages.SetCancelRequestedRequest,
    response=messages.SetCancelRequestedResponse,
    policy=CALLS["JobInternalService.SetCancelRequested"],
    check=check_set_cancel_requested_request,
    settle=settle_set_cancel_requested_request,
    max_request_bytes=REQUEST_SIZE,
    log_fields=("job_id",),
)

QUEUE_INTERNAL_SERVICE_ENQUEUE_JOB: Final = Method(
    service="taskqueue.internal.v1.QueueInternalService",
    name="EnqueueJob",
    attribute="enqueue_job",
    request=messages.EnqueueJobRequest,
    response=messages.EnqueueJobResponse,
    policy=CALLS["QueueInternalService.EnqueueJob"],
    check=check_enqueue_job_request,
    max_request_bytes=REQUEST_SIZE,
    log_fields=("job_id",),
)
QUEUE_INTERNAL_SERVICE_DEQUEUE_JOB: Final = Method(
    service="taskqueue.internal.v1.QueueInternalService",
    name="DequeueJob",
    attribute="dequeue_job",
    request=messages.DequeueJobRequest,
    response=messages.DequeueJobResponse,
    policy=CALLS["QueueInternalService.DequeueJob"],
    check=check_dequeue_job_request,
    max_request_bytes=REQUEST_SIZE,
    log_fields=("worker_id",),
)
QUEUE_INTERNAL_SERVICE_REMOVE_JOB_IF_PRESENT: Final = Method(
    service="taskqueue.internal.v1.QueueInternalService",
    name="RemoveJobIfPresent",
    attribute="remove_job_if_present",
    request=messages.RemoveJobIfPresentRequest,
    response=messages.RemoveJobIfPresentResponse,
    policy=CALLS["QueueInternalService.RemoveJobIfPresent"],
    check=check_remove_job_if_present_request,
    max_request_bytes=REQUEST_SIZE,
    log_fields=("job_id",),
)

COORDINATOR_INTERNAL_SERVICE_WORKER_HEARTBEAT: Final = Method(
    service="taskqueue.internal.v1.CoordinatorInternalService",
    name="WorkerHeartbeat",
    attribute="worker_heartbeat",
    request=messages.WorkerHeartbeatRequest,
    response=messages.WorkerHeartbeatResponse,
    policy=CALLS["CoordinatorInternalService.WorkerHeartbeat"],
    check=check_worker_heartbeat_request,
    max_request_bytes=REQUEST_SIZE,
    log_fields=("worker_id",),
)
COORDINATOR_INTERNAL_SERVICE_FETCH_WORK: Final = Method(
    service="taskqueue.internal.v1.CoordinatorInternalService",
    name="FetchWork",
    attribute="fetch_work",
    request=messages.FetchWorkRequest,
    response=messages.FetchWorkResponse,
    policy=CALLS["CoordinatorInternalService.FetchWork"],
    check=check_fetch_work_request,
    max_request_bytes=REQUEST_SIZE,
    detached=True,
    log_fields=("worker_id",),
)
COORDINATOR_INTERNAL_SERVICE_REPORT_WORK_OUTCOME: Final = Method(
    service="taskqueue.internal.v1.CoordinatorInternalService",
    name="ReportWorkOutcome",
    attribute="report_work_outcome",
    request=messages.ReportWorkOutcomeRequest,
    response=messages.ReportWorkOutcomeResponse,
    policy=CALLS["CoordinatorInternalService.ReportWorkOutcome"],
    check=check_report_work_outcome_request,
    settle=settle_report_work_outcome_request,
    max_request_bytes=MESSAGE_BYTES,
    detached=True,
    log_fields=("job_id", "worker_id"),
)

RESULT_INTERNAL_SERVICE_STORE_RESULT: Final = Method(
    service="taskqueue.internal.v1.ResultInternalService",
    name="StoreResult",
    attribute="store_result",
    request=messages.StoreResultRequest,
    response=messages.StoreResultResponse,
    policy=CALLS["ResultInternalService.StoreResult"],
    check=check_store_result_request,
    settle=settle_store_result_request,
    max_request_bytes=MESSAGE_BYTES,
    log_fields=("job_id",),
)
RESULT_INTERNAL_SERVICE_GET_RESULT: Final = Method(
    service="taskqueue.internal.v1.ResultInternalService",
    name="GetResult",
    attribute="get_result",
    request=messages.GetResultRequest,
    response=messages.GetResultResponse,
    policy=CALLS["ResultInternalService.GetResult"],
    check=check_get_result_request,
    max_request_bytes=REQUEST_SIZE,
    log_fields=("job_id",),
)

SERVICES: Final[Mapping[str, Service]] = {
    "TaskQueuePublicService": Service(
        name="taskqueue.v1.TaskQueuePublicService",
        component="gateway",
        methods=(
            TASK_QUEUE_PUBLIC_SERVICE_SUBMIT_JOB,
            TASK_QUEUE_PUBLIC_SERVICE_GET_JOB_STATUS,
            TASK_QUEUE_PUBLIC_SERVICE_GET_JOB_RESULT,
            TASK_QUEUE_PUBLIC_SERVICE_CANCEL_JOB,
            TASK_QUEUE_PUBLIC_SERVICE_LIST_JOBS,
        ),
    ),
    "JobInternalService": Service(
        name="taskqueue.internal.v1.JobInternalService",
        component="job",
        methods=(
            JOB_INTERNAL_SERVICE_CREATE_JOB,
            JOB_INTERNAL_SERVICE_DELETE_JOB_IF_STATUS,
            JOB_INTERNAL_SERVICE_GET_JOB_RECORD,
            JOB_INTERNAL_SERVICE_LIST_JOB_RECORDS,
            JOB_INTERNAL_SERVICE_TRANSITION_JOB_STATUS,
            JOB_INTERNAL_SERVICE_SET_CANCEL_REQUESTED,
        ),
    ),
    "QueueInternalService": Service(
        name="taskqueue.internal.v1.QueueInternalService",
        component="queue",
        methods=(
            QUEUE_INTERNAL_SERVICE_ENQUEUE_JOB,
            QUEUE_INTERNAL_SERVICE_DEQUEUE_JOB,
            QUEUE_INTERNAL_SERVICE_REMOVE_JOB_IF_PRESENT,
        ),
    ),
    "CoordinatorInternalService": Service(
        name="taskqueue.internal.v1.CoordinatorInternalService",
        component="coordinator",
        methods=(
            COORDINATOR_INTERNAL_SERVICE_WORKER_HEARTBEAT,
            COORDINATOR_INTERNAL_SERVICE_FETCH_WORK,
            COORDINATOR_INTERNAL_SERVICE_REPORT_WORK_OUTCOME,
        ),
    ),
    "ResultInternalService": Service(
        name="taskqueue.internal.v1.ResultInternalService",
        component="result",
        methods=(
            RESULT_INTERNAL_SERVICE_STORE_RESULT,
            RESULT_INTERNAL_SERVICE_GET_RESULT,
        ),
    ),
}
