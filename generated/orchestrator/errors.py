"""Conditions of orchestrator: the exceptions that handlers raise, and their codes for callers.

Generated from spec/orchestrator (sha256:fdaebfd770cb5849). Do not edit; run `nox -s generate`.
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


class ActorNotAllowed(Condition):
    """A proven caller outside the matrix or an actor outside the lifecycle."""

    code = "actor_not_allowed"
    grpc = "PERMISSION_DENIED"
    http = 403
    retry = "never"

    def __init__(self, *, caller: str, method: str, problem: str) -> None:
        super().__init__(
            f"{caller} may not do {method}: {problem}", caller=caller, method=method, problem=problem
        )


class JobNotFound(Condition):
    """No job has this id."""

    code = "job_not_found"
    grpc = "NOT_FOUND"
    http = 404
    retry = "never"

    def __init__(self, *, job_id: str) -> None:
        super().__init__(f"no job {job_id}", job_id=job_id)


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


class IdempotencyKeyReused(Condition):
    """The key is known and the job type or the payload differs. Only raised where IDEMPOTENCY_STRICT is
    on."""

    code = "idempotency_key_reused"
    grpc = "ALREADY_EXISTS"
    http = 409
    retry = "never"

    def __init__(self) -> None:
        super().__init__("this idempotency key was used for another job; use a new key")


class JobNotFailed(Condition):
    """The job may still succeed or has done so."""

    code = "job_not_failed"
    grpc = "FAILED_PRECONDITION"
    http = 409
    retry = "never"

    def __init__(self, *, job_id: str) -> None:
        super().__init__(f"job {job_id} has not failed; only a failed job is retried", job_id=job_id)


class LeaseLost(Condition):
    """The lease ended or is another's. What its holder wanted to write is dropped."""

    code = "lease_lost"
    grpc = "ABORTED"
    http = 409
    retry = "never"

    def __init__(self, *, holder: str, key: str) -> None:
        super().__init__(f"{holder} no longer holds {key}", holder=holder, key=key)


class PayloadTooLarge(Condition):
    """The body is larger than MAX_PAYLOAD_BYTES."""

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
        super().__init__("the service cannot reach its database now")


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
    "illegal_transition": IllegalTransition,
    "unauthenticated": Unauthenticated,
    "actor_not_allowed": ActorNotAllowed,
    "job_not_found": JobNotFound,
    "route_not_found": RouteNotFound,
    "method_not_allowed": MethodNotAllowed,
    "idempotency_key_reused": IdempotencyKeyReused,
    "job_not_failed": JobNotFailed,
    "lease_lost": LeaseLost,
    "payload_too_large": PayloadTooLarge,
    "unsupported_media_type": UnsupportedMediaType,
    "internal_error": InternalError,
    "service_unavailable": ServiceUnavailable,
    "upstream_unavailable": UpstreamUnavailable,
    "deadline_exceeded": DeadlineExceeded,
}
"""Every condition with a status code."""

ROLES: Final[Mapping[str, type[Condition]]] = {
    "malformed_body": MalformedJson,
    "invalid_request": ValidationError,
    "illegal_transition": IllegalTransition,
    "unauthenticated": Unauthenticated,
    "permission_denied": ActorNotAllowed,
    "route_not_found": RouteNotFound,
    "method_not_allowed": MethodNotAllowed,
    "lease_lost": LeaseLost,
    "body_too_large": PayloadTooLarge,
    "unsupported_media_type": UnsupportedMediaType,
    "unexpected": InternalError,
    "store_unavailable": ServiceUnavailable,
    "upstream_unavailable": UpstreamUnavailable,
    "deadline_exceeded": DeadlineExceeded,
}
"""The conditions that the engine itself raises."""

SOFT_OUTCOMES: Final[Mapping[str, Mapping[str, object]]] = {}
"""Outcomes of calls that succeed, and the response fields that show them."""

UNKNOWN_JOB_TYPE: Final = "UNKNOWN_JOB_TYPE"
"""No job function is registered for this type."""

TIMED_OUT: Final = "TIMED_OUT"
"""The job function took longer than its time limit."""

GIVEN_BACK: Final = "GIVEN_BACK"
"""The worker was stopped before the job was done."""

LEASE_EXPIRED: Final = "LEASE_EXPIRED"
"""The worker was not heard of until its lease ended."""

RESULT_NOT_JSON: Final = "RESULT_NOT_JSON"
"""The job function returned something that JSON cannot hold."""

UPSTREAM: Final = Upstream(
    pass_through=frozenset(()),
    unavailable=frozenset(("UNAVAILABLE", "DEADLINE_EXCEEDED")),
)
"""The mapping of errors of upstream components to errors for our own caller."""
