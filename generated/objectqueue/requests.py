"""Request validation of objectqueue: `check_…` lists violations, `settle_…` normalises a valid request.

Generated from spec/objectqueue (sha256:bf30565a014f0db2). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

import re
from typing import Final

from generated.objectqueue.messages import (
    ARCHIVED,
    COMPLETED,
    FAILED,
    PENDING,
    RUNNING,
    ArchiveTaskRequest,
    CancelTaskRequest,
    GetHistoryRequest,
    GetStatsRequest,
    GetTaskRequest,
    ListTasksRequest,
    ReplayTaskRequest,
    SubmitTaskRequest,
    UnarchiveTaskRequest,
    WantedRetryPolicy,
)
from runtime.model.json_text import json_problem
from runtime.model.system import Violation
from runtime.model.text import cut, is_uuid4

PATTERNS: Final = {
    "[0-9a-f]": re.compile("[0-9a-f]"),
    "[^\\x00-\\x1f\\x7f]+": re.compile("[^\\x00-\\x1f\\x7f]+"),
}


def check_wanted_retry_policy(message: WantedRetryPolicy, at: str = "") -> list[Violation]:
    """Check the rules of WantedRetryPolicy in types.yaml."""
    found: list[Violation] = []
    if message.HasField("multiplier") and message.multiplier < 1:
        found.append(Violation(f"{at}multiplier", "must be at least 1"))
    if message.HasField("multiplier") and message.multiplier > 1000:
        found.append(Violation(f"{at}multiplier", "must be at most 1000"))
    if message.HasField("jitter_percent") and message.jitter_percent < 0:
        found.append(Violation(f"{at}jitter_percent", "must be at least 0"))
    if message.HasField("jitter_percent") and message.jitter_percent > 1:
        found.append(Violation(f"{at}jitter_percent", "must be at most 1"))
    return found


def settle_wanted_retry_policy(message: WantedRetryPolicy) -> None:
    """Apply the defaults, clamps and cuts of WantedRetryPolicy in types.yaml."""
    if not message.HasField("initial_interval_ms"):
        message.initial_interval_ms = 1000
    if not message.HasField("max_interval_ms"):
        message.max_interval_ms = 60000
    if not message.HasField("multiplier"):
        message.multiplier = 2.0
    if not message.HasField("jitter_percent"):
        message.jitter_percent = 0.25


def check_submit_task_request(message: SubmitTaskRequest, at: str = "") -> list[Violation]:
    """Check the rules of SubmitTaskRequest in types.yaml."""
    found: list[Violation] = []
    if not message.task_type:
        found.append(Violation(f"{at}task_type", "must not be empty"))
    if len(message.task_type) > 255:
        found.append(Violation(f"{at}task_type", "must have at most 255 characters"))
    if not PATTERNS["[^\\x00-\\x1f\\x7f]+"].fullmatch(message.task_type):
        found.append(Violation(f"{at}task_type", "must match [^\\x00-\\x1f\\x7f]+"))
    if message.HasField("input") and len(message.input.encode()) > 33554432:
        found.append(Violation(f"{at}input", "must have at most 33554432 bytes"))
    if message.HasField("input") and (problem := json_problem(message.input, storable=True)):
        found.append(Violation(f"{at}input", problem))
    if message.HasField("timeout_seconds") and message.timeout_seconds < 1:
        found.append(Violation(f"{at}timeout_seconds", "must be at least 1"))
    if message.HasField("timeout_seconds") and message.timeout_seconds > 604800:
        found.append(Violation(f"{at}timeout_seconds", "must be at most 604800"))
    if message.HasField("max_retries") and message.max_retries > 100000:
        found.append(Violation(f"{at}max_retries", "must be at most 100000"))
    if message.HasField("retry_policy"):
        found += check_wanted_retry_policy(message.retry_policy, f"{at}retry_policy.")
    if message.HasField("idempotency_key") and not message.idempotency_key:
        found.append(Violation(f"{at}idempotency_key", "must not be empty"))
    if message.HasField("idempotency_key") and len(message.idempotency_key) > 255:
        found.append(Violation(f"{at}idempotency_key", "must have at most 255 characters"))
    if message.HasField("idempotency_key") and "\0" in message.idempotency_key:
        found.append(Violation(f"{at}idempotency_key", "must not contain the character NUL"))
    if message.HasField("delay_ms") and message.delay_ms > 3155760000000:
        found.append(Violation(f"{at}delay_ms", "must be at most 3155760000000"))
    if message.HasField("task_id") and not is_uuid4(message.task_id):
        found.append(Violation(f"{at}task_id", "must be the lowercase text of a version 4 UUID"))
    return found


def settle_submit_task_request(message: SubmitTaskRequest) -> None:
    """Apply the defaults, clamps and cuts of SubmitTaskRequest in types.yaml."""
    if not message.HasField("input"):
        message.input = "null"
    if not message.HasField("timeout_seconds"):
        message.timeout_seconds = 300
    if not message.HasField("max_retries"):
        message.max_retries = 3
    message.retry_policy.SetInParent()
    settle_wanted_retry_policy(message.retry_policy)


def check_get_task_request(message: GetTaskRequest, at: str = "") -> list[Violation]:
    """Check the rules of GetTaskRequest in types.yaml."""
    found: list[Violation] = []
    if not is_uuid4(message.task_id):
        found.append(Violation(f"{at}task_id", "must be the lowercase text of a version 4 UUID"))
    return found


def check_get_history_request(message: GetHistoryRequest, at: str = "") -> list[Violation]:
    """Check the rules of GetHistoryRequest in types.yaml."""
    found: list[Violation] = []
    if not is_uuid4(message.task_id):
        found.append(Violation(f"{at}task_id", "must be the lowercase text of a version 4 UUID"))
    return found


def check_list_tasks_request(message: ListTasksRequest, at: str = "") -> list[Violation]:
    """Check the rules of ListTasksRequest in types.yaml."""
    found: list[Violation] = []
    for index, shards_item in enumerate(message.shards):
        if not PATTERNS["[0-9a-f]"].fullmatch(shards_item):
            found.append(Violation(f"{at}shards[{index}]", "must match [0-9a-f]"))
    for index, status_item in enumerate(message.status):
        if status_item not in (PENDING, RUNNING, COMPLETED, FAILED, ARCHIVED):
            found.append(
                Violation(
                    f"{at}status[{index}]", "must be one of PENDING, RUNNING, COMPLETED, FAILED, ARCHIVED"
                )
            )
    if message.HasField("task_type") and not message.task_type:
        found.append(Violation(f"{at}task_type", "must not be empty"))
    if message.HasField("task_type") and len(message.task_type) > 255:
        found.append(Violation(f"{at}task_type", "must have at most 255 characters"))
    if message.HasField("task_type") and "\0" in message.task_type:
        found.append(Violation(f"{at}task_type", "must not contain the character NUL"))
    if len(message.page_token) > 1024:
        found.append(Violation(f"{at}page_token", "must have at most 1024 characters"))
    if "\0" in message.page_token:
        found.append(Violation(f"{at}page_token", "must not contain the character NUL"))
    return found


def settle_list_tasks_request(message: ListTasksRequest) -> None:
    """Apply the defaults, clamps and cuts of ListTasksRequest in types.yaml."""
    message.page_size = min(message.page_size or 50, 1000)


def check_replay_task_request(message: ReplayTaskRequest, at: str = "") -> list[Violation]:
    """Check the rules of ReplayTaskRequest in types.yaml."""
    found: list[Violation] = []
    if not is_uuid4(message.task_id):
        found.append(Violation(f"{at}task_id", "must be the lowercase text of a version 4 UUID"))
    return found


def check_archive_task_request(message: ArchiveTaskRequest, at: str = "") -> list[Violation]:
    """Check the rules of ArchiveTaskRequest in types.yaml."""
    found: list[Violation] = []
    if not is_uuid4(message.task_id):
        found.append(Violation(f"{at}task_id", "must be the lowercase text of a version 4 UUID"))
    return found


def check_unarchive_task_request(message: UnarchiveTaskRequest, at: str = "") -> list[Violation]:
    """Check the rules of UnarchiveTaskRequest in types.yaml."""
    found: list[Violation] = []
    if not is_uuid4(message.task_id):
        found.append(Violation(f"{at}task_id", "must be the lowercase text of a version 4 UUID"))
    return found


def check_cancel_task_request(message: CancelTaskRequest, at: str = "") -> list[Violation]:
    """Check the rules of CancelTaskRequest in types.yaml."""
    found: list[Violation] = []
    if not is_uuid4(message.task_id):
        found.append(Violation(f"{at}task_id", "must be the lowercase text of a version 4 UUID"))
    if "\0" in message.reason:
        found.append(Violation(f"{at}reason", "must not contain the character NUL"))
    return found


def settle_cancel_task_request(message: CancelTaskRequest) -> None:
    """Apply the defaults, clamps and cuts of CancelTaskRequest in types.yaml."""
    message.reason = cut(message.reason, 4000)


def check_get_stats_request(message: GetStatsRequest, at: str = "") -> list[Violation]:
    """Check the rules of GetStatsRequest in types.yaml."""
    found: list[Violation] = []
    for index, item in enumerate(message.shards):
        if not PATTERNS["[0-9a-f]"].fullmatch(item):
            found.append(Violation(f"{at}shards[{index}]", "must match [0-9a-f]"))
    return found
