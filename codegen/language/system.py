"""`system.yaml`: name, proto files, shared policies and frozen decisions of the system."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from codegen.language.base import Count, Doc, LowerName, Part, Positive, UpperName
from codegen.language.grpc_codes import GrpcCode

ProtoFile = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*\.proto$")]
ProtoPackage = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$")]


class Proto(Part):
    """One proto file and what it may import."""

    file: ProtoFile
    package: ProtoPackage
    imports: tuple[LowerName, ...] = ()
    doc: Doc | None = None


class RetryProfile(Part):
    """When and how often a caller tries again."""

    doc: Doc | None = None
    codes: Annotated[tuple[GrpcCode, ...], Field(min_length=1)]
    attempts: Positive = Field(description="All attempts, the first call included.")
    initial_ms: Positive
    multiplier: Annotated[float, Field(ge=1.0)]
    max_ms: Positive
    jitter: Literal["full", "none"] = "full"


class CallMode(Part):
    """How a handler makes a call that must not follow the ordinary rules."""

    doc: Doc | None = None
    deadline: Literal["inherited", "fresh"] = "inherited"
    attempts: Positive | None = Field(default=None, description="Overrides the method's retry profile.")


class Pagination(Part):
    """Bounds of a listing and of its page tokens."""

    doc: Doc | None = None
    default_size: Positive
    max_size: Positive
    max_token: Positive
    max_token_digits: Positive


class Limit(Part):
    """A named size that field rules and transports refer to."""

    value: Positive
    unit: Literal["bytes", "characters", "calls", "items", "ms"]
    doc: Doc | None = None


class Retention(Part):
    """How much of something is kept, bounded by a variable; a bound of 0 keeps all."""

    bound: UpperName
    unit: Literal["records", "bytes"]
    of: Literal["all", "terminal"]
    evicts: Literal["oldest"]


class Keepalive(Part):
    """Connection pings, for both sides together so that neither takes the other's for abuse."""

    ping_every_ms: Positive
    ping_timeout_ms: Positive
    shortest_ping_accepted_ms: Positive
    idle_pings: bool = True
    connection_age_ms: Positive = Field(
        default=1_800_000,
        description="How old a connection becomes before its server asks the client to make a new one, so "
        "that calls are spread again behind a balancer of connections. Calls under way are answered.",
    )


class Shutdown(Part):
    """How a node stops."""

    grace_ms: Count = 5000


class Policies(Part):
    """What methods, fields and deployments refer to by name."""

    retry: dict[LowerName, RetryProfile] = {}
    calls: dict[LowerName, CallMode] = {}
    pagination: dict[LowerName, Pagination] = {}
    limits: dict[LowerName, Limit] = {}
    retention: dict[LowerName, Retention] = {}
    keepalive: Keepalive = Keepalive(
        ping_every_ms=20000, ping_timeout_ms=5000, shortest_ping_accepted_ms=10000
    )
    shutdown: Shutdown = Shutdown()
    log_fields: tuple[LowerName, ...] = Field(
        default=(), description="Request and condition fields that every log line about them carries."
    )


class JsonStyle(Part):
    """How messages look as JSON, wherever methods have routes."""

    names: Literal["camel", "snake"] = Field(
        default="camel", description="Fields as protobuf has them in JSON, or as they are in the spec."
    )
    unset: Literal["left_out", "shown"] = Field(
        default="left_out", description="Whether an optional field of an answer that is unset is null."
    )
    times: Literal["microseconds", "milliseconds"] = Field(
        default="microseconds", description="How exact times are."
    )
    details: bool = Field(
        default=False,
        description="Whether a refusal tells all that is known of it as `details`, and not the field alone.",
    )


class Watched(Part):
    """Entities whose sign of life a page looks at."""

    entity: LowerName
    by: LowerName = Field(description="Record time of the last sign of life.")
    silent: UpperName = Field(description="The variable with the seconds after which one counts as dead.")


class Page(Part):
    """What a page in a browser is told of the entities that a bucket keeps, to show and to move them."""

    principal: LowerName = Field(description="Who the page acts as.")
    watches: Watched | None = None


class Freeze(Part):
    """Decisions that only a recorded blocker may change."""

    since: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    decisions: Annotated[tuple[Doc, ...], Field(min_length=1)]
    gate: tuple[Doc, ...] = Field(default=(), description="What must hold before the freeze is lifted.")
    out_of_scope: tuple[Doc, ...] = ()


class SystemFile(Part):
    """What the system is called and what its other files refer to."""

    name: LowerName
    version: Positive
    title: Doc
    summary: Doc
    protos: Annotated[dict[LowerName, Proto], Field(min_length=1)]
    json_: JsonStyle = Field(default=JsonStyle(), alias="json")
    policies: Policies = Policies()
    page: Page | None = None
    frozen: Freeze | None = None
