"""Conditions of queuey: the exceptions that handlers raise, and their codes for callers.

Generated from spec/queuey (sha256:77d78c72842295af). Do not edit; run `nox -s generate`.
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


class JobNotActive(Condition):
    """Nobody works on the job: it waits, or it has ended."""

    code = "job_not_active"
    grpc = "FAILED_PRECONDITION"
    http = 400
    retry = "never"

    def __init__(self, *, job_id: str, status: str) -> None:
        super().__init__(f"job {job_id} is {status}, not active", job_id=job_id, status=status)


class JobNotFailed(Condition):
    """The job may still succeed or has done so."""

    code = "job_not_failed"
    grpc = "FAILED_PRECONDITION"
    http = 400
    retry = "never"

    def __init__(self, *, job_id: str, status: str) -> None:
        super().__init__(
            f"job {job_id} is {status}; only a failed job is retried", job_id=job_id, status=status
        )


class IllegalTransition(Condition):
    """The lifecycle has no such edge."""

    code = "illegal_transition"
    grpc = "FAILED_PRECONDITION"
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


class NotAllowed(Condition):
    """A proven caller outside the matrix or an actor outside the lifecycle."""

    code = "not_allowed"
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


class WrongAddress(Condition):
    """The content has another SHA-256 than its address says."""

    code = "wrong_address"
    grpc = "INVALID_ARGUMENT"
    http = 400
    retry = "never"

    def __init__(self, *, address: str, actual: str) -> None:
        super().__init__(
            f"the content is not that of {address}, but of {actual}", address=address, actual=actual
        )


class BlobNotFound(Condition):
    """The store has no such content."""

    code = "blob_not_found"
    grpc = "NOT_FOUND"
    http = 404
    retry = "never"

    def __init__(self, *, address: str) -> None:
        super().__init__(f"nothing is stored under {address}", address=address)


class BlobCorrupt(Condition):
    """The disk has changed or lost the content. Uploading it again repairs it."""

    code = "blob_corrupt"
    grpc = "DATA_LOSS"
    http = 404
    retry = "never"

    def __init__(self, *, address: str) -> None:
        super().__init__(
            f"what is stored under {address} is not its content any more; upload it again", address=address
        )


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


class NotOwner(Condition):
    """Another runner has taken the job since."""

    code = "not_owner"
    grpc = "ABORTED"
    http = 409
    retry = "never"

    def __init__(self, *, holder: str, key: str) -> None:
        super().__init__(f"{holder} does not have job {key}", holder=holder, key=key)


class StaleAttempt(Condition):
    """The same runner has taken the job again since."""

    code = "stale_attempt"
    grpc = "ABORTED"
    http = 409
    retry = "never"

    def __init__(self, *, key: str) -> None:
        super().__init__(f"job {key} was taken anew since then", key=key)


class BodyTooLarge(Condition):
    """The body is larger than MAX_BODY_BYTES."""

    code = "body_too_large"
    grpc = "RESOURCE_EXHAUSTED"
    http = 413
    retry = "never"

    def __init__(self, *, limit: str) -> None:
        super().__init__(f"the body has more than {limit} bytes", limit=limit)


class BlobTooLarge(Condition):
    """The content is larger than MAX_BLOB_BYTES."""

    code = "blob_too_large"
    grpc = "RESOURCE_EXHAUSTED"
    http = 413
    retry = "never"

    def __init__(self, *, limit: str) -> None:
        super().__init__(f"the content has more than {limit} bytes", limit=limit)


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


class StoreUnavailable(Condition):
    """The disk is full or cannot be written. Nothing was stored."""

    code = "store_unavailable"
    grpc = "UNAVAILABLE"
    http = 503
    retry = "with_backoff"
    retry_after_s = 1

    def __init__(self) -> None:
        super().__init__("the queue cannot use its database now")


class BlobStoreUnavailable(Condition):
    """The disk is full or cannot be written. Nothing was stored."""

    code = "blob_store_unavailable"
    grpc = "UNAVAILABLE"
    http = 503
    retry = "with_backoff"
    retry_after_s = 1

    def __init__(self) -> None:
        super().__init__("the store cannot use its folder now")


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
    "job_not_active": JobNotActive,
    "job_not_failed": JobNotFailed,
    "illegal_transition": IllegalTransition,
    "unauthenticated": Unauthenticated,
    "not_allowed": NotAllowed,
    "job_not_found": JobNotFound,
    "wrong_address": WrongAddress,
    "blob_not_found": BlobNotFound,
    "blob_corrupt": BlobCorrupt,
    "route_not_found": RouteNotFound,
    "method_not_allowed": MethodNotAllowed,
    "not_owner": NotOwner,
    "stale_attempt": StaleAttempt,
    "body_too_large": BodyTooLarge,
    "blob_too_large": BlobTooLarge,
    "unsupported_media_type": UnsupportedMediaType,
    "internal_error": InternalError,
    "store_unavailable": StoreUnavailable,
    "blob_store_unavailable": BlobStoreUnavailable,
    "upstream_unavailable": UpstreamUnavailable,
    "deadline_exceeded": DeadlineExceeded,
}
"""Every condition with a status code."""

ROLES: Final[Mapping[str, type[Condition]]] = {
    "malformed_body": MalformedJson,
    "invalid_request": ValidationError,
    "illegal_transition": IllegalTransition,
    "unauthenticated": Unauthenticated,
    "permission_denied": NotAllowed,
    "route_not_found": RouteNotFound,
    "method_not_allowed": MethodNotAllowed,
    "lease_lost": NotOwner,
    "lease_stale": StaleAttempt,
    "body_too_large": BodyTooLarge,
    "unsupported_media_type": UnsupportedMediaType,
    "unexpected": InternalError,
    "store_unavailable": StoreUnavailable,
    "upstream_unavailable": UpstreamUnavailable,
    "deadline_exceeded": DeadlineExceeded,
}
"""The conditions that the engine itself raises."""

SOFT_OUTCOMES: Final[Mapping[str, Mapping[str, object]]] = {}
"""Outcomes of calls that succeed, and the response fields that show them."""

ABANDONED: Final = "ABANDONED"
"""Its runners were not heard of any more."""

CANCELED: Final = "CANCELED"
"""A client did not want it any more."""

NOT_FOUND: Final = "NOT_FOUND"
"""The binary or its input is not in the store."""

CORRUPT: Final = "CORRUPT"
"""The binary or its input is not what was stored any more."""

NOT_WASI: Final = "NOT_WASI"
"""The binary is no module that can be run."""

TRAPPED: Final = "TRAPPED"
"""The binary did something that ends it."""

EXITED: Final = "EXITED"
"""The binary ended with a code that is not 0."""

OUT_OF_TIME: Final = "OUT_OF_TIME"
"""The binary took longer than it may."""

OUT_OF_FUEL: Final = "OUT_OF_FUEL"
"""The binary did more than it may."""

OUT_OF_MEMORY: Final = "OUT_OF_MEMORY"
"""The binary wanted more memory than it may have."""

OUTPUT_TOO_LARGE: Final = "OUTPUT_TOO_LARGE"
"""The binary wrote more than it may."""

UPSTREAM: Final = Upstream(
    pass_through=frozenset(()),
    unavailable=frozenset(("UNAVAILABLE", "DEADLINE_EXCEEDED")),
)
"""The mapping of errors of upstream components to errors for our own caller."""
