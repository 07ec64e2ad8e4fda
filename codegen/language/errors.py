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

RetryAdvice = Literal["never", "with_backoff", "if_idempotent", "with_care"]


class Condition(Part):
    """A named thing that can be said instead of, or within, an ordinary answer.

    A hard one has a code and a message; a soft one says which response fields tell it.
    """

    doc: Doc
    role: Role | None = None
    grpc: GrpcCode | None = None
    http: Annotated[int, Field(ge=400, le=599)] | None = None
    retry: RetryAdvice | None = None
    retry_after_s: Positive | None = Field(default=None, description="When a caller may try again.")
    message: str | None = Field(default=None, description="Template; each {name} becomes an argument.")
    soft: dict[LowerName, bool | int | str] | None = None
    reserved: bool = Field(default=False, description="Named for later; no method raises it yet.")


class Upstream(Part):
    """How a failed call to another component looks to our own caller; the rest is `unexpected`."""

    pass_through: tuple[GrpcCode, ...] = ()
    unavailable: tuple[GrpcCode, ...] = ("UNAVAILABLE", "DEADLINE_EXCEEDED")


class Event(Part):
    """Something worth a log line."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"]
    always: bool = Field(default=False, description="Written whatever the log level is.")
    first_always: bool = Field(default=False, description="The first one is written whatever the level is.")
    doc: Doc


class ErrorsFile(Part):
    """Conditions and events."""

    conditions: dict[LowerName, Condition]
    upstream: Upstream = Upstream()
    reasons: dict[UpperName, Doc] = Field(default={}, description="Fixed texts that say why an entity ended.")
    events: dict[LowerName, Event] = {}
