"""Services of taskqueue as protocols: a handler implements one, a typed client has the same shape.

Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from typing import Protocol

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
from runtime.call import Call


class TaskQueuePublicService(Protocol):
    """The whole public API."""

    async def submit_job(self, request: SubmitJobRequest, call: Call) -> SubmitJobResponse:
        """Accepts a job.

        Conditions: request_key_reused, submit_not_accepted.
        """
        ...

    async def get_job_status(self, request: GetJobStatusRequest, call: Call) -> GetJobStatusResponse:
        """Tells where a job is.

        Conditions: job_not_found.
        """
        ...

    async def get_job_result(self, request: GetJobResultRequest, call: Call) -> GetJobResultResponse:
        """Hands out the output of a terminal job.

        Conditions: job_not_found, result_missing, result_not_ready.
        """
        ...

    async def cancel_job(self, request: CancelJobRequest, call: Call) -> CancelJobResponse:
        """Cancels a waiting job; asks a running one to be canceled.

        Conditions: job_not_found, cancel_not_completed, already_terminal, cancel_repeated.
        """
        ...

    async def list_jobs(self, request: ListJobsRequest, call: Call) -> ListJobsResponse:
        """Lists jobs by status and age."""
        ...


class JobInternalService(Protocol):
    """The records of all jobs. The only place where a status changes."""

    async def create_job(self, request: CreateJobRequest, call: Call) -> CreateJobResponse:
        """Makes a record in its initial state, or finds the one made under the same key.

        Conditions: request_key_reused.
        """
        ...

    async def delete_job_if_status(
        self, request: DeleteJobIfStatusRequest, call: Call
    ) -> DeleteJobIfStatusResponse:
        """Takes a record back if it is still in the expected state.

        Conditions: delete_not_applied.
        """
        ...

    async def get_job_record(self, request: GetJobRecordRequest, call: Call) -> GetJobRecordResponse:
        """Reads one record.

        Conditions: job_not_found.
        """
        ...

    async def list_job_records(self, request: ListJobRecordsRequest, call: Call) -> ListJobRecordsResponse:
        """Reads one page of records."""
        ...

    async def transition_job_status(
        self, request: TransitionJobStatusRequest, call: Call
    ) -> TransitionJobStatusResponse:
        """Moves a job if it is still in the expected state.

        Conditions: job_not_found, transition_not_applied.
        """
        ...

    async def set_cancel_requested(
        self, request: SetCancelRequestedRequest, call: Call
    ) -> SetCancelRequestedResponse:
        """Raises the cancel flag of a job that is not terminal.

        Conditions: job_not_found, flag_not_applied.
        """
        ...


class QueueInternalService(Protocol):
    """Which jobs wait, first in, first out. Knows ids and nothing else of a job."""

    async def enqueue_job(self, request: EnqueueJobRequest, call: Call) -> EnqueueJobResponse:
        """Puts a job at the tail unless it waits already.

        Conditions: enqueue_refused.
        """
        ...

    async def dequeue_job(self, request: DequeueJobRequest, call: Call) -> DequeueJobResponse:
        """Takes the job at the head out for good.

        Conditions: queue_empty.
        """
        ...

    async def remove_job_if_present(
        self, request: RemoveJobIfPresentRequest, call: Call
    ) -> RemoveJobIfPresentResponse:
        """Takes one job out wherever it stands.

        Conditions: not_in_queue.
        """
        ...


class CoordinatorInternalService(Protocol):
    """Keeps track of workers and gives them work."""

    async def worker_heartbeat(self, request: WorkerHeartbeatRequest, call: Call) -> WorkerHeartbeatResponse:
        """Tells that a worker is alive."""
        ...

    async def fetch_work(self, request: FetchWorkRequest, call: Call) -> FetchWorkResponse:
        """Assigns one job to a live worker.

        Conditions: no_work.
        """
        ...

    async def report_work_outcome(
        self, request: ReportWorkOutcomeRequest, call: Call
    ) -> ReportWorkOutcomeResponse:
        """Ends a job with what its worker found.

        Conditions: job_not_found, report_refused.
        """
        ...


class ResultInternalService(Protocol):
    """The envelopes of terminal jobs. Knows no other state of a job."""

    async def store_result(self, request: StoreResultRequest, call: Call) -> StoreResultResponse:
        """Keeps the first envelope of a job.

        Conditions: result_conflict.
        """
        ...

    async def get_result(self, request: GetResultRequest, call: Call) -> GetResultResponse:
        """Reads one envelope.

        Conditions: result_absent.
        """
        ...
