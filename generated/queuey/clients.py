"""Typed clients of the services of queuey, with the same protocols as handlers.

Generated from spec/queuey (sha256:77d78c72842295af). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from generated.queuey import methods
from generated.queuey.messages import (
    CancelJobRequest,
    ClaimJobRequest,
    CompleteJobRequest,
    CountJobsRequest,
    CountJobsResponse,
    CreateJobRequest,
    GetBlobRequest,
    GetBlobResponse,
    GetJobRequest,
    GetReportRequest,
    Job,
    ListJobsRequest,
    ListJobsResponse,
    PutBlobAtRequest,
    PutBlobRequest,
    PutBlobResponse,
    ReleaseJobRequest,
    Report,
    RetryJobRequest,
    TickleJobRequest,
)
from runtime.call import Answering, Call, Channel


class QueueServiceClient:
    """Hands out jobs and keeps what became of them. It never runs one and never reads an address."""

    def __init__(self, channel: Channel) -> None:
        self._create_job = channel.bind(methods.QUEUE_SERVICE_CREATE_JOB, CreateJobRequest, Job)
        self._get_job = channel.bind(methods.QUEUE_SERVICE_GET_JOB, GetJobRequest, Job)
        self._list_jobs = channel.bind(methods.QUEUE_SERVICE_LIST_JOBS, ListJobsRequest, ListJobsResponse)
        self._count_jobs = channel.bind(methods.QUEUE_SERVICE_COUNT_JOBS, CountJobsRequest, CountJobsResponse)
        self._claim_job = channel.bind(methods.QUEUE_SERVICE_CLAIM_JOB, ClaimJobRequest, Job)
        self._tickle_job = channel.bind(methods.QUEUE_SERVICE_TICKLE_JOB, TickleJobRequest, Job)
        self._complete_job = channel.bind(methods.QUEUE_SERVICE_COMPLETE_JOB, CompleteJobRequest, Job)
        self._release_job = channel.bind(methods.QUEUE_SERVICE_RELEASE_JOB, ReleaseJobRequest, Job)
        self._cancel_job = channel.bind(methods.QUEUE_SERVICE_CANCEL_JOB, CancelJobRequest, Job)
        self._retry_job = channel.bind(methods.QUEUE_SERVICE_RETRY_JOB, RetryJobRequest, Job)
        self._get_report = channel.bind(methods.QUEUE_SERVICE_GET_REPORT, GetReportRequest, Report)

    def create_job(self, request: CreateJobRequest, call: Call) -> Answering[Job]:
        """Wants a binary to be run."""
        return self._create_job(request, call)

    def get_job(self, request: GetJobRequest, call: Call) -> Answering[Job]:
        """Shows one job, at once or when it has ended."""
        return self._get_job(request, call)

    def list_jobs(self, request: ListJobsRequest, call: Call) -> Answering[ListJobsResponse]:
        """Shows jobs, newest first."""
        return self._list_jobs(request, call)

    def count_jobs(self, request: CountJobsRequest, call: Call) -> Answering[CountJobsResponse]:
        """Says how many jobs there are in each status."""
        return self._count_jobs(request, call)

    def claim_job(self, request: ClaimJobRequest, call: Call) -> Answering[Job]:
        """Takes the oldest job that waits. An empty answer means that there is none."""
        return self._claim_job(request, call)

    def tickle_job(self, request: TickleJobRequest, call: Call) -> Answering[Job]:
        """Says that a job is still being worked on."""
        return self._tickle_job(request, call)

    def complete_job(self, request: CompleteJobRequest, call: Call) -> Answering[Job]:
        """Says how a job ended."""
        return self._complete_job(request, call)

    def release_job(self, request: ReleaseJobRequest, call: Call) -> Answering[Job]:
        """Gives a job back that its runner does not finish. Unless it is `abandoned` that counts as no
        attempt."""
        return self._release_job(request, call)

    def cancel_job(self, request: CancelJobRequest, call: Call) -> Answering[Job]:
        """Ends a job that nobody wants any more. It counts as failed."""
        return self._cancel_job(request, call)

    def retry_job(self, request: RetryJobRequest, call: Call) -> Answering[Job]:
        """Wants what a failed job wanted once more, as a new job."""
        return self._retry_job(request, call)

    def get_report(self, request: GetReportRequest, call: Call) -> Answering[Report]:
        """Shows what is known of a run beside its output."""
        return self._get_report(request, call)


class StoreServiceClient:
    """Keeps content under an address that is made from it, so that nothing ever changes under an address."""

    def __init__(self, channel: Channel) -> None:
        self._put_blob = channel.bind(methods.STORE_SERVICE_PUT_BLOB, PutBlobRequest, PutBlobResponse)
        self._put_blob_at = channel.bind(methods.STORE_SERVICE_PUT_BLOB_AT, PutBlobAtRequest, PutBlobResponse)
        self._get_blob = channel.bind(methods.STORE_SERVICE_GET_BLOB, GetBlobRequest, GetBlobResponse)

    def put_blob(self, request: PutBlobRequest, call: Call) -> Answering[PutBlobResponse]:
        """Stores content and says under which address. Content that is there already is not stored twice."""
        return self._put_blob(request, call)

    def put_blob_at(self, request: PutBlobAtRequest, call: Call) -> Answering[PutBlobResponse]:
        """Stores content under an address that the caller has worked out, if it is the right one."""
        return self._put_blob_at(request, call)

    def get_blob(self, request: GetBlobRequest, call: Call) -> Answering[GetBlobResponse]:
        """Gives content back, all of it or a part."""
        return self._get_blob(request, call)


CLIENTS: Final[Mapping[str, type[Any]]] = {
    "QueueService": QueueServiceClient,
    "StoreService": StoreServiceClient,
}
