"""Services of queuey as protocols: a handler implements one, a typed client has the same shape.

Generated from spec/queuey (sha256:77d78c72842295af). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from typing import Protocol

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
from runtime.call import Call


class QueueService(Protocol):
    """Hands out jobs and keeps what became of them. It never runs one and never reads an address."""

    async def create_job(self, request: CreateJobRequest, call: Call) -> Job:
        """Wants a binary to be run."""
        ...

    async def get_job(self, request: GetJobRequest, call: Call) -> Job:
        """Shows one job, at once or when it has ended.

        Conditions: job_not_found.
        """
        ...

    async def list_jobs(self, request: ListJobsRequest, call: Call) -> ListJobsResponse:
        """Shows jobs, newest first."""
        ...

    async def count_jobs(self, request: CountJobsRequest, call: Call) -> CountJobsResponse:
        """Says how many jobs there are in each status."""
        ...

    async def claim_job(self, request: ClaimJobRequest, call: Call) -> Job:
        """Takes the oldest job that waits. An empty answer means that there is none."""
        ...

    async def tickle_job(self, request: TickleJobRequest, call: Call) -> Job:
        """Says that a job is still being worked on.

        Conditions: job_not_found, job_not_active, not_owner, stale_attempt.
        """
        ...

    async def complete_job(self, request: CompleteJobRequest, call: Call) -> Job:
        """Says how a job ended.

        Conditions: job_not_found, job_not_active, not_owner, stale_attempt.
        """
        ...

    async def release_job(self, request: ReleaseJobRequest, call: Call) -> Job:
        """Gives a job back that its runner does not finish. Unless it is `abandoned` that counts as no
        attempt.

        Conditions: job_not_found, job_not_active, not_owner, stale_attempt.
        """
        ...

    async def cancel_job(self, request: CancelJobRequest, call: Call) -> Job:
        """Ends a job that nobody wants any more. It counts as failed.

        Conditions: job_not_found, job_not_active.
        """
        ...

    async def retry_job(self, request: RetryJobRequest, call: Call) -> Job:
        """Wants what a failed job wanted once more, as a new job.

        Conditions: job_not_found, job_not_failed.
        """
        ...

    async def get_report(self, request: GetReportRequest, call: Call) -> Report:
        """Shows what is known of a run beside its output.

        Conditions: job_not_found.
        """
        ...


class StoreService(Protocol):
    """Keeps content under an address that is made from it, so that nothing ever changes under an address."""

    async def put_blob(self, request: PutBlobRequest, call: Call) -> PutBlobResponse:
        """Stores content and says under which address. Content that is there already is not stored twice.

        Conditions: blob_too_large, blob_store_unavailable.
        """
        ...

    async def put_blob_at(self, request: PutBlobAtRequest, call: Call) -> PutBlobResponse:
        """Stores content under an address that the caller has worked out, if it is the right one.

        Conditions: blob_too_large, blob_store_unavailable, wrong_address.
        """
        ...

    async def get_blob(self, request: GetBlobRequest, call: Call) -> GetBlobResponse:
        """Gives content back, all of it or a part.

        Conditions: blob_not_found, blob_corrupt, blob_too_large, blob_store_unavailable.
        """
        ...
