"""Request validation of queuey: `check_…` lists violations, `settle_…` normalises a valid request.

Generated from spec/queuey (sha256:77d78c72842295af). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

import re
from typing import Final

from generated.queuey.messages import (
    ACTIVE,
    COMPLETED,
    FAILED,
    PENDING,
    CancelJobRequest,
    ClaimJobRequest,
    CompleteJobRequest,
    CreateJobRequest,
    GetBlobRequest,
    GetJobRequest,
    GetReportRequest,
    ListJobsRequest,
    PutBlobAtRequest,
    ReleaseJobRequest,
    RetryJobRequest,
    TickleJobRequest,
)
from runtime.model.system import Violation
from runtime.model.text import cut

PATTERNS: Final = {
    "[0-9a-f]{64}": re.compile("[0-9a-f]{64}"),
    "[^\\x00-\\x1f\\x7f]+": re.compile("[^\\x00-\\x1f\\x7f]+"),
}


def check_create_job_request(message: CreateJobRequest, at: str = "") -> list[Violation]:
    """Check the rules of CreateJobRequest in types.yaml."""
    found: list[Violation] = []
    if not message.binary_addr:
        found.append(Violation(f"{at}binary_addr", "must not be empty"))
    if len(message.binary_addr) > 512:
        found.append(Violation(f"{at}binary_addr", "must have at most 512 characters"))
    if not PATTERNS["[^\\x00-\\x1f\\x7f]+"].fullmatch(message.binary_addr):
        found.append(Violation(f"{at}binary_addr", "must match [^\\x00-\\x1f\\x7f]+"))
    if message.HasField("input_addr") and not message.input_addr:
        found.append(Violation(f"{at}input_addr", "must not be empty"))
    if message.HasField("input_addr") and len(message.input_addr) > 512:
        found.append(Violation(f"{at}input_addr", "must have at most 512 characters"))
    if message.HasField("input_addr") and not PATTERNS["[^\\x00-\\x1f\\x7f]+"].fullmatch(message.input_addr):
        found.append(Violation(f"{at}input_addr", "must match [^\\x00-\\x1f\\x7f]+"))
    if message.HasField("idempotency_key") and not message.idempotency_key:
        found.append(Violation(f"{at}idempotency_key", "must not be empty"))
    if message.HasField("idempotency_key") and len(message.idempotency_key) > 255:
        found.append(Violation(f"{at}idempotency_key", "must have at most 255 characters"))
    if message.HasField("idempotency_key") and "\0" in message.idempotency_key:
        found.append(Violation(f"{at}idempotency_key", "must not contain the character NUL"))
    return found


def check_get_job_request(message: GetJobRequest, at: str = "") -> list[Violation]:
    """Check the rules of GetJobRequest in types.yaml."""
    found: list[Violation] = []
    if message.wait_ms > 20000:
        found.append(Violation(f"{at}wait_ms", "must be at most 20000"))
    return found


def settle_get_job_request(message: GetJobRequest) -> None:
    """Apply the defaults, clamps and cuts of GetJobRequest in types.yaml."""
    message.job_id = message.job_id.upper()


def check_list_jobs_request(message: ListJobsRequest, at: str = "") -> list[Violation]:
    """Check the rules of ListJobsRequest in types.yaml."""
    found: list[Violation] = []
    for index, item in enumerate(message.status):
        if item not in (PENDING, ACTIVE, COMPLETED, FAILED):
            found.append(
                Violation(f"{at}status[{index}]", "must be one of PENDING, ACTIVE, COMPLETED, FAILED")
            )
    if len(message.runner_id) > 512:
        found.append(Violation(f"{at}runner_id", "must have at most 512 characters"))
    if "\0" in message.runner_id:
        found.append(Violation(f"{at}runner_id", "must not contain the character NUL"))
    if len(message.page_token) > 64:
        found.append(Violation(f"{at}page_token", "must have at most 64 characters"))
    if "\0" in message.page_token:
        found.append(Violation(f"{at}page_token", "must not contain the character NUL"))
    return found


def settle_list_jobs_request(message: ListJobsRequest) -> None:
    """Apply the defaults, clamps and cuts of ListJobsRequest in types.yaml."""
    message.page_size = min(message.page_size or 50, 500)


def check_claim_job_request(message: ClaimJobRequest, at: str = "") -> list[Violation]:
    """Check the rules of ClaimJobRequest in types.yaml."""
    found: list[Violation] = []
    if not message.runner_id:
        found.append(Violation(f"{at}runner_id", "must not be empty"))
    if len(message.runner_id) > 512:
        found.append(Violation(f"{at}runner_id", "must have at most 512 characters"))
    if "\0" in message.runner_id:
        found.append(Violation(f"{at}runner_id", "must not contain the character NUL"))
    if message.wait_ms > 20000:
        found.append(Violation(f"{at}wait_ms", "must be at most 20000"))
    return found


def check_tickle_job_request(message: TickleJobRequest, at: str = "") -> list[Violation]:
    """Check the rules of TickleJobRequest in types.yaml."""
    found: list[Violation] = []
    if message.HasField("runner_id") and not message.runner_id:
        found.append(Violation(f"{at}runner_id", "must not be empty"))
    if message.HasField("runner_id") and len(message.runner_id) > 512:
        found.append(Violation(f"{at}runner_id", "must have at most 512 characters"))
    if message.HasField("runner_id") and "\0" in message.runner_id:
        found.append(Violation(f"{at}runner_id", "must not contain the character NUL"))
    return found


def settle_tickle_job_request(message: TickleJobRequest) -> None:
    """Apply the defaults, clamps and cuts of TickleJobRequest in types.yaml."""
    message.job_id = message.job_id.upper()


def check_complete_job_request(message: CompleteJobRequest, at: str = "") -> list[Violation]:
    """Check the rules of CompleteJobRequest in types.yaml."""
    found: list[Violation] = []
    if message.status not in (COMPLETED, FAILED):
        found.append(Violation(f"{at}status", "must be one of COMPLETED, FAILED"))
    if message.HasField("output_addr") and not message.output_addr:
        found.append(Violation(f"{at}output_addr", "must not be empty"))
    if message.HasField("output_addr") and len(message.output_addr) > 512:
        found.append(Violation(f"{at}output_addr", "must have at most 512 characters"))
    if message.HasField("output_addr") and not PATTERNS["[^\\x00-\\x1f\\x7f]+"].fullmatch(
        message.output_addr
    ):
        found.append(Violation(f"{at}output_addr", "must match [^\\x00-\\x1f\\x7f]+"))
    if message.status == COMPLETED and not message.HasField("output_addr"):
        found.append(Violation(f"{at}output_addr", "must be given where status is COMPLETED"))
    if message.HasField("runner_id") and not message.runner_id:
        found.append(Violation(f"{at}runner_id", "must not be empty"))
    if message.HasField("runner_id") and len(message.runner_id) > 512:
        found.append(Violation(f"{at}runner_id", "must have at most 512 characters"))
    if message.HasField("runner_id") and "\0" in message.runner_id:
        found.append(Violation(f"{at}runner_id", "must not contain the character NUL"))
    if message.HasField("stderr_addr") and not message.stderr_addr:
        found.append(Violation(f"{at}stderr_addr", "must not be empty"))
    if message.HasField("stderr_addr") and len(message.stderr_addr) > 512:
        found.append(Violation(f"{at}stderr_addr", "must have at most 512 characters"))
    if message.HasField("stderr_addr") and not PATTERNS["[^\\x00-\\x1f\\x7f]+"].fullmatch(
        message.stderr_addr
    ):
        found.append(Violation(f"{at}stderr_addr", "must match [^\\x00-\\x1f\\x7f]+"))
    if message.HasField("reason") and "\0" in message.reason:
        found.append(Violation(f"{at}reason", "must not contain the character NUL"))
    return found


def settle_complete_job_request(message: CompleteJobRequest) -> None:
    """Apply the defaults, clamps and cuts of CompleteJobRequest in types.yaml."""
    message.job_id = message.job_id.upper()
    if message.HasField("reason"):
        message.reason = cut(message.reason, 2000)


def check_release_job_request(message: ReleaseJobRequest, at: str = "") -> list[Violation]:
    """Check the rules of ReleaseJobRequest in types.yaml."""
    found: list[Violation] = []
    if not message.runner_id:
        found.append(Violation(f"{at}runner_id", "must not be empty"))
    if len(message.runner_id) > 512:
        found.append(Violation(f"{at}runner_id", "must have at most 512 characters"))
    if "\0" in message.runner_id:
        found.append(Violation(f"{at}runner_id", "must not contain the character NUL"))
    return found


def settle_release_job_request(message: ReleaseJobRequest) -> None:
    """Apply the defaults, clamps and cuts of ReleaseJobRequest in types.yaml."""
    message.job_id = message.job_id.upper()


def settle_cancel_job_request(message: CancelJobRequest) -> None:
    """Apply the defaults, clamps and cuts of CancelJobRequest in types.yaml."""
    message.job_id = message.job_id.upper()


def settle_retry_job_request(message: RetryJobRequest) -> None:
    """Apply the defaults, clamps and cuts of RetryJobRequest in types.yaml."""
    message.job_id = message.job_id.upper()


def settle_get_report_request(message: GetReportRequest) -> None:
    """Apply the defaults, clamps and cuts of GetReportRequest in types.yaml."""
    message.job_id = message.job_id.upper()


def check_put_blob_at_request(message: PutBlobAtRequest, at: str = "") -> list[Violation]:
    """Check the rules of PutBlobAtRequest in types.yaml."""
    found: list[Violation] = []
    if not PATTERNS["[0-9a-f]{64}"].fullmatch(message.address):
        found.append(Violation(f"{at}address", "must match [0-9a-f]{64}"))
    return found


def check_get_blob_request(message: GetBlobRequest, at: str = "") -> list[Violation]:
    """Check the rules of GetBlobRequest in types.yaml."""
    found: list[Violation] = []
    if not message.address:
        found.append(Violation(f"{at}address", "must not be empty"))
    if len(message.address) > 512:
        found.append(Violation(f"{at}address", "must have at most 512 characters"))
    return found
