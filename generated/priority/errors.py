"""Conditions of priority: the exceptions that handlers raise, and their codes for callers.

Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from runtime.call.conditions import Condition
from runtime.model.system import Upstream


class MalformedJson(Condition):
    """The body cannot be read as JSON."""

    code = "malformed_json"
    grpc = "INVALID_ARGUMENT"
    http = 400
    retry = "never"

    def __init__(self, *, problem: str) -> None:
        super().__init__(f"the body is no JSON: {problem}", problem=problem)


class ValidationError(Condition):
    """A field of the request breaks one of its rules."""

    code = "validation_error"
    grpc = "INVALID_ARGUMENT"
    http = 400
    retry = "never"

    def __init__(self, *, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}", field=field, problem=problem)


class Unauthenticated(Condition):
    """No proof of the caller or a bad one."""

    code = "unauthenticated"
    grpc = "UNAUTHENTICATED"
    http = 401
    retry = "never"

    def __init__(self, *, method: str, problem: str) -> None:
        super().__init__(f"{method} needs a proven caller: {problem}", method=method, problem=problem)


class Forbidden(Condition):
    """A proven caller outside the matrix or an actor outside the lifecycle."""

    code = "forbidden"
    grpc = "PERMISSION_DENIED"
    http = 403
    retry = "never"

    def __init__(self, *, caller: str, method: str, problem: str) -> None:
        super().__init__(
            f"{caller} may not do {method}: {problem}", caller=caller, method=method, problem=problem
        )


class TaskNotFound(Condition):
    """No task has this id."""

    code = "task_not_found"
    grpc = "NOT_FOUND"
    http = 404
    retry = "never"

    def __init__(self, *, task_id: str) -> None:
        super().__init__(f"no task {task_id}", task_id=task_id)


class WorkerNotFound(Condition):
    """No worker has this id, or it has left."""

    code = "worker_not_found"
    grpc = "NOT_FOUND"
    http = 404
    retry = "never"

    def __init__(self, *, worker_id: str) -> None:
        super().__init__(f"no worker {worker_id}", worker_id=worker_id)


class RouteNotFound(Condition):
    """There is no such path."""

    code = "route_not_found"
    grpc = "UNIMPLEMENTED"
    http = 404
    retry = "never"

    def __init__(self, *, path: str) -> None:
        super().__init__(f"nothing is at {path}", path=path)


class MethodNotAllowed(Condition):
    """The path exists and takes other methods."""

    code = "method_not_allowed"
    grpc = "UNIMPLEMENTED"
    http = 405
    retry = "never"

    def __init__(self, *, path: str, method: str, allowed: str) -> None:
        super().__init__(
            f"{path} has no {method}; it has {allowed}", path=path, method=method, allowed=allowed
        )


class IllegalTransition(Condition):
    """The lifecycle has no such edge."""

    code = "illegal_transition"
    grpc = "FAILED_PRECONDITION"
    http = 409
    retry = "never"

    def __init__(self, *, entity: str, from_state: str, to_state: str) -> None:
        super().__init__(
            f"a {entity} never goes from {from_state} to {to_state}",
            entity=entity,
            from_state=from_state,
            to_state=to_state,
        )


class IdempotencyMismatch(Condition):
    """The key is known and something of the task differs."""

    code = "idempotency_mismatch"
    grpc = "ALREADY_EXISTS"
    http = 409
    retry = "never"

    def __init__(self) -> None:
        super().__init__("this idempotency key was used for another task; use a new key")


class TaskTerminal(Condition):
    """The task has ended."""

    code = "task_terminal"
    grpc = "FAILED_PRECONDITION"
    http = 409
    retry = "never"

    def __init__(self, *, task_id: str, status: str) -> None:
        super().__init__(
            f"task {task_id} is {status} and cannot be cancelled", task_id=task_id, status=status
        )


class TaskNotDead(Condition):
    """Only a dead letter is replayed or purged."""

    code = "task_not_dead"
    grpc = "FAILED_PRECONDITION"
    http = 409
    retry = "never"

    def __init__(self, *, task_id: str, status: str) -> None:
        super().__init__(f"task {task_id} is {status} and no dead letter", task_id=task_id, status=status)


class StaleAttempt(Condition):
    """The task is not being run, or by another worker, or in a later attempt. What was said of it is
    dropped."""

    code = "stale_attempt"
    grpc = "ABORTED"
    http = 409
    retry = "never"

    def __init__(self, *, holder: str, key: str) -> None:
        super().__init__(f"{holder} does not run {key} in this attempt any more", holder=holder, key=key)


class WorkerBusy(Condition):
    """A worker leaves when it holds no task."""

    code = "worker_busy"
    grpc = "FAILED_PRECONDITION"
    http = 409
    retry = "never"

    def __init__(self, *, key: str) -> None:
        super().__init__(f"worker {key} still holds tasks", key=key)


class WorkerDead(Condition):
    """The worker was not heard of for too long. Its id is never used again."""

    code = "worker_dead"
    grpc = "FAILED_PRECONDITION"
    http = 410
    retry = "never"

    def __init__(self, *, worker_id: str) -> None:
        super().__init__(f"worker {worker_id} was given up; register anew", worker_id=worker_id)


class PayloadTooLarge(Condition):
    """The body is larger than MAX_BODY_BYTES."""

    code = "payload_too_large"
    grpc = "RESOURCE_EXHAUSTED"
    http = 413
    retry = "never"

    def __init__(self, *, limit: str) -> None:
        super().__init__(f"the body has more than {limit} bytes", limit=limit)


class UnsupportedMediaType(Condition):
    """The body is of another type."""

    code = "unsupported_media_type"
    grpc = "INVALID_ARGUMENT"
    http = 415
    retry = "never"

    def __init__(self, *, media_type: str) -> None:
        super().__init__(f"the body must be application/json, not {media_type}", media_type=media_type)


class QueueFull(Condition):
    """As many tasks wait as MAX_QUEUE_DEPTH allows, or Redis has no memory left. Nothing was stored."""

    code = "queue_full"
    grpc = "RESOURCE_EXHAUSTED"
    http = 429
    retry = "with_backoff"
    retry_after_s = 5

    def __init__(self) -> None:
        super().__init__("there is no room for more tasks now")


class InternalError(Condition):
    """A fault of the service; its log has the details under the correlation id."""

    code = "internal_error"
    grpc = "INTERNAL"
    http = 500
    retry = "with_care"

    def __init__(self, *, correlation_id: str) -> None:
        super().__init__(
            f"unexpected failure, correlation id {correlation_id}", correlation_id=correlation_id
        )


class ServiceUnavailable(Condition):
    """Nothing is known to be stored; a repeat under the same key is safe."""

    code = "service_unavailable"
    grpc = "UNAVAILABLE"
    http = 503
    retry = "with_backoff"
    retry_after_s = 1

    def __init__(self) -> None:
        super().__init__("the service cannot reach its store now")


class UpstreamUnavailable(Condition):
    """A component that the answer needs is not reachable in time."""

    code = "upstream_unavailable"
    grpc = "UNAVAILABLE"
    http = 503
    retry = "with_backoff"
    retry_after_s = 1

    def __init__(self, *, service: str) -> None:
        super().__init__(f"{service} is not available", service=service)


class DeadlineExceeded(Condition):
    """The caller's deadline passed first."""

    code = "deadline_exceeded"
    grpc = "DEADLINE_EXCEEDED"
    http = 504
    retry = "if_idempotent"

    def __init__(self, *, method: str) -> None:
        super().__init__(f"{method} ran out of time", method=method)


CONDITIONS: Final[Mapping[str, type[Condition]]] = {
    "malformed_json": MalformedJson,
    "validation_error": ValidationError,
    "unauthenticated": Unauthenticated,
    "forbidden": Forbidden,
    "task_not_found": TaskNotFound,
    "worker_not_found": WorkerNotFound,
    "route_not_found": RouteNotFound,
    "method_not_allowed": MethodNotAllowed,
    "illegal_transition": IllegalTransition,
    "idempotency_mismatch": IdempotencyMismatch,
    "task_terminal": TaskTerminal,
    "task_not_dead": TaskNotDead,
    "stale_attempt": StaleAttempt,
    "worker_busy": WorkerBusy,
    "worker_dead": WorkerDead,
    "payload_too_large": PayloadTooLarge,
    "unsupported_media_type": UnsupportedMediaType,
    "queue_full": QueueFull,
    "internal_error": InternalError,
    "service_unavailable": ServiceUnavailable,
    "upstream_unavailable": UpstreamUnavailable,
    "deadline_exceeded": DeadlineExceeded,
}
"""Every condition with a status code."""

ROLES: Final[Mapping[str, type[Condition]]] = {
    "malformed_body": MalformedJson,
    "invalid_request": ValidationError,
    "unauthenticated": Unauthenticated,
    "permission_denied": Forbidden,
    "route_not_found": RouteNotFound,
    "method_not_allowed": MethodNotAllowed,
    "illegal_transition": IllegalTransition,
    "lease_lost": StaleAttempt,
    "still_held": WorkerBusy,
    "body_too_large": PayloadTooLarge,
    "unsupported_media_type": UnsupportedMediaType,
    "store_full": QueueFull,
    "unexpected": InternalError,
    "store_unavailable": ServiceUnavailable,
    "upstream_unavailable": UpstreamUnavailable,
    "deadline_exceeded": DeadlineExceeded,
}
"""The conditions that the engine itself raises."""

SOFT_OUTCOMES: Final[Mapping[str, Mapping[str, object]]] = {}
"""Outcomes of calls that succeed, and the response fields that show them."""

UNKNOWN_TASK_TYPE: Final = "UNKNOWN_TASK_TYPE"
"""No function is registered for this type."""

TIMED_OUT: Final = "TIMED_OUT"
"""The function took longer than its time limit."""

RESULT_NOT_JSON: Final = "RESULT_NOT_JSON"
"""The function returned something that JSON cannot hold."""

RESULT_TOO_LARGE: Final = "RESULT_TOO_LARGE"
"""The function returned more than is kept."""

UPSTREAM: Final = Upstream(
    pass_through=frozenset(()),
    unavailable=frozenset(("UNAVAILABLE", "DEADLINE_EXCEEDED")),
)
"""The mapping of errors of upstream components to errors for our own caller."""
