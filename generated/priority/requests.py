"""Request validation of priority: `check_…` lists violations, `settle_…` normalises a valid request.

Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

import re
from typing import Final

from generated.priority.messages import (
    ACTIVE,
    CANCELLED,
    COMPLETED,
    DEAD,
    DEAD_LETTER,
    DRAINING,
    EXECUTING,
    FAILED,
    HIGH,
    LOW,
    MEDIUM,
    PRIORITY_UNSPECIFIED,
    QUEUED,
    WORKER_STATUS_UNSPECIFIED,
    CancelTaskRequest,
    DeregisterWorkerRequest,
    ExchangeTasksRequest,
    ExtendTaskRequest,
    GetTaskHistoryRequest,
    GetTaskRequest,
    HeartbeatRequest,
    ListDeadLettersRequest,
    ListTasksRequest,
    ListWorkersRequest,
    PauseQueueRequest,
    PollTasksRequest,
    PurgeDeadLetterRequest,
    PurgeDeadLettersRequest,
    RegisterWorkerRequest,
    ReplayDeadLetterRequest,
    ReplayDeadLettersRequest,
    ReportProgressRequest,
    ReportResultRequest,
    ResumeQueueRequest,
    SubmitTaskRequest,
    SubmitTasksRequest,
    TaskError,
    TaskResult,
)
from runtime.model.json_text import json_problem
from runtime.model.system import Violation
from runtime.model.text import cut, is_uuid4

PATTERNS: Final = {
    "([0-9]{1,16}~[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?": re.compile(
        "([0-9]{1,16}~[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?"
    ),
}


def check_task_error(message: TaskError, at: str = "") -> list[Violation]:
    """Check the rules of TaskError in types.yaml."""
    found: list[Violation] = []
    if "\0" in message.message:
        found.append(Violation(f"{at}message", "must not contain the character NUL"))
    return found


def settle_task_error(message: TaskError) -> None:
    """Apply the defaults, clamps and cuts of TaskError in types.yaml."""
    message.message = cut(message.message, 2000)


def check_submit_task_request(message: SubmitTaskRequest, at: str = "") -> list[Violation]:
    """Check the rules of SubmitTaskRequest in types.yaml."""
    found: list[Violation] = []
    if not message.task_type:
        found.append(Violation(f"{at}task_type", "must not be empty"))
    if len(message.task_type) > 200:
        found.append(Violation(f"{at}task_type", "must have at most 200 characters"))
    if "\0" in message.task_type:
        found.append(Violation(f"{at}task_type", "must not contain the character NUL"))
    if message.priority not in (PRIORITY_UNSPECIFIED, HIGH, MEDIUM, LOW):
        found.append(Violation(f"{at}priority", "must be one of PRIORITY_UNSPECIFIED, HIGH, MEDIUM, LOW"))
    if message.HasField("parameters") and (
        problem := json_problem(message.parameters, must_be_object=True, storable=True)
    ):
        found.append(Violation(f"{at}parameters", problem))
    if len(message.required_capabilities) > 32:
        found.append(Violation(f"{at}required_capabilities", "must have at most 32 elements"))
    for index, item in enumerate(message.required_capabilities):
        if not item:
            found.append(Violation(f"{at}required_capabilities[{index}]", "must not be empty"))
        if len(item) > 100:
            found.append(Violation(f"{at}required_capabilities[{index}]", "must have at most 100 characters"))
        if "\0" in item:
            found.append(
                Violation(f"{at}required_capabilities[{index}]", "must not contain the character NUL")
            )
    if message.HasField("timeout_seconds") and message.timeout_seconds < 1:
        found.append(Violation(f"{at}timeout_seconds", "must be at least 1"))
    if message.HasField("timeout_seconds") and message.timeout_seconds > 86400:
        found.append(Violation(f"{at}timeout_seconds", "must be at most 86400"))
    if message.HasField("max_retries") and message.max_retries > 100:
        found.append(Violation(f"{at}max_retries", "must be at most 100"))
    if message.HasField("idempotency_key") and not message.idempotency_key:
        found.append(Violation(f"{at}idempotency_key", "must not be empty"))
    if message.HasField("idempotency_key") and len(message.idempotency_key) > 255:
        found.append(Violation(f"{at}idempotency_key", "must have at most 255 characters"))
    if message.HasField("idempotency_key") and "\0" in message.idempotency_key:
        found.append(Violation(f"{at}idempotency_key", "must not contain the character NUL"))
    return found


def settle_submit_task_request(message: SubmitTaskRequest) -> None:
    """Apply the defaults, clamps and cuts of SubmitTaskRequest in types.yaml."""
    if not message.priority:
        message.priority = MEDIUM


def check_submit_tasks_request(message: SubmitTasksRequest, at: str = "") -> list[Violation]:
    """Check the rules of SubmitTasksRequest in types.yaml."""
    found: list[Violation] = []
    if len(message.tasks) > 1000:
        found.append(Violation(f"{at}tasks", "must have at most 1000 elements"))
    if not message.tasks:
        found.append(Violation(f"{at}tasks", "must not be empty"))
    for index, inner in enumerate(message.tasks):
        found += check_submit_task_request(inner, f"{at}tasks[{index}].")
    return found


def settle_submit_tasks_request(message: SubmitTasksRequest) -> None:
    """Apply the defaults, clamps and cuts of SubmitTasksRequest in types.yaml."""
    for inner in message.tasks:
        settle_submit_task_request(inner)


def check_get_task_request(message: GetTaskRequest, at: str = "") -> list[Violation]:
    """Check the rules of GetTaskRequest in types.yaml."""
    found: list[Violation] = []
    if not message.task_id:
        found.append(Violation(f"{at}task_id", "must not be empty"))
    if len(message.task_id) > 100:
        found.append(Violation(f"{at}task_id", "must have at most 100 characters"))
    if "\0" in message.task_id:
        found.append(Violation(f"{at}task_id", "must not contain the character NUL"))
    if message.wait_ms > 20000:
        found.append(Violation(f"{at}wait_ms", "must be at most 20000"))
    return found


def check_list_tasks_request(message: ListTasksRequest, at: str = "") -> list[Violation]:
    """Check the rules of ListTasksRequest in types.yaml."""
    found: list[Violation] = []
    for index, item in enumerate(message.status):
        if item not in (QUEUED, EXECUTING, COMPLETED, FAILED, CANCELLED, DEAD_LETTER):
            found.append(
                Violation(
                    f"{at}status[{index}]",
                    "must be one of QUEUED, EXECUTING, COMPLETED, FAILED, CANCELLED, DEAD_LETTER",
                )
            )
    if len(message.task_type) > 200:
        found.append(Violation(f"{at}task_type", "must have at most 200 characters"))
    if "\0" in message.task_type:
        found.append(Violation(f"{at}task_type", "must not contain the character NUL"))
    if message.priority not in (PRIORITY_UNSPECIFIED, HIGH, MEDIUM, LOW):
        found.append(Violation(f"{at}priority", "must be one of PRIORITY_UNSPECIFIED, HIGH, MEDIUM, LOW"))
    if not PATTERNS["([0-9]{1,16}~[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?"].fullmatch(message.page_token):
        found.append(
            Violation(
                f"{at}page_token", "must match ([0-9]{1,16}~[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?"
            )
        )
    return found


def settle_list_tasks_request(message: ListTasksRequest) -> None:
    """Apply the defaults, clamps and cuts of ListTasksRequest in types.yaml."""
    message.page_size = min(message.page_size or 50, 200)


def check_cancel_task_request(message: CancelTaskRequest, at: str = "") -> list[Violation]:
    """Check the rules of CancelTaskRequest in types.yaml."""
    found: list[Violation] = []
    if not message.task_id:
        found.append(Violation(f"{at}task_id", "must not be empty"))
    if len(message.task_id) > 100:
        found.append(Violation(f"{at}task_id", "must have at most 100 characters"))
    if "\0" in message.task_id:
        found.append(Violation(f"{at}task_id", "must not contain the character NUL"))
    return found


def check_register_worker_request(message: RegisterWorkerRequest, at: str = "") -> list[Violation]:
    """Check the rules of RegisterWorkerRequest in types.yaml."""
    found: list[Violation] = []
    if len(message.capabilities) > 32:
        found.append(Violation(f"{at}capabilities", "must have at most 32 elements"))
    for index, item in enumerate(message.capabilities):
        if not item:
            found.append(Violation(f"{at}capabilities[{index}]", "must not be empty"))
        if len(item) > 100:
            found.append(Violation(f"{at}capabilities[{index}]", "must have at most 100 characters"))
        if "\0" in item:
            found.append(Violation(f"{at}capabilities[{index}]", "must not contain the character NUL"))
    if message.HasField("capacity") and message.capacity < 1:
        found.append(Violation(f"{at}capacity", "must be at least 1"))
    if message.HasField("capacity") and message.capacity > 1000:
        found.append(Violation(f"{at}capacity", "must be at most 1000"))
    if message.HasField("version") and len(message.version) > 100:
        found.append(Violation(f"{at}version", "must have at most 100 characters"))
    if message.HasField("version") and "\0" in message.version:
        found.append(Violation(f"{at}version", "must not contain the character NUL"))
    return found


def check_poll_tasks_request(message: PollTasksRequest, at: str = "") -> list[Violation]:
    """Check the rules of PollTasksRequest in types.yaml."""
    found: list[Violation] = []
    if not is_uuid4(message.worker_id):
        found.append(Violation(f"{at}worker_id", "must be the lowercase text of a version 4 UUID"))
    if len(message.capabilities) > 32:
        found.append(Violation(f"{at}capabilities", "must have at most 32 elements"))
    for index, item in enumerate(message.capabilities):
        if not item:
            found.append(Violation(f"{at}capabilities[{index}]", "must not be empty"))
        if len(item) > 100:
            found.append(Violation(f"{at}capabilities[{index}]", "must have at most 100 characters"))
        if "\0" in item:
            found.append(Violation(f"{at}capabilities[{index}]", "must not contain the character NUL"))
    if message.wait_ms > 20000:
        found.append(Violation(f"{at}wait_ms", "must be at most 20000"))
    return found


def check_report_result_request(message: ReportResultRequest, at: str = "") -> list[Violation]:
    """Check the rules of ReportResultRequest in types.yaml."""
    found: list[Violation] = []
    if not is_uuid4(message.worker_id):
        found.append(Violation(f"{at}worker_id", "must be the lowercase text of a version 4 UUID"))
    if not is_uuid4(message.task_id):
        found.append(Violation(f"{at}task_id", "must be the lowercase text of a version 4 UUID"))
    if message.HasField("attempt") and message.attempt < 1:
        found.append(Violation(f"{at}attempt", "must be at least 1"))
    if message.status not in (QUEUED, COMPLETED, FAILED):
        found.append(Violation(f"{at}status", "must be one of QUEUED, COMPLETED, FAILED"))
    if message.HasField("result") and len(message.result.encode()) > 1048576:
        found.append(Violation(f"{at}result", "must have at most 1048576 bytes"))
    if message.HasField("result") and (problem := json_problem(message.result, storable=True)):
        found.append(Violation(f"{at}result", problem))
    if message.HasField("error"):
        found += check_task_error(message.error, f"{at}error.")
    return found


def settle_report_result_request(message: ReportResultRequest) -> None:
    """Apply the defaults, clamps and cuts of ReportResultRequest in types.yaml."""
    settle_task_error(message.error)


def check_heartbeat_request(message: HeartbeatRequest, at: str = "") -> list[Violation]:
    """Check the rules of HeartbeatRequest in types.yaml."""
    found: list[Violation] = []
    if not is_uuid4(message.worker_id):
        found.append(Violation(f"{at}worker_id", "must be the lowercase text of a version 4 UUID"))
    if message.status not in (WORKER_STATUS_UNSPECIFIED, ACTIVE, DRAINING):
        found.append(Violation(f"{at}status", "must be one of WORKER_STATUS_UNSPECIFIED, ACTIVE, DRAINING"))
    if len(message.running) > 1000:
        found.append(Violation(f"{at}running", "must have at most 1000 elements"))
    for index, item in enumerate(message.running):
        if not is_uuid4(item):
            found.append(Violation(f"{at}running[{index}]", "must be the lowercase text of a version 4 UUID"))
    return found


def settle_heartbeat_request(message: HeartbeatRequest) -> None:
    """Apply the defaults, clamps and cuts of HeartbeatRequest in types.yaml."""
    if not message.status:
        message.status = ACTIVE


def check_extend_task_request(message: ExtendTaskRequest, at: str = "") -> list[Violation]:
    """Check the rules of ExtendTaskRequest in types.yaml."""
    found: list[Violation] = []
    if not is_uuid4(message.worker_id):
        found.append(Violation(f"{at}worker_id", "must be the lowercase text of a version 4 UUID"))
    if not is_uuid4(message.task_id):
        found.append(Violation(f"{at}task_id", "must be the lowercase text of a version 4 UUID"))
    if message.attempt < 1:
        found.append(Violation(f"{at}attempt", "must be at least 1"))
    if message.seconds < 1:
        found.append(Violation(f"{at}seconds", "must be at least 1"))
    if message.seconds > 86400:
        found.append(Violation(f"{at}seconds", "must be at most 86400"))
    return found


def check_report_progress_request(message: ReportProgressRequest, at: str = "") -> list[Violation]:
    """Check the rules of ReportProgressRequest in types.yaml."""
    found: list[Violation] = []
    if not is_uuid4(message.worker_id):
        found.append(Violation(f"{at}worker_id", "must be the lowercase text of a version 4 UUID"))
    if not is_uuid4(message.task_id):
        found.append(Violation(f"{at}task_id", "must be the lowercase text of a version 4 UUID"))
    if message.attempt < 1:
        found.append(Violation(f"{at}attempt", "must be at least 1"))
    if problem := json_problem(message.progress, must_be_object=True, storable=True):
        found.append(Violation(f"{at}progress", problem))
    return found


def check_task_result(message: TaskResult, at: str = "") -> list[Violation]:
    """Check the rules of TaskResult in types.yaml."""
    found: list[Violation] = []
    if not is_uuid4(message.task_id):
        found.append(Violation(f"{at}task_id", "must be the lowercase text of a version 4 UUID"))
    if message.attempt < 1:
        found.append(Violation(f"{at}attempt", "must be at least 1"))
    if message.status not in (QUEUED, COMPLETED, FAILED):
        found.append(Violation(f"{at}status", "must be one of QUEUED, COMPLETED, FAILED"))
    if message.HasField("result") and len(message.result.encode()) > 1048576:
        found.append(Violation(f"{at}result", "must have at most 1048576 bytes"))
    if message.HasField("result") and (problem := json_problem(message.result, storable=True)):
        found.append(Violation(f"{at}result", problem))
    if message.HasField("error"):
        found += check_task_error(message.error, f"{at}error.")
    return found


def settle_task_result(message: TaskResult) -> None:
    """Apply the defaults, clamps and cuts of TaskResult in types.yaml."""
    settle_task_error(message.error)


def check_exchange_tasks_request(message: ExchangeTasksRequest, at: str = "") -> list[Violation]:
    """Check the rules of ExchangeTasksRequest in types.yaml."""
    found: list[Violation] = []
    if not is_uuid4(message.worker_id):
        found.append(Violation(f"{at}worker_id", "must be the lowercase text of a version 4 UUID"))
    if len(message.results) > 1000:
        found.append(Violation(f"{at}results", "must have at most 1000 elements"))
    for index, inner in enumerate(message.results):
        found += check_task_result(inner, f"{at}results[{index}].")
    if len(message.capabilities) > 32:
        found.append(Violation(f"{at}capabilities", "must have at most 32 elements"))
    for index, item in enumerate(message.capabilities):
        if not item:
            found.append(Violation(f"{at}capabilities[{index}]", "must not be empty"))
        if len(item) > 100:
            found.append(Violation(f"{at}capabilities[{index}]", "must have at most 100 characters"))
        if "\0" in item:
            found.append(Violation(f"{at}capabilities[{index}]", "must not contain the character NUL"))
    if message.wait_ms > 20000:
        found.append(Violation(f"{at}wait_ms", "must be at most 20000"))
    return found


def settle_exchange_tasks_request(message: ExchangeTasksRequest) -> None:
    """Apply the defaults, clamps and cuts of ExchangeTasksRequest in types.yaml."""
    for inner in message.results:
        settle_task_result(inner)


def check_deregister_worker_request(message: DeregisterWorkerRequest, at: str = "") -> list[Violation]:
    """Check the rules of DeregisterWorkerRequest in types.yaml."""
    found: list[Violation] = []
    if not message.worker_id:
        found.append(Violation(f"{at}worker_id", "must not be empty"))
    if len(message.worker_id) > 100:
        found.append(Violation(f"{at}worker_id", "must have at most 100 characters"))
    if "\0" in message.worker_id:
        found.append(Violation(f"{at}worker_id", "must not contain the character NUL"))
    return found


def check_list_dead_letters_request(message: ListDeadLettersRequest, at: str = "") -> list[Violation]:
    """Check the rules of ListDeadLettersRequest in types.yaml."""
    found: list[Violation] = []
    if len(message.task_type) > 200:
        found.append(Violation(f"{at}task_type", "must have at most 200 characters"))
    if "\0" in message.task_type:
        found.append(Violation(f"{at}task_type", "must not contain the character NUL"))
    if not PATTERNS["([0-9]{1,16}~[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?"].fullmatch(message.page_token):
        found.append(
            Violation(
                f"{at}page_token", "must match ([0-9]{1,16}~[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?"
            )
        )
    return found


def settle_list_dead_letters_request(message: ListDeadLettersRequest) -> None:
    """Apply the defaults, clamps and cuts of ListDeadLettersRequest in types.yaml."""
    message.page_size = min(message.page_size or 50, 200)


def check_replay_dead_letter_request(message: ReplayDeadLetterRequest, at: str = "") -> list[Violation]:
    """Check the rules of ReplayDeadLetterRequest in types.yaml."""
    found: list[Violation] = []
    if not is_uuid4(message.task_id):
        found.append(Violation(f"{at}task_id", "must be the lowercase text of a version 4 UUID"))
    return found


def check_replay_dead_letters_request(message: ReplayDeadLettersRequest, at: str = "") -> list[Violation]:
    """Check the rules of ReplayDeadLettersRequest in types.yaml."""
    found: list[Violation] = []
    if len(message.task_type) > 200:
        found.append(Violation(f"{at}task_type", "must have at most 200 characters"))
    if "\0" in message.task_type:
        found.append(Violation(f"{at}task_type", "must not contain the character NUL"))
    if message.most and message.most < 1:
        found.append(Violation(f"{at}most", "must be at least 1"))
    if message.most and message.most > 10000:
        found.append(Violation(f"{at}most", "must be at most 10000"))
    return found


def settle_replay_dead_letters_request(message: ReplayDeadLettersRequest) -> None:
    """Apply the defaults, clamps and cuts of ReplayDeadLettersRequest in types.yaml."""
    if not message.most:
        message.most = 1000


def check_purge_dead_letter_request(message: PurgeDeadLetterRequest, at: str = "") -> list[Violation]:
    """Check the rules of PurgeDeadLetterRequest in types.yaml."""
    found: list[Violation] = []
    if not message.task_id:
        found.append(Violation(f"{at}task_id", "must not be empty"))
    if len(message.task_id) > 100:
        found.append(Violation(f"{at}task_id", "must have at most 100 characters"))
    if "\0" in message.task_id:
        found.append(Violation(f"{at}task_id", "must not contain the character NUL"))
    return found


def check_purge_dead_letters_request(message: PurgeDeadLettersRequest, at: str = "") -> list[Violation]:
    """Check the rules of PurgeDeadLettersRequest in types.yaml."""
    found: list[Violation] = []
    if not (message.all or message.older_than_seconds):
        found.append(Violation(f"{at}all", "must be true unless older_than_seconds is given"))
    return found


def check_pause_queue_request(message: PauseQueueRequest, at: str = "") -> list[Violation]:
    """Check the rules of PauseQueueRequest in types.yaml."""
    found: list[Violation] = []
    if message.priority not in (HIGH, MEDIUM, LOW):
        found.append(Violation(f"{at}priority", "must be one of HIGH, MEDIUM, LOW"))
    return found


def check_resume_queue_request(message: ResumeQueueRequest, at: str = "") -> list[Violation]:
    """Check the rules of ResumeQueueRequest in types.yaml."""
    found: list[Violation] = []
    if message.priority not in (HIGH, MEDIUM, LOW):
        found.append(Violation(f"{at}priority", "must be one of HIGH, MEDIUM, LOW"))
    return found


def check_list_workers_request(message: ListWorkersRequest, at: str = "") -> list[Violation]:
    """Check the rules of ListWorkersRequest in types.yaml."""
    found: list[Violation] = []
    for index, item in enumerate(message.status):
        if item not in (ACTIVE, DRAINING, DEAD):
            found.append(Violation(f"{at}status[{index}]", "must be one of ACTIVE, DRAINING, DEAD"))
    return found


def check_get_task_history_request(message: GetTaskHistoryRequest, at: str = "") -> list[Violation]:
    """Check the rules of GetTaskHistoryRequest in types.yaml."""
    found: list[Violation] = []
    if not is_uuid4(message.task_id):
        found.append(Violation(f"{at}task_id", "must be the lowercase text of a version 4 UUID"))
    return found
