"""Method tables of queuey, which the engine serves and calls by.

Generated from spec/queuey (sha256:77d78c72842295af). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from generated.queuey import messages
from generated.queuey.policy import CALLS, MESSAGE_BYTES
from generated.queuey.requests import (
    check_claim_job_request,
    check_complete_job_request,
    check_create_job_request,
    check_get_blob_request,
    check_get_job_request,
    check_list_jobs_request,
    check_put_blob_at_request,
    check_release_job_request,
    check_tickle_job_request,
    settle_cancel_job_request,
    settle_complete_job_request,
    settle_get_job_request,
    settle_get_report_request,
    settle_list_jobs_request,
    settle_release_job_request,
    settle_retry_job_request,
    settle_tickle_job_request,
)
from runtime.model.system import Instead, Method, Route, Service

QUEUE_SERVICE_CREATE_JOB: Final = Method(
    service="queuey.v1.QueueService",
    name="CreateJob",
    attribute="create_job",
    request=messages.CreateJobRequest,
    response=messages.Job,
    policy=CALLS["QueueService.CreateJob"],
    check=check_create_job_request,
    max_request_bytes=MESSAGE_BYTES,
    max_request_variable="MAX_BODY_BYTES",
    route=Route("POST", "/jobs/create", 200),
)
QUEUE_SERVICE_GET_JOB: Final = Method(
    service="queuey.v1.QueueService",
    name="GetJob",
    attribute="get_job",
    request=messages.GetJobRequest,
    response=messages.Job,
    policy=CALLS["QueueService.GetJob"],
    check=check_get_job_request,
    settle=settle_get_job_request,
    max_request_bytes=MESSAGE_BYTES,
    max_request_variable="MAX_BODY_BYTES",
    log_fields=("job_id",),
    route=Route("GET", "/jobs/{job_id}", 200, any_value=True),
)
QUEUE_SERVICE_LIST_JOBS: Final = Method(
    service="queuey.v1.QueueService",
    name="ListJobs",
    attribute="list_jobs",
    request=messages.ListJobsRequest,
    response=messages.ListJobsResponse,
    policy=CALLS["QueueService.ListJobs"],
    check=check_list_jobs_request,
    settle=settle_list_jobs_request,
    max_request_bytes=MESSAGE_BYTES,
    max_request_variable="MAX_BODY_BYTES",
    log_fields=("runner_id",),
    route=Route("GET", "/jobs", 200),
)
QUEUE_SERVICE_COUNT_JOBS: Final = Method(
    service="queuey.v1.QueueService",
    name="CountJobs",
    attribute="count_jobs",
    request=messages.CountJobsRequest,
    response=messages.CountJobsResponse,
    policy=CALLS["QueueService.CountJobs"],
    max_request_bytes=MESSAGE_BYTES,
    max_request_variable="MAX_BODY_BYTES",
    route=Route("GET", "/counts", 200),
)
QUEUE_SERVICE_CLAIM_JOB: Final = Method(
    service="queuey.v1.QueueService",
    name="ClaimJob",
    attribute="claim_job",
    request=messages.ClaimJobRequest,
    response=messages.Job,
    policy=CALLS["QueueService.ClaimJob"],
    check=check_claim_job_request,
    max_request_bytes=MESSAGE_BYTES,
    max_request_variable="MAX_BODY_BYTES",
    log_fields=("runner_id",),
    route=Route("POST", "/jobs/claim", 200, instead=(Instead(204, "job_id", is_set=False),)),
)
QUEUE_SERVICE_TICKLE_JOB: Final = Method(
    service="queuey.v1.QueueService",
    name="TickleJob",
    attribute="tickle_job",
    request=messages.TickleJobRequest,
    response=messages.Job,
    policy=CALLS["QueueService.TickleJob"],
    check=check_tickle_job_request,
    settle=settle_tickle_job_request,
    max_request_bytes=MESSAGE_BYTES,
    max_request_variable="MAX_BODY_BYTES",
    log_fields=("job_id", "runner_id"),
    route=Route("POST", "/jobs/{job_id}/tickle", 200),
)
QUEUE_SERVICE_COMPLETE_JOB: Final = Method(
    service="queuey.v1.QueueService",
    name="CompleteJob",
    attribute="complete_job",
    request=messages.CompleteJobRequest,
    response=messages.Job,
    policy=CALLS["QueueService.CompleteJob"],
    check=check_complete_job_request,
    settle=settle_complete_job_request,
    max_request_bytes=MESSAGE_BYTES,
    max_request_variable="MAX_BODY_BYTES",
    log_fields=("job_id", "runner_id"),
    route=Route("POST", "/jobs/{job_id}/complete", 200),
)
QUEUE_SERVICE_RELEASE_JOB: Final = Method(
    service="queuey.v1.QueueService",
    name="ReleaseJob",
    attribute="release_job",
    request=messages.ReleaseJobRequest,
    response=messages.Job,
    policy=CALLS["QueueService.ReleaseJob"],
    check=check_release_job_request,
    settle=settle_release_job_request,
    max_request_bytes=MESSAGE_BYTES,
    max_request_variable="MAX_BODY_BYTES",
    log_fields=("job_id", "runner_id"),
    route=Route("POST", "/jobs/{job_id}/release", 200),
)
QUEUE_SERVICE_CANCEL_JOB: Final = Method(
    service="queuey.v1.QueueService",
    name="CancelJob",
    attribute="cancel_job",
    request=messages.CancelJobRequest,
    response=messages.Job,
    policy=CALLS["QueueService.CancelJob"],
    settle=settle_cancel_job_request,
    max_request_bytes=MESSAGE_BYTES,
    max_request_variable="MAX_BODY_BYTES",
    log_fields=("job_id",),
    route=Route("POST", "/jobs/{job_id}/cancel", 200),
)
QUEUE_SERVICE_RETRY_JOB: Final = Method(
    service="queuey.v1.QueueService",
    name="RetryJob",
    attribute="retry_job",
    request=messages.RetryJobRequest,
    response=messages.Job,
    policy=CALLS["QueueService.RetryJob"],
    settle=settle_retry_job_request,
    max_request_bytes=MESSAGE_BYTES,
    max_request_variable="MAX_BODY_BYTES",
    log_fields=("job_id",),
    route=Route("POST", "/jobs/{job_id}/retry", 200),
)
QUEUE_SERVICE_GET_REPORT: Final = Method(
    service="queuey.v1.QueueService",
    name="GetReport",
    attribute="get_report",
    request=messages.GetReportRequest,
    response=messages.Report,
    policy=CALLS["QueueService.GetReport"],
    settle=settle_get_report_request,
    max_request_bytes=MESSAGE_BYTES,
    max_request_variable="MAX_BODY_BYTES",
    log_fields=("job_id",),
    route=Route("GET", "/jobs/{job_id}/report", 200),
)

STORE_SERVICE_PUT_BLOB: Final = Method(
    service="queuey.v1.StoreService",
    name="PutBlob",
    attribute="put_blob",
    request=messages.PutBlobRequest,
    response=messages.PutBlobResponse,
    policy=CALLS["StoreService.PutBlob"],
    max_request_bytes=MESSAGE_BYTES,
    route=Route("POST", "/blobs", 201, body="content", instead=(Instead(200, "known", is_set=True),)),
)
STORE_SERVICE_PUT_BLOB_AT: Final = Method(
    service="queuey.v1.StoreService",
    name="PutBlobAt",
    attribute="put_blob_at",
    request=messages.PutBlobAtRequest,
    response=messages.PutBlobResponse,
    policy=CALLS["StoreService.PutBlobAt"],
    check=check_put_blob_at_request,
    max_request_bytes=MESSAGE_BYTES,
    route=Route(
        "PUT", "/blobs/{address}", 201, body="content", instead=(Instead(200, "known", is_set=True),)
    ),
)
STORE_SERVICE_GET_BLOB: Final = Method(
    service="queuey.v1.StoreService",
    name="GetBlob",
    attribute="get_blob",
    request=messages.GetBlobRequest,
    response=messages.GetBlobResponse,
    policy=CALLS["StoreService.GetBlob"],
    check=check_get_blob_request,
    max_request_bytes=MESSAGE_BYTES,
    route=Route("GET", "/blobs/{address}", 200, answer="content"),
)

SERVICES: Final[Mapping[str, Service]] = {
    "QueueService": Service(
        name="queuey.v1.QueueService",
        component="queue",
        methods=(
            QUEUE_SERVICE_CREATE_JOB,
            QUEUE_SERVICE_GET_JOB,
            QUEUE_SERVICE_LIST_JOBS,
            QUEUE_SERVICE_COUNT_JOBS,
            QUEUE_SERVICE_CLAIM_JOB,
            QUEUE_SERVICE_TICKLE_JOB,
            QUEUE_SERVICE_COMPLETE_JOB,
            QUEUE_SERVICE_RELEASE_JOB,
            QUEUE_SERVICE_CANCEL_JOB,
            QUEUE_SERVICE_RETRY_JOB,
            QUEUE_SERVICE_GET_REPORT,
        ),
    ),
    "StoreService": Service(
        name="queuey.v1.StoreService",
        component="store",
        methods=(
            STORE_SERVICE_PUT_BLOB,
            STORE_SERVICE_PUT_BLOB_AT,
            STORE_SERVICE_GET_BLOB,
        ),
    ),
}
