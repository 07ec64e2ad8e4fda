"""Messages and enums of queuey, whichever proto file defines them.

Generated from spec/queuey (sha256:aae65c91f93c4e6a). Do not edit; run `nox -s generate`.
"""

from generated.queuey_internal_pb2 import (
    JobRow,
)
from generated.queuey_pb2 import (
    ACTIVE,
    COMPLETED,
    FAILED,
    JOB_STATUS_UNSPECIFIED,
    PENDING,
    CancelJobRequest,
    ClaimJobRequest,
    CompleteJobRequest,
    CountJobsRequest,
    CountJobsResponse,
    CreateJobRequest,
    GetJobRequest,
    GetReportRequest,
    Job,
    JobChange,
    JobStatus,
    ListJobsRequest,
    ListJobsResponse,
    ReleaseJobRequest,
    Report,
    RetryJobRequest,
    TickleJobRequest,
)

__all__ = [
    "ACTIVE",
    "COMPLETED",
    "FAILED",
    "JOB_STATUS_UNSPECIFIED",
    "PENDING",
    "CancelJobRequest",
    "ClaimJobRequest",
    "CompleteJobRequest",
    "CountJobsRequest",
    "CountJobsResponse",
    "CreateJobRequest",
    "GetJobRequest",
    "GetReportRequest",
    "Job",
    "JobChange",
    "JobRow",
    "JobStatus",
    "ListJobsRequest",
    "ListJobsResponse",
    "ReleaseJobRequest",
    "Report",
    "RetryJobRequest",
    "TickleJobRequest",
]
