"""`errors.yaml`: named conditions and the code of each, soft outcomes, and events for the log."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from codegen.language.base import Doc, LowerName, Part, Positive, UpperName
from codegen.language.grpc_codes import GrpcCode

Role = Literal[
    "invalid_request",
    "illegal_transition",
    "unauthenticated",
    "permission_denied",
    "upstream_unavailable",
    "deadline_exceeded",
    "unexpected",
    "malformed_body",
    "unsupported_media_type",
    "body_too_large",
    "route_not_found",
    "method_not_allowed",
    "lease_lost",
    "lease_stale",
    "store_unavailable",
    "store_full",
    "still_held",
    "key_reused",
    "store_refused",
]
"""Conditions that the engine itself raises; each that it may need has to have a name in the spec."""
ROLES: dict[Role, str] = {
    "invalid_request": "a field breaks a check of `types.yaml`",
    "illegal_transition": "there is no edge between the states that the request names",
    "unauthenticated": "the caller has no valid proof",
    "permission_denied": "the caller matrix does not let the caller call the method, or it is no actor",
    "upstream_unavailable": "a call to another component failed with a code of `upstream.unavailable`",
    "deadline_exceeded": "the deadline of the call has passed",
    "unexpected": "the handler raised anything else; the log has the traceback",
    "malformed_body": "the HTTP body is no JSON of the request message",
    "unsupported_media_type": "the HTTP body has another content type",
    "body_too_large": "the request is larger than its limit",
    "route_not_found": "no route has the path",
    "method_not_allowed": "the route does not have the HTTP method",
    "lease_lost": "the lease has ended or is another owner's",
    "lease_stale": "only the fence differs: the owner has claimed again; optional, else `lease_lost`",
    "store_unavailable": "the store does not answer",
    "store_full": "the limit of `ceiling` is reached, or the server is out of memory",
    "still_held": "the entity holds leases, and `unless_holding` forbids to delete it",
    "key_reused": "the text of `keyed_by` is that of an entity with other content, as its handler says",
    "store_refused": "the bucket refuses the credentials or the request, and no repeat would help",
}
"""When the engine raises the condition of a role."""

RetryAdvice = Literal["never", "with_backoff", "if_idempotent", "with_care"]


class Condition(Part):
    """A named outcome of a call.

    An error has a gRPC code, an HTTP status, retry advice and a message. A soft outcome has `soft` in place
    of them all and is part of an ordinary response.
    """

    doc: Doc = Field(description="When it occurs; the docstring of the generated exception.")
    role: Role | None = Field(
        default=None,
        description="Case in which the engine itself raises it; a spec has one condition for each role "
        "that it needs.",
    )
    grpc: GrpcCode | None = Field(default=None, description="Status code of an error in gRPC.")
    http: Annotated[int, Field(ge=400, le=599)] | None = Field(
        default=None, description="HTTP status of an error."
    )
    retry: RetryAdvice | None = Field(
        default=None,
        description="Advice to callers: `never`; `with_backoff`; `if_idempotent`, as the call may have had "
        "its effect; `with_care`, as a repeat may do harm.",
    )
    retry_after_s: Positive | None = Field(
        default=None,
        description="Seconds after which a repeat makes sense, as `Retry-After` and `RetryInfo`; only with "
        "statuses that pass, such as 429 and 503.",
    )
    message: str | None = Field(
        default=None,
        description="Message of an error. Each `{name}` is an argument of the exception; that of a role "
        "has those that the engine passes, such as `{field}` and `{problem}` of `invalid_request`.",
    )
    soft: dict[LowerName, bool | int | str] | None = Field(
        default=None,
        description="Response fields and their values that show a soft outcome; the call itself succeeds.",
    )
    reserved: bool = Field(
        default=False, description="Whether it is declared for later: no method raises it yet."
    )


class Upstream(Part):
    """How a failed call to another component is mapped for our own caller; any other code is `unexpected`."""

    pass_through: tuple[GrpcCode, ...] = Field(
        default=(), description="Codes of gRPC with which our own call fails, too."
    )
    unavailable: tuple[GrpcCode, ...] = Field(
        default=("UNAVAILABLE", "DEADLINE_EXCEEDED"),
        description="Codes of gRPC that become the condition of role `upstream_unavailable`.",
    )


class Event(Part):
    """A log line that handlers write by its name."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        description="Its level; it is written where the variable of role `log_level` has this or a lower one."
    )
    always: bool = Field(default=False, description="Whether it is written at any log level.")
    first_always: bool = Field(
        default=False, description="Whether the first one of a process is written at any log level."
    )
    doc: Doc = Field(description="When it is written; for the reference page.")


class ErrorsFile(Part):
    """Conditions with their codes, soft outcomes, and events of the log."""

    conditions: dict[LowerName, Condition] = Field(
        description="Conditions by name; each error becomes an exception in `generated/<system>/errors.py`."
    )
    upstream: Upstream = Field(default=Upstream(), description="Mapping of failed calls to other components.")
    reasons: dict[UpperName, Doc] = Field(
        default={},
        description="Fixed texts that say why an entity ended, and what each means; constants for handlers "
        "and for `default` of `from_request`.",
    )
    events: dict[LowerName, Event] = Field(default={}, description="Log events of handlers by name.")
