"""Method tables of orchestrator, which the engine serves and calls by.

Generated from spec/orchestrator (sha256:fdaebfd770cb5849). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from generated.orchestrator import messages
from generated.orchestrator.policy import CALLS, MESSAGE_BYTES
from generated.orchestrator.requests import (
    check_get_job_history_request,
    check_get_job_request,
    check_list_jobs_request,
    check_purge_jobs_request,
    check_retry_job_request,
    check_submit_job_request,
    check_submit_jobs_request,
    settle_list_jobs_request,
)
from runtime.model.system import Method, Route, Service

JOBS_SERVICE_SUBMIT_JOB: Final = Method(
    service="orchestrator.v1.JobsService",
    name="SubmitJob",
    attribute="submit_job",
    request=messages.SubmitJobRequest,
    response=messages.SubmitJobResponse,
    policy=CALLS["JobsService.SubmitJob"],
    check=check_submit_job_request,
    max_request_bytes=MESSAGE_BYTES,
    max_request_variable="MAX_PAYLOAD_BYTES",
    route=Route("POST", "/jobs", 202),
)
JOBS_SERVICE_SUBMIT_JOBS: Final = Method(
    service="orchestrator.v1.JobsService",
    name="SubmitJobs",
    attribute="submit_jobs",
    request=messages.SubmitJobsRequest,
    response=messages.SubmitJobsResponse,
    policy=CALLS["JobsService.SubmitJobs"],
    check=check_submit_jobs_request,
    max_request_bytes=MESSAGE_BYTES,
    max_request_variable="MAX_PAYLOAD_BYTES",
    route=Route("POST", "/jobs/batch", 202),
)
JOBS_SERVICE_GET_JOB: Final = Method(
    service="orchestrator.v1.JobsService",
    name="GetJob",
    attribute="get_job",
    request=messages.GetJobRequest,
    response=messages.Job,
    policy=CALLS["JobsService.GetJob"],
    check=check_get_job_request,
    max_request_bytes=MESSAGE_BYTES,
    max_request_variable="MAX_PAYLOAD_BYTES",
    log_fields=("job_id",),
    route=Route("GET", "/jobs/{job_id}", 200),
)
JOBS_SERVICE_LIST_JOBS: Final = Method(
    service="orchestrator.v1.JobsService",
    name="ListJobs",
    attribute="list_jobs",
    request=messages.ListJobsRequest,
    response=messages.ListJobsResponse,
    policy=CALLS["JobsService.ListJobs"],
    check=check_list_jobs_request,
    settle=settle_list_jobs_request,
    max_request_bytes=MESSAGE_BYTES,
    max_request_variable="MAX_PAYLOAD_BYTES",
    route=Route("GET", "/jobs", 200),
)
JOBS_SERVICE_RETRY_JOB: Final = Method(
    service="orchestrator.v1.JobsService",
    name="RetryJob",
    attribute="retry_job",
    request=messages.RetryJobRequest,
    response=messages.SubmitJobResponse,
    policy=CALLS["JobsService.RetryJob"],
    check=check_retry_job_request,
    max_request_bytes=MESSAGE_BYTES,
    max_request_variable="MAX_PAYLOAD_BYTES",
    log_fields=("job_id",),
    route=Route("POST", "/jobs/{job_id}/retry", 202),
)

OPERATOR_SERVICE_GET_JOB_HISTORY: Final = Method(
    service="orchestrator.v1.OperatorService",
    name="GetJobHistory",
    attribute="get_job_history",
    request=messages.GetJobHistoryRequest,
    response=messages.GetJobHistoryResponse,
    policy=CALLS["OperatorService.GetJobHistory"],
    check=check_get_job_history_request,
    max_request_bytes=MESSAGE_BYTES,
    max_request_variable="MAX_PAYLOAD_BYTES",
    log_fields=("job_id",),
    route=Route("GET", "/operator/jobs/{job_id}/history", 200),
)
OPERATOR_SERVICE_PURGE_JOBS: Final = Method(
    service="orchestrator.v1.OperatorService",
    name="PurgeJobs",
    attribute="purge_jobs",
    request=messages.PurgeJobsRequest,
    response=messages.PurgeJobsResponse,
    policy=CALLS["OperatorService.PurgeJobs"],
    check=check_purge_jobs_request,
    max_request_bytes=MESSAGE_BYTES,
    max_request_variable="MAX_PAYLOAD_BYTES",
    route=Route("POST", "/operator/purge", 200),
)

SERVICES: Final[Mapping[str, Service]] = {
    "JobsService": Service(
        name="orchestrator.v1.JobsService",
        component="api",
        methods=(
            JOBS_SERVICE_SUBMIT_JOB,
            JOBS_SERVICE_SUBMIT_JOBS,
            JOBS_SERVICE_GET_JOB,
            JOBS_SERVICE_LIST_JOBS,
            JOBS_SERVICE_RETRY_JOB,
        ),
    ),
    "OperatorService": Service(
        name="orchestrator.v1.OperatorService",
        component="api",
        methods=(
            OPERATOR_SERVICE_GET_JOB_HISTORY,
            OPERATOR_SERVICE_PURGE_JOBS,
        ),
    ),
}
