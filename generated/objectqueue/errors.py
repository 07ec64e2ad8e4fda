"""Conditions of objectqueue: the exceptions that handlers raise, and their codes for callers.

Generated from spec/objectqueue (sha256:bf30565a014f0db2). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from runtime.call.conditions import Condition
from runtime.model.system import Upstream


class InvalidRequest(Condition):
    """A field of the request breaks one of its rules."""

    code = "invalid_request"
    grpc = "INVALID_ARGUMENT"
    http = 400
    retry = "never"

    def __init__(self, *, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}", field=field, problem=problem)


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


class Unauthenticated(Condition):
    """No proof of the caller or a bad one."""

    code = "unauthenticated"
    grpc = "UNAUTHENTICATED"
    http = 401
    retry = "never"

    def __init__(self, *, method: str, problem: str) -> None:
        super().__init__(f"{method} needs a proven caller: {problem}", method=method, problem=problem)


class PermissionDenied(Condition):
    """A caller outside the matrix or an actor outside the lifecycle."""

    code = "permission_denied"
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


class TaskExists(Condition):
    """Another task has this id."""

    code = "task_exists"
    grpc = "ALREADY_EXISTS"
    http = 409
    retry = "never"

    def __init__(self, *, task_id: str) -> None:
        super().__init__(f"there is a task {task_id} already", task_id=task_id)


class TaskUnreadable(Condition):
    """Somebody wrote something else under the key of the task."""

    code = "task_unreadable"
    grpc = "DATA_LOSS"
    http = 500
    retry = "never"

    def __init__(self, *, task_id: str, problem: str) -> None:
        super().__init__(
            f"the object of task {task_id} is no task: {problem}", task_id=task_id, problem=problem
        )


class KeyReused(Condition):
    """The same idempotency key, with another wish."""

    code = "key_reused"
    grpc = "ALREADY_EXISTS"
    http = 409
    retry = "never"

    def __init__(self, *, field: str, key: str, entity: str) -> None:
        super().__init__(
            f"{field} {key} was used before, for another {entity}", field=field, key=key, entity=entity
        )


class NotAllowedNow(Condition):
    """The state of the task does not allow it."""

    code = "not_allowed_now"
    grpc = "FAILED_PRECONDITION"
    http = 409
    retry = "never"

    def __init__(self, *, task_id: str, status: str, wanted: str) -> None:
        super().__init__(
            f"task {task_id} is {status}, {wanted}", task_id=task_id, status=status, wanted=wanted
        )


class TaskChanged(Condition):
    """Another writer was first. Nothing was written."""

    code = "task_changed"
    grpc = "ABORTED"
    http = 409
    retry = "with_care"

    def __init__(self, *, task_id: str, status: str) -> None:
        super().__init__(
            f"somebody else changed task {task_id} at the same time; it is {status} now",
            task_id=task_id,
            status=status,
        )


class HistoryUnavailable(Condition):
    """Versioning is off and was allowed to be."""

    code = "history_unavailable"
    grpc = "FAILED_PRECONDITION"
    http = 409
    retry = "never"

    def __init__(self) -> None:
        super().__init__("there is no history: the bucket keeps no versions")


class LeaseLost(Condition):
    """The lease ended or another worker has the task."""

    code = "lease_lost"
    grpc = "ABORTED"
    http = 409
    retry = "never"

    def __init__(self, *, holder: str, key: str) -> None:
        super().__init__(f"{holder} does not have task {key} any more", holder=holder, key=key)


class StoreUnavailable(Condition):
    """The store does not answer. Nothing is known of what was to be written."""

    code = "store_unavailable"
    grpc = "UNAVAILABLE"
    http = 503
    retry = "with_backoff"

    def __init__(self) -> None:
        super().__init__("the bucket cannot be reached now")


class StoreRefused(Condition):
    """The store refuses: there is no such bucket, or the credentials do not do."""

    code = "store_refused"
    grpc = "PERMISSION_DENIED"
    http = 403
    retry = "never"

    def __init__(self, *, problem: str) -> None:
        super().__init__(f"{problem}", problem=problem)


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


class Unexpected(Condition):
    """A fault of the program; its log has the details under the correlation id."""

    code = "unexpected"
    grpc = "INTERNAL"
    http = 500
    retry = "with_care"

    def __init__(self, *, correlation_id: str) -> None:
        super().__init__(
            f"unexpected failure, correlation id {correlation_id}", correlation_id=correlation_id
        )


class UpstreamUnavailable(Condition):
    """A component that the answer needs is not reachable."""

    code = "upstream_unavailable"
    grpc = "UNAVAILABLE"
    http = 503
    retry = "with_backoff"

    def __init__(self, *, service: str) -> None:
        super().__init__(f"{service} is not available", service=service)


class DeadlineExceeded(Condition):
    """The time for an answer was over first."""

    code = "deadline_exceeded"
    grpc = "DEADLINE_EXCEEDED"
    http = 504
    retry = "if_idempotent"

    def __init__(self, *, method: str) -> None:
        super().__init__(f"{method} ran out of time", method=method)


CONDITIONS: Final[Mapping[str, type[Condition]]] = {
    "invalid_request": InvalidRequest,
    "illegal_transition": IllegalTransition,
    "unauthenticated": Unauthenticated,
    "permission_denied": PermissionDenied,
    "task_not_found": TaskNotFound,
    "task_exists": TaskExists,
    "task_unreadable": TaskUnreadable,
    "key_reused": KeyReused,
    "not_allowed_now": NotAllowedNow,
    "task_changed": TaskChanged,
    "history_unavailable": HistoryUnavailable,
    "lease_lost": LeaseLost,
    "store_unavailable": StoreUnavailable,
    "store_refused": StoreRefused,
    "route_not_found": RouteNotFound,
    "method_not_allowed": MethodNotAllowed,
    "unexpected": Unexpected,
    "upstream_unavailable": UpstreamUnavailable,
    "deadline_exceeded": DeadlineExceeded,
}
"""Every condition with a status code."""

ROLES: Final[Mapping[str, type[Condition]]] = {
    "invalid_request": InvalidRequest,
    "illegal_transition": IllegalTransition,
    "unauthenticated": Unauthenticated,
    "permission_denied": PermissionDenied,
    "key_reused": KeyReused,
    "lease_lost": LeaseLost,
    "store_unavailable": StoreUnavailable,
    "store_refused": StoreRefused,
    "route_not_found": RouteNotFound,
    "method_not_allowed": MethodNotAllowed,
    "unexpected": Unexpected,
    "upstream_unavailable": UpstreamUnavailable,
    "deadline_exceeded": DeadlineExceeded,
}
"""The conditions that the engine itself raises."""

SOFT_OUTCOMES: Final[Mapping[str, Mapping[str, object]]] = {}
"""Outcomes of calls that succeed, and the response fields that show them."""

TIMED_OUT: Final = "TIMED_OUT"
"""It took longer than it may."""

RESULT_NOT_JSON: Final = "RESULT_NOT_JSON"
"""What the handler gave is no JSON."""

UNKNOWN_TASK_TYPE: Final = "UNKNOWN_TASK_TYPE"
"""There is no handler for it."""

UPSTREAM: Final = Upstream(
    pass_through=frozenset(()),
    unavailable=frozenset(("UNAVAILABLE", "DEADLINE_EXCEEDED")),
)
"""The mapping of errors of upstream components to errors for our own caller."""
