"""Typed clients of the services of taskqueue, with the same protocols as handlers.

Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from generated.taskqueue import methods
from generated.taskqueue.messages import (
    CancelJobRequest,
    CancelJobResponse,
    CreateJobRequest,
    CreateJobResponse,
    DeleteJobIfStatusRequest,
    DeleteJobIfStatusResponse,
    DequeueJobRequest,
    DequeueJobResponse,
    EnqueueJobRequest,
    EnqueueJobResponse,
    FetchWorkRequest,
    FetchWorkResponse,
    GetJobRecordRequest,
    GetJobRecordResponse,
    GetJobResultRequest,
    GetJobResultResponse,
    GetJobStatusRequest,
    GetJobStatusResponse,
    GetResultRequest,
    GetResultResponse,
    ListJobRecordsRequest,
    ListJobRecordsResponse,
    ListJobsRequest,
    ListJobsResponse,
    RemoveJobIfPresentRequest,
    RemoveJobIfPresentResponse,
    ReportWorkOutcomeRequest,
    ReportWorkOutcomeResponse,
    SetCancelRequestedRequest,
    SetCancelRequestedResponse,
    StoreResultRequest,
    StoreResultResponse,
    SubmitJobRequest,
    SubmitJobResponse,
    TransitionJobStatusRequest,
    TransitionJobStatusResponse,
    WorkerHeartbeatRequest,
    WorkerHeartbeatResponse,
)
from runtime.call import Answering, Call, Channel


class TaskQueuePublicServiceClient:
    """The whole public API."""

    def __init__(self, channel: Channel) -> None:
        self._submit_job = channel.bind(
            methods.TASK_QUEUE_PUBLIC_SERVICE_SUBMIT_JOB, SubmitJobRequest, SubmitJobResponse
        )
        self._get_job_status = channel.bind(
            methods.TASK_QUEUE_PUBLIC_SERVICE_GET_JOB_STATUS, GetJobStatusRequest, GetJobStatusResponse
        )
        self._get_job_result = channel.bind(
            methods.TASK_QUEUE_PUBLIC_SERVICE_GET_JOB_RESULT, GetJobResultRequest, GetJobResultResponse
        )
        self._cancel_job = channel.bind(
            methods.TASK_QUEUE_PUBLIC_SERVICE_CANCEL_JOB, CancelJobRequest, CancelJobResponse
        )
        self._list_jobs = channel.bind(
            methods.TASK_QUEUE_PUBLIC_SERVICE_LIST_JOBS, ListJobsRequest, ListJobsResponse
        )

    def submit_job(self, request: SubmitJobRequest, call: Call) -> Answering[SubmitJobResponse]:
        """Accepts a job."""
        return self._submit_job(request, call)

    def get_job_status(self, request: GetJobStatusRequest, call: Call) -> Answering[GetJobStatusResponse]:
        """Tells where a job is."""
        return self._get_job_status(request, call)

    def get_job_result(self, request: GetJobResultRequest, call: Call) -> Answering[GetJobResultResponse]:
        """Hands out the output of a terminal job."""
        return self._get_job_result(request, call)

    def cancel_job(self, request: CancelJobRequest, call: Call) -> Answering[CancelJobResponse]:
        """Cancels a waiting job; asks a running one to be canceled."""
        return self._cancel_job(request, call)

    def list_jobs(self, request: ListJobsRequest, call: Call) -> Answering[ListJobsResponse]:
        """Lists jobs by status and age."""
        return self._list_jobs(request, call)


class JobInternalServiceClient:
    """The records of all jobs. The only place where a status changes."""

    def __init__(self, channel: Channel) -> None:
        self._create_job = channel.bind(
            methods.JOB_INTERNAL_SERVICE_CREATE_JOB, CreateJobRequest, CreateJobResponse
        )
        self._delete_job_if_status = channel.bind(
            methods.JOB_INTERNAL_SERVICE_DELETE_JOB_IF_STATUS,
            DeleteJobIfStatusRequest,
            DeleteJobIfStatusResponse,
        )
        self._get_job_record = channel.bind(
            methods.JOB_INTERNAL_SERVICE_GET_JOB_RECORD, GetJobRecordRequest, GetJobRecordResponse
        )
        self._list_job_records = channel.bind(
            methods.JOB_INTERNAL_SERVICE_LIST_JOB_RECORDS, ListJobRecordsRequest, ListJobRecordsResponse
        )
        self._transition_job_status = channel.bind(
            methods.JOB_INTERNAL_SERVICE_TRANSITION_JOB_STATUS,
            TransitionJobStatusRequest,
            TransitionJobStatusResponse,
        )
        self._set_cancel_requested = channel.bind(
            methods.JOB_INTERNAL_SERVICE_SET_CANCEL_REQUESTED,
            SetCancelRequestedRequest,
            SetCancelRequestedResponse,
        )

    def create_job(self, request: CreateJobRequest, call: Call) -> Answering[CreateJobResponse]:
        """Makes a record in its initial state, or finds the one made under the same key."""
        return self._create_job(request, call)

    def delete_job_if_status(
        self, request: DeleteJobIfStatusRequest, call: Call
    ) -> Answering[DeleteJobIfStatusResponse]:
        """Takes a record back if it is still in the expected state."""
        return self._delete_job_if_status(request, call)

    def get_job_record(self, request: GetJobRecordRequest, call: Call) -> Answering[GetJobRecordResponse]:
        """Reads one record."""
        return self._get_job_record(request, call)

    def list_job_records(
        self, request: ListJobRecordsRequest, call: Call
    ) -> Answering[ListJobRecordsResponse]:
        """Reads one page of records."""
        return self._list_job_records(request, call)

    def transition_job_status(
        self, request: TransitionJobStatusRequest, call: Call
    ) -> Answering[TransitionJobStatusResponse]:
        """Moves a job if it is still in the expected state."""
        return self._transition_job_status(request, call)

    def set_cancel_requested(
        self, request: SetCancelRequestedRequest, call: Call
    ) -> Answering[SetCancelRequestedResponse]:
        """Raises the cancel flag of a job that is not terminal."""
        return self._set_cancel_requested(request, call)


class QueueInternalServiceClient:
    """Which jobs wait, first in, first out. Knows ids and nothing else of a job."""

    def __init__(self, channel: Channel) -> None:
        self._enqueue_job = channel.bind(
            methods.QUEUE_INTERNAL_SERVICE_ENQUEUE_JOB, EnqueueJobRequest, EnqueueJobResponse
        )
        self._dequeue_job = channel.bind(
            methods.QUEUE_INTERNAL_SERVICE_DEQUEUE_JOB, DequeueJobRequest, DequeueJobResponse
        )
        self._remove_job_if_present = channel.bind(
            methods.QUEUE_INTERNAL_SERVICE_REMOVE_JOB_IF_PRESENT,
            RemoveJobIfPresentRequest,
            RemoveJobIfPresentResponse,
        )

    def enqueue_job(self, request: EnqueueJobRequest, call: Call) -> Answering[EnqueueJobResponse]:
        """Puts a job at the tail unless it waits already."""
        return self._enqueue_job(request, call)

    def dequeue_job(self, request: DequeueJobRequest, call: Call) -> Answering[DequeueJobResponse]:
        """Takes the job at the head out for good."""
        return self._dequeue_job(request, call)

    def remove_job_if_present(
        self, request: RemoveJobIfPresentRequest, call: Call
    ) -> Answering[RemoveJobIfPresentResponse]:
        """Takes one job out wherever it stands."""
        return self._remove_job_if_present(request, call)


class CoordinatorInternalServiceClient:
    """Keeps track of workers and gives them work."""

    def __init__(self, channel: Channel) -> None:
        self._worker_heartbeat = channel.bind(
            methods.COORDINATOR_INTERNAL_SERVICE_WORKER_HEARTBEAT,
            WorkerHeartbeatRequest,
            WorkerHeartbeatResponse,
        )
        self._fetch_work = channel.bind(
            methods.COORDINATOR_INTERNAL_SERVICE_FETCH_WORK, FetchWorkRequest, FetchWorkResponse
        )
        self._report_work_outcome = channel.bind(
            methods.COORDINATOR_INTERNAL_SERVICE_REPORT_WORK_OUTCOME,
            ReportWorkOutcomeRequest,
            ReportWorkOutcomeResponse,
        )

    def worker_heartbeat(
        self, request: WorkerHeartbeatRequest, call: Call
    ) -> Answering[WorkerHeartbeatResponse]:
        """Tells that a worker is alive."""
        return self._worker_heartbeat(request, call)

    def fetch_work(self, request: FetchWorkRequest, call: Call) -> Answering[FetchWorkResponse]:
        """Assigns one job to a live worker."""
        return self._fetch_work(request, call)

    def report_work_outcome(
        self, request: ReportWorkOutcomeRequest, call: Call
    ) -> Answering[ReportWorkOutcomeResponse]:
        """Ends a job with what its worker found."""
        return self._report_work_outcome(request, call)


class ResultInternalServiceClient:
    """The envelopes of terminal jobs. Knows no other state of a job."""

    def __init__(self, channel: Channel) -> None:
        self._store_result = channel.bind(
            methods.RESULT_INTERNAL_SERVICE_STORE_RESULT, StoreResultRequest, StoreResultResponse
        )
        self._get_result = channel.bind(
            methods.RESULT_INTERNAL_SERVICE_GET_RESULT, GetResultRequest, GetResultResponse
        )

    def store_result(self, request: StoreResultRequest, call: Call) -> Answering[StoreResultResponse]:
        """Keeps the first envelope of a job."""
        return self._store_result(request, call)

    def get_result(self, request: GetResultRequest, call: Call) -> Answering[GetResultResponse]:
        """Reads one envelope."""
        return self._get_result(request, call)


CLIENTS: Final[Mapping[str, type[Any]]] = {
    "TaskQueuePublicService": TaskQueuePublicServiceClient,
    "JobInternalService": JobInternalServiceClient,
    "QueueInternalService": QueueInternalServiceClient,
    "CoordinatorInternalService": CoordinatorInternalServiceClient,
    "ResultInternalService": ResultInternalServiceClient,
}
