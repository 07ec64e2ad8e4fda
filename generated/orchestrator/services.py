"""Services of orchestrator as protocols: a handler implements one, a typed client has the same shape.

Generated from spec/orchestrator (sha256:fdaebfd770cb5849). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from typing import Protocol

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
from runtime.call import Call


class JobsService(Protocol):
    """Records and shows what is to be done. It never runs a job."""

    async def submit_job(self, request: SubmitJobRequest, call: Call) -> SubmitJobResponse:
        """Accepts a job, or finds the one that the key already has.

        Conditions: idempotency_key_reused.
        """
        ...

    async def submit_jobs(self, request: SubmitJobsRequest, call: Call) -> SubmitJobsResponse:
        """Accepts many jobs at once, all of them or none.

        Conditions: idempotency_key_reused.
        """
        ...

    async def get_job(self, request: GetJobRequest, call: Call) -> Job:
        """Shows one job.

        Conditions: job_not_found.
        """
        ...

    async def list_jobs(self, request: ListJobsRequest, call: Call) -> ListJobsResponse:
        """Shows jobs, newest first."""
        ...

    async def retry_job(self, request: RetryJobRequest, call: Call) -> SubmitJobResponse:
        """Submits a failed job once more, as a new job under a new key.

        Conditions: job_not_found, job_not_failed, idempotency_key_reused.
        """
        ...


class OperatorService(Protocol):
    """What operators need beyond that."""

    async def get_job_history(self, request: GetJobHistoryRequest, call: Call) -> GetJobHistoryResponse:
        """Shows a job with its counters, its last error and every state change.

        Conditions: job_not_found.
        """
        ...

    async def purge_jobs(self, request: PurgeJobsRequest, call: Call) -> PurgeJobsResponse:
        """Deletes jobs that ended long ago. It frees their keys."""
        ...
