"""Typed clients of the services of orchestrator, with the same protocols as handlers.

Generated from spec/orchestrator (sha256:fdaebfd770cb5849). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from generated.orchestrator import methods
from generated.orchestrator.messages import (
    GetJobHistoryRequest,
    GetJobHistoryResponse,
    GetJobRequest,
    Job,
    ListJobsRequest,
    ListJobsResponse,
    PurgeJobsRequest,
    PurgeJobsResponse,
    RetryJobRequest,
    SubmitJobRequest,
    SubmitJobResponse,
    SubmitJobsRequest,
    SubmitJobsResponse,
)
from runtime.call import Answering, Call, Channel


class JobsServiceClient:
    """Records and shows what is to be done. It never runs a job."""

    def __init__(self, channel: Channel) -> None:
        self._submit_job = channel.bind(methods.JOBS_SERVICE_SUBMIT_JOB, SubmitJobRequest, SubmitJobResponse)
        self._submit_jobs = channel.bind(
            methods.JOBS_SERVICE_SUBMIT_JOBS, SubmitJobsRequest, SubmitJobsResponse
        )
        self._get_job = channel.bind(methods.JOBS_SERVICE_GET_JOB, GetJobRequest, Job)
        self._list_jobs = channel.bind(methods.JOBS_SERVICE_LIST_JOBS, ListJobsRequest, ListJobsResponse)
        self._retry_job = channel.bind(methods.JOBS_SERVICE_RETRY_JOB, RetryJobRequest, SubmitJobResponse)

    def submit_job(self, request: SubmitJobRequest, call: Call) -> Answering[SubmitJobResponse]:
        """Accepts a job, or finds the one that the key already has."""
        return self._submit_job(request, call)

    def submit_jobs(self, request: SubmitJobsRequest, call: Call) -> Answering[SubmitJobsResponse]:
        """Accepts many jobs at once, all of them or none."""
        return self._submit_jobs(request, call)

    def get_job(self, request: GetJobRequest, call: Call) -> Answering[Job]:
        """Shows one job."""
        return self._get_job(request, call)

    def list_jobs(self, request: ListJobsRequest, call: Call) -> Answering[ListJobsResponse]:
        """Shows jobs, newest first."""
        return self._list_jobs(request, call)

    def retry_job(self, request: RetryJobRequest, call: Call) -> Answering[SubmitJobResponse]:
        """Submits a failed job once more, as a new job under a new key."""
        return self._retry_job(request, call)


class OperatorServiceClient:
    """What operators need beyond that."""

    def __init__(self, channel: Channel) -> None:
        self._get_job_history = channel.bind(
            methods.OPERATOR_SERVICE_GET_JOB_HISTORY, GetJobHistoryRequest, GetJobHistoryResponse
        )
        self._purge_jobs = channel.bind(
            methods.OPERATOR_SERVICE_PURGE_JOBS, PurgeJobsRequest, PurgeJobsResponse
        )

    def get_job_history(self, request: GetJobHistoryRequest, call: Call) -> Answering[GetJobHistoryResponse]:
        """Shows a job with its counters, its last error and every state change."""
        return self._get_job_history(request, call)

    def purge_jobs(self, request: PurgeJobsRequest, call: Call) -> Answering[PurgeJobsResponse]:
        """Deletes jobs that ended long ago. It frees their keys."""
        return self._purge_jobs(request, call)


CLIENTS: Final[Mapping[str, type[Any]]] = {
    "JobsService": JobsServiceClient,
    "OperatorService": OperatorServiceClient,
}
