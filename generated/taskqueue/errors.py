"""Conditions of taskqueue: the exceptions that handlers raise, and their codes for callers.

Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from runtime.call.conditions import Condition
from runtime.model.system import Upstream


class InvalidRequest(Condition):
    """A request field breaks one of its rules."""

    code = "invalid_request"
    grpc = "INVALID_ARGUMENT"
    http = 400
    retry = "never"

    def __init__(self, *, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}", field=field, problem=problem)


class IllegalTransition(Condition):
    """The lifecycle has no such edge."""

    code = "illegal_transition"
    grpc = "INVALID_ARGUMENT"
    http = 400
    retry = "never"

    def __init__(self, *, entity: str, from_state: str, to_state: str) -> None:
        super().__init__(
            f"a {entity} never goes from {from_state} to {to_state}",
            entity=entity,
            from_state=from_state,
            to_state=to_state,
        )


class Unauthenticated(Condition):
    """No proof of the caller or a bad one."""

    code = "unauthenticated"
    grpc = "UNAUTHENTICATED"
    http = 401
    retry = "never"

    def __init__(self, *, method: str, problem: str) -> None:
        super().__init__(f"{method} needs a proven caller: {problem}", method=method, problem=problem)


class PermissionDenied(Condition):
    """A proven caller outside the matrix, or outside a permission's condition."""

    code = "permission_denied"
    grpc = "PERMISSION_DENIED"
    http = 403
    retry = "never"

    def __init__(self, *, caller: str, method: str, problem: str) -> None:
        super().__init__(
            f"{caller} may not call {method}: {problem}", caller=caller, method=method, problem=problem
        )


class JobNotFound(Condition):
    """No record has this id."""

    code = "job_not_found"
    grpc = "NOT_FOUND"
    http = 404
    retry = "never"

    def __init__(self, *, job_id: str) -> None:
        super().__init__(f"no job {job_id}", job_id=job_id)


class RequestKeyReused(Condition):
    """The key is known and the spec differs."""

    code = "request_key_reused"
    grpc = "FAILED_PRECONDITION"
    http = 409
    retry = "never"

    def __init__(self, *, client_request_id: str) -> None:
        super().__init__(
            f"client_request_id {client_request_id} was used with another spec; use a new key",
            client_request_id=client_request_id,
        )


class CapacityExhausted(Condition):
    """Lack of capacity that passes. No method raises it in this version."""

    code = "capacity_exhausted"
    grpc = "RESOURCE_EXHAUSTED"
    http = 429
    retry = "with_backoff"

    def __init__(self, *, what: str) -> None:
        super().__init__(f"no capacity for {what} now", what=what)


class SubmitNotAccepted(Condition):
    """Nothing was accepted; a retry with the same key is safe."""

    code = "submit_not_accepted"
    grpc = "UNAVAILABLE"
    http = 503
    retry = "with_backoff"

    def __init__(self) -> None:
        super().__init__("the job could not be enqueued")


class CancelNotCompleted(Condition):
    """A step of the queued cancel failed and the job was put back."""

    code = "cancel_not_completed"
    grpc = "UNAVAILABLE"
    http = 503
    retry = "with_backoff"

    def __init__(self, *, job_id: str) -> None:
        super().__init__(f"the cancellation of {job_id} could not be completed", job_id=job_id)


class ResultMissing(Condition):
    """The record is terminal and no matching envelope exists."""

    code = "result_missing"
    grpc = "UNAVAILABLE"
    http = 503
    retry = "with_backoff"

    def __init__(self, *, job_id: str, status: str) -> None:
        super().__init__(f"{job_id} is {status} but its result is missing", job_id=job_id, status=status)


class UpstreamUnavailable(Condition):
    """A component that the answer needs is not reachable in time."""

    code = "upstream_unavailable"
    grpc = "UNAVAILABLE"
    http = 503
    retry = "with_backoff"

    def __init__(self, *, service: str) -> None:
        super().__init__(f"{service} is not available", service=service)


class StorageUnavailable(Condition):
    """Nothing is known to be stored; a repeat under the same key is safe."""

    code = "storage_unavailable"
    grpc = "UNAVAILABLE"
    http = 503
    retry = "with_backoff"

    def __init__(self) -> None:
        super().__init__("what is kept of jobs cannot be read or written now")


class DeadlineExceeded(Condition):
    """The caller's deadline passed first."""

    code = "deadline_exceeded"
    grpc = "DEADLINE_EXCEEDED"
    http = 504
    retry = "if_idempotent"

    def __init__(self, *, method: str) -> None:
        super().__init__(f"{method} ran out of time", method=method)


class Unexpected(Condition):
    """A fault of the service; its log has the details under the correlation id."""

    code = "unexpected"
    grpc = "INTERNAL"
    http = 500
    retry = "with_care"

    def __init__(self, *, correlation_id: str) -> None:
        super().__init__(
            f"unexpected failure, correlation id {correlation_id}", correlation_id=correlation_id
        )


CONDITIONS: Final[Mapping[str, type[Condition]]] = {
    "invalid_request": InvalidRequest,
    "illegal_transition": IllegalTransition,
    "unauthenticated": Unauthenticated,
    "permission_denied": PermissionDenied,
    "job_not_found": JobNotFound,
    "request_key_reused": RequestKeyReused,
    "capacity_exhausted": CapacityExhausted,
    "submit_not_accepted": SubmitNotAccepted,
    "cancel_not_completed": CancelNotCompleted,
    "result_missing": ResultMissing,
    "upstream_unavailable": UpstreamUnavailable,
    "storage_unavailable": StorageUnavailable,
    "deadline_exceeded": DeadlineExceeded,
    "unexpected": Unexpected,
}
"""Every condition with a status code."""

ROLES: Final[Mapping[str, type[Condition]]] = {
    "invalid_request": InvalidRequest,
    "illegal_transition": IllegalTransition,
    "unauthenticated": Unauthenticated,
    "permission_denied": PermissionDenied,
    "upstream_unavailable": UpstreamUnavailable,
    "store_unavailable": StorageUnavailable,
    "deadline_exceeded": DeadlineExceeded,
    "unexpected": Unexpected,
}
"""The conditions that the engine itself raises."""

SOFT_OUTCOMES: Final[Mapping[str, Mapping[str, object]]] = {
    "result_not_ready": {"result_ready": False},
    "already_terminal": {"already_terminal": True},
    "cancel_repeated": {"accepted": True},
    "transition_not_applied": {"applied": False},
    "flag_not_applied": {"applied": False},
    "delete_not_applied": {"deleted": False},
    "enqueue_refused": {"accepted": False},
    "queue_empty": {"found": False},
    "not_in_queue": {"removed": False},
    "no_work": {"assigned": False},
    "report_refused": {"accepted": False},
    "result_conflict": {"already_exists": True},
    "result_absent": {"found": False},
}
"""Outcomes of calls that succeed, and the response fields that show them."""

UNKNOWN_FAILURE: Final = "UNKNOWN_FAILURE"
"""Nobody gave a reason."""

OUTPUT_TOO_LARGE: Final = "OUTPUT_TOO_LARGE"
"""The output is larger than MAX_OUTPUT_BYTES; its bytes are not kept."""

WORKER_LOST: Final = "WORKER_LOST"
"""The worker was not heard of for its timeout while it ran the job."""

WORKER_CANCELED: Final = "WORKER_CANCELED"
"""The worker gave the job up without being asked to."""

ADOPTED_STORED_RESULT: Final = "ADOPTED_STORED_RESULT"
"""An envelope that said FAILED was stored before the job ended."""

SIMULATED_FAILURE: Final = "SIMULATED_FAILURE"
"""The built-in job type `fail` failed on purpose."""

JOB_ERROR: Final = "JOB_ERROR"
"""The job function broke; the text behind it says how."""

UPSTREAM: Final = Upstream(
    pass_through=frozenset(("INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION")),
    unavailable=frozenset(("UNAVAILABLE", "DEADLINE_EXCEEDED")),
)
"""The mapping of errors of upstream components to errors for our own caller."""
