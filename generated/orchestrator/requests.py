"""Request validation of orchestrator: `check_…` lists violations, `settle_…` normalises a valid request.

Generated from spec/orchestrator (sha256:fdaebfd770cb5849). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

import re
from typing import Final

from generated.orchestrator.messages import (
    STATUS_COMPLETED,
    STATUS_FAILED,
    STATUS_PENDING,
    STATUS_RUNNING,
    GetJobHistoryRequest,
    GetJobRequest,
    ListJobsRequest,
    PurgeJobsRequest,
    RetryJobRequest,
    SubmitJobRequest,
    SubmitJobsRequest,
)
from runtime.model.json_text import json_problem
from runtime.model.system import Violation

PATTERNS: Final = {
    "([0-9]{1,11}[.][0-9]{6}~[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?": re.compile(
        "([0-9]{1,11}[.][0-9]{6}~[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?"
    ),
    "[A-Za-z0-9_.-]+": re.compile("[A-Za-z0-9_.-]+"),
}


def check_submit_job_request(message: SubmitJobRequest, at: str = "") -> list[Violation]:
    """Check the rules of SubmitJobRequest in types.yaml."""
    found: list[Violation] = []
    if not message.job_type:
        found.append(Violation(f"{at}job_type", "must not be empty"))
    if len(message.job_type) > 100:
        found.append(Violation(f"{at}job_type", "must have at most 100 characters"))
    if not PATTERNS["[A-Za-z0-9_.-]+"].fullmatch(message.job_type):
        found.append(Violation(f"{at}job_type", "must match [A-Za-z0-9_.-]+"))
    if problem := json_problem(message.payload, must_be_object=True, storable=True):
        found.append(Violation(f"{at}payload", problem))
    if not message.idempotency_key:
        found.append(Violation(f"{at}idempotency_key", "must not be empty"))
    if len(message.idempotency_key) > 255:
        found.append(Violation(f"{at}idempotency_key", "must have at most 255 characters"))
    if "\0" in message.idempotency_key:
        found.append(Violation(f"{at}idempotency_key", "must not contain the character NUL"))
    return found


def check_submit_jobs_request(message: SubmitJobsRequest, at: str = "") -> list[Violation]:
    """Check the rules of SubmitJobsRequest in types.yaml."""
    found: list[Violation] = []
    if len(message.jobs) > 1000:
        found.append(Violation(f"{at}jobs", "must have at most 1000 elements"))
    if not message.jobs:
        found.append(Violation(f"{at}jobs", "must not be empty"))
    for index, inner in enumerate(message.jobs):
        found += check_submit_job_request(inner, f"{at}jobs[{index}].")
    return found


def check_get_job_request(message: GetJobRequest, at: str = "") -> list[Violation]:
    """Check the rules of GetJobRequest in types.yaml."""
    found: list[Violation] = []
    if not message.job_id:
        found.append(Violation(f"{at}job_id", "must not be empty"))
    return found


def check_list_jobs_request(message: ListJobsRequest, at: str = "") -> list[Violation]:
    """Check the rules of ListJobsRequest in types.yaml."""
    found: list[Violation] = []
    for index, item in enumerate(message.status):
        if item not in (STATUS_PENDING, STATUS_RUNNING, STATUS_COMPLETED, STATUS_FAILED):
            found.append(
                Violation(
                    f"{at}status[{index}]",
                    "must be one of STATUS_PENDING, STATUS_RUNNING, STATUS_COMPLETED, STATUS_FAILED",
                )
            )
    if len(message.job_type) > 100:
        found.append(Violation(f"{at}job_type", "must have at most 100 characters"))
    if "\0" in message.job_type:
        found.append(Violation(f"{at}job_type", "must not contain the character NUL"))
    if not PATTERNS["([0-9]{1,11}[.][0-9]{6}~[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?"].fullmatch(
        message.page_token
    ):
        found.append(
            Violation(
                f"{at}page_token",
                "must match ([0-9]{1,11}[.][0-9]{6}~[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?",
            )
        )
    return found


def settle_list_jobs_request(message: ListJobsRequest) -> None:
    """Apply the defaults, clamps and cuts of ListJobsRequest in types.yaml."""
    message.page_size = min(message.page_size or 50, 200)


def check_retry_job_request(message: RetryJobRequest, at: str = "") -> list[Violation]:
    """Check the rules of RetryJobRequest in types.yaml."""
    found: list[Violation] = []
    if not message.job_id:
        found.append(Violation(f"{at}job_id", "must not be empty"))
    if not message.idempotency_key:
        found.append(Violation(f"{at}idempotency_key", "must not be empty"))
    if len(message.idempotency_key) > 255:
        found.append(Violation(f"{at}idempotency_key", "must have at most 255 characters"))
    if "\0" in message.idempotency_key:
        found.append(Violation(f"{at}idempotency_key", "must not contain the character NUL"))
    return found


def check_get_job_history_request(message: GetJobHistoryRequest, at: str = "") -> list[Violation]:
    """Check the rules of GetJobHistoryRequest in types.yaml."""
    found: list[Violation] = []
    if not message.job_id:
        found.append(Violation(f"{at}job_id", "must not be empty"))
    return found


def check_purge_jobs_request(message: PurgeJobsRequest, at: str = "") -> list[Violation]:
    """Check the rules of PurgeJobsRequest in types.yaml."""
    found: list[Violation] = []
    if message.older_than_days < 1:
        found.append(Violation(f"{at}older_than_days", "must be at least 1"))
    if message.older_than_days > 36500:
        found.append(Violation(f"{at}older_than_days", "must be at most 36500"))
    return found
