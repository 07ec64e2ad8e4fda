"""`system.yaml`: name, proto files, shared policies and frozen decisions of the system."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from codegen.language.base import Count, Doc, LowerName, Part, Positive, UpperName
from codegen.language.grpc_codes import GrpcCode

ProtoFile = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*\.proto$")]
ProtoPackage = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$")]


class Proto(Part):
    """One generated .proto file and its imports."""

    file: ProtoFile = Field(description="Name of the file, which is written to `proto/`.")
    package: ProtoPackage = Field(
        description="Package of its services and messages: the first half of their names on the wire."
    )
    imports: tuple[LowerName, ...] = Field(
        default=(), description="Protos of this system whose types it uses, by their names here."
    )
    doc: Doc | None = Field(default=None, description="Comment at the top of the file.")


class RetryProfile(Part):
    """Retries of a call by the typed client, with exponential backoff."""

    doc: Doc | None = Field(default=None, description="What it is for; in the generated policy and its page.")
    codes: Annotated[tuple[GrpcCode, ...], Field(min_length=1)] = Field(
        description="Codes of gRPC after which a call is repeated; any other failure is final."
    )
    attempts: Positive = Field(description="Most attempts of a call, the first one included.")
    initial_ms: Positive = Field(description="Milliseconds of backoff after the first attempt.")
    multiplier: Annotated[float, Field(ge=1.0)] = Field(
        description="Factor by which the backoff grows with each further attempt; 1.0 is a constant backoff."
    )
    max_ms: Positive = Field(description="Longest backoff in milliseconds.")
    jitter: Literal["full", "none"] = Field(
        default="full",
        description="`full` draws each backoff at random between 0 and its bound, so that callers do not "
        "retry in step; `none` waits for the bound itself.",
    )


class CallMode(Part):
    """Another deadline, or another number of attempts, for calls that must not follow the ordinary ones.

    A permission fixes it by `call` in `callers.yaml`, or a handler chooses it with `call.under(MODE)`.
    """

    doc: Doc | None = Field(default=None, description="What it is for; in the generated policy and its page.")
    deadline: Literal["inherited", "fresh"] = Field(
        default="inherited",
        description="`inherited` ends with the deadline of the call that the handler answers; `fresh` has "
        "the whole deadline of the called method, also when the inbound call has run out of time.",
    )
    attempts: Positive | None = Field(
        default=None, description="Most attempts, in place of those of the method's retry profile."
    )


class Pagination(Part):
    """Bounds of page sizes and of numeric page tokens."""

    doc: Doc | None = Field(default=None, description="How pages are cut; in the reference page.")
    default_size: Positive = Field(description="Page size of a request that has 0 or none.")
    max_size: Positive = Field(description="Largest page size; a request for more gets this one.")
    max_token: Positive = Field(description="Largest number that a page token may be.")
    max_token_digits: Positive = Field(
        description="Most decimal digits of a page token; a longer one is refused before it is parsed."
    )


class Limit(Part):
    """A named size for field rules, methods and handlers.

    `message_bytes` (4194304), `concurrent_streams` (1024) and `connections` (4096) replace those defaults of
    the transport.
    """

    value: Positive = Field(description="The number, in the unit below.")
    unit: Literal["bytes", "characters", "calls", "items", "ms"] = Field(
        description="What is counted; a field rule only takes a limit of its own unit."
    )
    doc: Doc | None = Field(default=None, description="What it bounds; in the generated policy and its page.")


class Retention(Part):
    """How much of something is kept in memory, bounded by a variable; a bound of 0 keeps all.

    The memory limits of containers follow from it. `retention` of an entity applies it to its records; a
    handler applies it to what it keeps itself.
    """

    bound: UpperName = Field(description="Variable of type int with the most that is kept.")
    unit: Literal["records", "bytes"] = Field(description="What the bound counts.")
    of: Literal["all", "terminal"] = Field(
        description="Whether everything counts, or only entities in a terminal state; those of an entity "
        "have to be `terminal`."
    )
    evicts: Literal["oldest"] = Field(description="What is dropped when the bound is reached.")


class Keepalive(Part):
    """HTTP/2 keepalive of both sides of a gRPC connection."""

    ping_every_ms: Positive = Field(
        description="Milliseconds without a frame after which a side sends a PING; at least "
        "`shortest_ping_accepted_ms`."
    )
    ping_timeout_ms: Positive = Field(
        description="Milliseconds to wait for the answer to a PING before the connection is closed."
    )
    shortest_ping_accepted_ms: Positive = Field(
        description="Shortest interval in milliseconds at which a server accepts PINGs; it closes the "
        "connection of a client that sends them faster."
    )
    idle_pings: bool = Field(
        default=True, description="Whether PINGs are also sent while no call is open on the connection."
    )
    connection_age_ms: Positive = Field(
        default=1_800_000,
        description="Age in milliseconds at which a server sends GOAWAY, so that a load balancer of "
        "connections spreads the clients again; calls in flight are still answered.",
    )


class Shutdown(Part):
    """How a node stops."""

    grace_ms: Count = Field(
        default=5000,
        description="Milliseconds after SIGTERM in which work in flight may end before it is cut off.",
    )


class Policies(Part):
    """Named policies that methods, fields, entities and deployments refer to."""

    retry: dict[LowerName, RetryProfile] = Field(
        default={}, description="Retry profiles, for `retry` of a method; `never` is no name for one."
    )
    calls: dict[LowerName, CallMode] = Field(
        default={}, description="Call modes, for `call` of a permission and for handlers."
    )
    pagination: dict[LowerName, Pagination] = Field(
        default={}, description="Page sizes and tokens, for methods and field rules of listings."
    )
    limits: dict[LowerName, Limit] = Field(
        default={}, description="Sizes, for field rules, `max_request` of a method and handlers."
    )
    retention: dict[LowerName, Retention] = Field(
        default={}, description="Bounds of what is kept in memory; without one everything is kept."
    )
    keepalive: Keepalive = Field(
        default=Keepalive(ping_every_ms=20000, ping_timeout_ms=5000, shortest_ping_accepted_ms=10000),
        description="Keepalive of gRPC connections; by default a PING after 20 s of silence, with 5 s to "
        "answer, and no more than one in 10 s accepted.",
    )
    shutdown: Shutdown = Field(default=Shutdown(), description="The shutdown of every node.")
    log_fields: tuple[LowerName, ...] = Field(
        default=(),
        description="Fields of requests and arguments of conditions that a log line has wherever the call "
        "or the condition has them.",
    )


class JsonStyle(Part):
    """The JSON form of messages over HTTP; protobuf JSON by default."""

    names: Literal["camel", "snake"] = Field(
        default="camel",
        description="Field names as in protobuf JSON (`jobId`), or as in the spec (`job_id`).",
    )
    unset: Literal["left_out", "shown"] = Field(
        default="left_out",
        description="Whether an optional field that is unset is left out of a response, or is `null` in it.",
    )
    times: Literal["microseconds", "milliseconds"] = Field(
        default="microseconds", description="Precision of timestamps in responses."
    )
    details: bool = Field(
        default=False,
        description="Whether an error body has all arguments of the condition as `details`, in place of "
        "`field` alone.",
    )


class Watched(Part):
    """Entities whose last heartbeat the page checks."""

    entity: LowerName = Field(description="The entity; its objects are in the bucket.")
    by: LowerName = Field(description="Record field, a timestamp, with the time of the last heartbeat.")
    silent: UpperName = Field(
        description="Variable with the seconds after which one without a heartbeat is shown as dead; the "
        "page uses its default."
    )


class Page(Part):
    """The static web page of a system whose entities are objects in a bucket."""

    principal: LowerName = Field(
        description="Principal that the page acts as: it may take the transitions with this actor."
    )
    watches: Watched | None = Field(
        default=None, description="Entities with a heartbeat; without it the page shows none as dead."
    )


class Freeze(Part):
    """A frozen design: a change of it needs a change record that names its blocker."""

    since: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")] = Field(
        description="Day of the freeze, as `YYYY-MM-DD`."
    )
    decisions: Annotated[tuple[Doc, ...], Field(min_length=1)] = Field(
        description="The decisions that are frozen, a sentence each."
    )
    gate: tuple[Doc, ...] = Field(default=(), description="What must hold before the freeze is lifted.")
    out_of_scope: tuple[Doc, ...] = Field(default=(), description="What the design leaves out on purpose.")


class SystemFile(Part):
    """Name, proto files and shared policies of the system, and decisions that are frozen."""

    name: LowerName = Field(
        description="Name of the system, of `generated/<name>/`, `handlers/<name>/` and its SPIFFE URIs."
    )
    version: Positive = Field(description="Version of the API, in OpenAPI and as the tag of images.")
    title: Doc = Field(description="Title of its pages.")
    summary: Doc = Field(description="What the system does, in a few sentences, for its reference page.")
    protos: Annotated[dict[LowerName, Proto], Field(min_length=1)] = Field(
        description="The .proto files, by the names under which `types.yaml` and `services.yaml` use them."
    )
    json_: JsonStyle = Field(default=JsonStyle(), alias="json", description="JSON over HTTP.")
    policies: Policies = Field(
        default=Policies(),
        description="Retries, limits, pages, retention, keepalive, shutdown and log fields.",
    )
    page: Page | None = Field(
        default=None, description="The static web page over a bucket; without it there is none."
    )
    frozen: Freeze | None = Field(
        default=None, description="The frozen decisions; without it every recorded change can be accepted."
    )
