"""Request validation of taskqueue: `check_…` lists violations, `settle_…` normalises a valid request.

Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from generated.taskqueue.messages import (
    CANCELED,
    CREATED_AT_ASC,
    CREATED_AT_DESC,
    DONE,
    FAILED,
    JOB_OUTCOME_CANCELED,
    JOB_OUTCOME_FAILED,
    JOB_OUTCOME_SUCCEEDED,
    JOB_SORT_UNSPECIFIED,
    QUEUED,
    RUNNING,
    CancelJobRequest,
    CreateJobRequest,
    DeleteJobIfStatusRequest,
    DequeueJobRequest,
    EnqueueJobRequest,
    FetchWorkRequest,
    GetJobRecordRequest,
    GetJobResultRequest,
    GetJobStatusRequest,
    GetResultRequest,
    JobSpec,
    ListJobRecordsRequest,
    ListJobsRequest,
    PageRequest,
    RemoveJobIfPresentRequest,
    ReportWorkOutcomeRequest,
    SetCancelRequestedRequest,
    StoreResultRequest,
    SubmitJobRequest,
    TransitionJobStatusRequest,
    WorkerHeartbeatRequest,
)
from runtime.model.system import Violation
from runtime.model.text import cut, sha256_hex


def check_job_spec(message: JobSpec, at: str = "") -> list[Violation]:
    """Check the rules of JobSpec in types.yaml."""
    found: list[Violation] = []
    if not message.job_type:
        found.append(Violation(f"{at}job_type", "must not be empty"))
    if message.work_duration_ms > 3600000:
        found.append(Violation(f"{at}work_duration_ms", "must be at most 3600000"))
    return found


def check_page_request(message: PageRequest, at: str = "") -> list[Violation]:
    """Check the rules of PageRequest in types.yaml."""
    found: list[Violation] = []
    if message.page_token and not (
        message.page_token.isascii()
        and message.page_token.isdigit()
        and len(message.page_token) <= 19
        and int(message.page_token) <= 9223372036854775807
    ):
        found.append(
            Violation(
                f"{at}page_token",
                "must be empty or a whole number from 0 to 9223372036854775807 in decimal digits",
            )
        )
    return found


def settle_page_request(message: PageRequest) -> None:
    """Apply the defaults, clamps and cuts of PageRequest in types.yaml."""
    message.page_size = min(message.page_size or 50, 200)


def check_submit_job_request(message: SubmitJobRequest, at: str = "") -> list[Violation]:
    """Check the rules of SubmitJobRequest in types.yaml."""
    found: list[Violation] = []
    if not message.HasField("spec"):
        found.append(Violation(f"{at}spec", "is required"))
    else:
        found += check_job_spec(message.spec, f"{at}spec.")
    return found


def check_get_job_status_request(message: GetJobStatusRequest, at: str = "") -> list[Violation]:
    """Check the rules of GetJobStatusRequest in types.yaml."""
    found: list[Violation] = []
    if not message.job_id:
        found.append(Violation(f"{at}job_id", "must not be empty"))
    return found


def check_get_job_result_request(message: GetJobResultRequest, at: str = "") -> list[Violation]:
    """Check the rules of GetJobResultRequest in types.yaml."""
    found: list[Violation] = []
    if not message.job_id:
        found.append(Violation(f"{at}job_id", "must not be empty"))
    return found


def check_cancel_job_request(message: CancelJobRequest, at: str = "") -> list[Violation]:
    """Check the rules of CancelJobRequest in types.yaml."""
    found: list[Violation] = []
    if not message.job_id:
        found.append(Violation(f"{at}job_id", "must not be empty"))
    return found


def settle_cancel_job_request(message: CancelJobRequest) -> None:
    """Apply the defaults, clamps and cuts of CancelJobRequest in types.yaml."""
    message.reason = cut(message.reason, 1024)


def check_list_jobs_request(message: ListJobsRequest, at: str = "") -> list[Violation]:
    """Check the rules of ListJobsRequest in types.yaml."""
    found: list[Violation] = []
    for index, item in enumerate(message.status_filter):
        if item not in (QUEUED, RUNNING, DONE, FAILED, CANCELED):
            found.append(
                Violation(
                    f"{at}status_filter[{index}]", "must be one of QUEUED, RUNNING, DONE, FAILED, CANCELED"
                )
            )
    if message.HasField("page"):
        found += check_page_request(message.page, f"{at}page.")
    if message.sort not in (JOB_SORT_UNSPECIFIED, CREATED_AT_DESC, CREATED_AT_ASC):
        found.append(
            Violation(f"{at}sort", "must be one of JOB_SORT_UNSPECIFIED, CREATED_AT_DESC, CREATED_AT_ASC")
        )
    return found


def settle_list_jobs_request(message: ListJobsRequest) -> None:
    """Apply the defaults, clamps and cuts of ListJobsRequest in types.yaml."""
    settle_page_request(message.page)
    if not message.sort:
        message.sort = CREATED_AT_DESC


def check_create_job_request(message: CreateJobRequest, at: str = "") -> list[Violation]:
    """Check the rules of CreateJobRequest in types.yaml."""
    found: list[Violation] = []
    if not message.HasField("spec"):
        found.append(Violation(f"{at}spec", "is required"))
    else:
        found += check_job_spec(message.spec, f"{at}spec.")
    return found


def check_delete_job_if_status_request(message: DeleteJobIfStatusRequest, at: str = "") -> list[Violation]:
    """Check the rules of DeleteJobIfStatusRequest in types.yaml."""
    found: list[Violation] = []
    if not message.job_id:
        found.append(Violation(f"{at}job_id", "must not be empty"))
    if message.expected_status not in (QUEUED, RUNNING, DONE, FAILED, CANCELED):
        found.append(
            Violation(f"{at}expected_status", "must be one of QUEUED, RUNNING, DONE, FAILED, CANCELED")
        )
    return found


def check_get_job_record_request(message: GetJobRecordRequest, at: str = "") -> list[Violation]:
    """Check the rules of GetJobRecordRequest in types.yaml."""
    found: list[Violation] = []
    if not message.job_id:
        found.append(Violation(f"{at}job_id", "must not be empty"))
    return found


def check_list_job_records_request(message: ListJobRecordsRequest, at: str = "") -> list[Violation]:
    """Check the rules of ListJobRecordsRequest in types.yaml."""
    found: list[Violation] = []
    for index, item in enumerate(message.status_filter):
        if item not in (QUEUED, RUNNING, DONE, FAILED, CANCELED):
            found.append(
                Violation(
                    f"{at}status_filter[{index}]", "must be one of QUEUED, RUNNING, DONE, FAILED, CANCELED"
                )
            )
    if message.HasField("page"):
        found += check_page_request(message.page, f"{at}page.")
    if message.sort not in (JOB_SORT_UNSPECIFIED, CREATED_AT_DESC, CREATED_AT_ASC):
        found.append(
            Violation(f"{at}sort", "must be one of JOB_SORT_UNSPECIFIED, CREATED_AT_DESC, CREATED_AT_ASC")
        )
    return found


def settle_list_job_records_request(message: ListJobRecordsRequest) -> None:
    """Apply the defaults, clamps and cuts of ListJobRecordsRequest in types.yaml."""
    settle_page_request(message.page)
    if not message.sort:
        message.sort = CREATED_AT_DESC


def check_transition_job_status_request(message: TransitionJobStatusRequest, at: str = "") -> list[Violation]:
    """Check the rules of TransitionJobStatusRequest in types.yaml."""
    found: list[Violation] = []
    if not message.job_id:
        found.append(Violation(f"{at}job_id", "must not be empty"))
    if message.expected_from_status not in (QUEUED, RUNNING, DONE, FAILED, CANCELED):
        found.append(
            Violation(f"{at}expected_from_status", "must be one of QUEUED, RUNNING, DONE, FAILED, CANCELED")
        )
    if message.to_status not in (QUEUED, RUNNING, DONE, FAILED, CANCELED):
        found.append(Violation(f"{at}to_status", "must be one of QUEUED, RUNNING, DONE, FAILED, CANCELED"))
    return found


def settle_transition_job_status_request(message: TransitionJobStatusRequest) -> None:
    """Apply the defaults, clamps and cuts of TransitionJobStatusRequest in types.yaml."""
    message.reason = cut(message.reason, 1024)


def check_set_cancel_requested_request(message: SetCancelRequestedRequest, at: str = "") -> list[Violation]:
    """Check the rules of SetCancelRequestedRequest in types.yaml."""
    found: list[Violation] = []
    if not message.job_id:
        found.append(Violation(f"{at}job_id", "must not be empty"))
    if message.cancel_requested is not True:
        found.append(Violation(f"{at}cancel_requested", "must be true"))
    return found


def settle_set_cancel_requested_request(message: SetCancelRequestedRequest) -> None:
    """Apply the defaults, clamps and cuts of SetCancelRequestedRequest in types.yaml."""
    message.reason = cut(message.reason, 1024)


def check_enqueue_job_request(message: EnqueueJobRequest, at: str = "") -> list[Violation]:
    """Check the rules of EnqueueJobRequest in types.yaml."""
    found: list[Violation] = []
    if not message.job_id:
        found.append(Violation(f"{at}job_id", "must not be empty"))
    return found


def check_dequeue_job_request(message: DequeueJobRequest, at: str = "") -> list[Violation]:
    """Check the rules of DequeueJobRequest in types.yaml."""
    found: list[Violation] = []
    if not message.worker_id:
        found.append(Violation(f"{at}worker_id", "must not be empty"))
    return found


def check_remove_job_if_present_request(message: RemoveJobIfPresentRequest, at: str = "") -> list[Violation]:
    """Check the rules of RemoveJobIfPresentRequest in types.yaml."""
    found: list[Violation] = []
    if not message.job_id:
        found.append(Violation(f"{at}job_id", "must not be empty"))
    return found


def check_worker_heartbeat_request(message: WorkerHeartbeatRequest, at: str = "") -> list[Violation]:
    """Check the rules of WorkerHeartbeatRequest in types.yaml."""
    found: list[Violation] = []
    if not message.worker_id:
        found.append(Violation(f"{at}worker_id", "must not be empty"))
    return found


def check_fetch_work_request(message: FetchWorkRequest, at: str = "") -> list[Violation]:
    """Check the rules of FetchWorkRequest in types.yaml."""
    found: list[Violation] = []
    if not message.worker_id:
        found.append(Violation(f"{at}worker_id", "must not be empty"))
    return found


def check_report_work_outcome_request(message: ReportWorkOutcomeRequest, at: str = "") -> list[Violation]:
    """Check the rules of ReportWorkOutcomeRequest in types.yaml."""
    found: list[Violation] = []
    if not message.worker_id:
        found.append(Violation(f"{at}worker_id", "must not be empty"))
    if not message.job_id:
        found.append(Violation(f"{at}job_id", "must not be empty"))
    if message.outcome not in (JOB_OUTCOME_SUCCEEDED, JOB_OUTCOME_FAILED, JOB_OUTCOME_CANCELED):
        found.append(
            Violation(
                f"{at}outcome",
                "must be one of JOB_OUTCOME_SUCCEEDED, JOB_OUTCOME_FAILED, JOB_OUTCOME_CANCELED",
            )
        )
    if message.checksum and message.checksum != sha256_hex(message.output_bytes):
        found.append(Violation(f"{at}checksum", "must be empty or the lowercase hex SHA-256 of output_bytes"))
    return found


def settle_report_work_outcome_request(message: ReportWorkOutcomeRequest) -> None:
    """Apply the defaults, clamps and cuts of ReportWorkOutcomeRequest in types.yaml."""
    message.failure_reason = cut(message.failure_reason, 1024)
    message.output_summary = cut(message.output_summary, 1024)
    if not message.checksum:
        message.checksum = sha256_hex(message.output_bytes)


def check_store_result_request(message: StoreResultRequest, at: str = "") -> list[Violation]:
    """Check the rules of StoreResultRequest in types.yaml."""
    found: list[Violation] = []
    if not message.job_id:
        found.append(Violation(f"{at}job_id", "must not be empty"))
    if message.terminal_status not in (DONE, FAILED, CANCELED):
        found.append(Violation(f"{at}terminal_status", "must be one of DONE, FAILED, CANCELED"))
    if message.checksum and message.checksum != sha256_hex(message.output_bytes):
        found.append(Violation(f"{at}checksum", "must be empty or the lowercase hex SHA-256 of output_bytes"))
    return found


def settle_store_result_request(message: StoreResultRequest) -> None:
    """Apply the defaults, clamps and cuts of StoreResultRequest in types.yaml."""
    message.output_summary = cut(message.output_summary, 1024)
    if not message.checksum:
        message.checksum = sha256_hex(message.output_bytes)


def check_get_result_request(message: GetResultRequest, at: str = "") -> list[Violation]:
    """Check the rules of GetResultRequest in types.yaml."""
    found: list[Violation] = []
    if not message.job_id:
        found.append(Violation(f"{at}job_id", "must not be empty"))
    return found
