"""`services.yaml`: the components, the services they offer and the contract of each method."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from codegen.language.base import Doc, LowerName, MethodRef, Part, Positive, TypeName

RetryRef = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
IdempotencyClass = Literal["always", "when_keyed", "compare_and_set", "first_write_wins", "never"]


class Component(Part):
    """A unit of hand-written logic: one handler class, which is one principal."""

    serves: tuple[TypeName, ...] = Field(
        default=(),
        description="Services that its handler implements; each service has exactly one component.",
    )
    owns: Doc = Field(description="State that only this component changes; for the reference page.")


class Idempotency(Part):
    """The effect of a repeated call."""

    class_: IdempotencyClass = Field(
        alias="class",
        description="`always`: a repeat is harmless. `when_keyed`: it is where the key is not empty. "
        "`compare_and_set`: it applies only to the expected state. `first_write_wins`: later calls change "
        "nothing. `never`: each call has its own effect, so it is never retried.",
    )
    key: tuple[LowerName, ...] = Field(
        default=(),
        description="Request fields that make two calls the same; required by `when_keyed`, "
        "`compare_and_set` and `first_write_wins`.",
    )


class Drive(Part):
    """The transition of an entity that a method applies: compare and set."""

    entity: LowerName = Field(description="The entity.")
    from_: LowerName = Field(alias="from", description="Request field, an enum, with the expected state.")
    to: LowerName = Field(description="Request field, an enum, with the state to go to.")


Success = Annotated[int, Field(ge=200, le=299)]


class Instead(Part):
    """Another HTTP status for responses in which a field is set, or in which it is not."""

    status: Success = Field(description="The status; 204 leaves the body out.")
    if_set: LowerName | None = Field(
        default=None,
        description="Response field: the status applies where it is true, not empty or not 0. Either this "
        "or `if_unset` is given.",
    )
    if_unset: LowerName | None = Field(
        default=None, description="Response field: the status applies where it is false, empty, 0 or absent."
    )


class Route(Part):
    """The HTTP route of a method."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = Field(
        description="The HTTP method; GET needs a method whose repeats are harmless, and answers HEAD, too."
    )
    path: Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9_/{}.:-]*$")] = Field(
        description="The path; each `{name}` is a request field. The other fields are in the query of GET "
        "and DELETE, and else in the JSON body."
    )
    status: Success = Field(default=200, description="Status of a response.")
    body: LowerName | None = Field(
        default=None,
        description="Request field, bytes, that is the raw body; the other fields are in the query. "
        "Without it the body is JSON.",
    )
    answer: LowerName | None = Field(
        default=None,
        description="Response field, bytes, that is the raw body of the response; without it the body is "
        "JSON.",
    )
    any_value: bool = Field(
        default=False,
        description="Whether a placeholder also matches a fixed path of another route, for HTTP methods "
        "that the fixed path does not have.",
    )
    instead: tuple[Instead, ...] = Field(
        default=(), description="Other statuses; the first that applies is used, and else `status`."
    )


class Method(Part):
    """One unary method: messages, deadline, retries, conditions and route."""

    doc: Doc = Field(
        description="What it does; a comment in the .proto file, in OpenAPI and in the help of the CLI."
    )
    request: TypeName | None = Field(
        default=None, description="Message of the request; `<Method>Request` by default."
    )
    response: TypeName | None = Field(
        default=None, description="Message of the response; `<Method>Response` by default."
    )
    deadline_ms: Positive | None = Field(
        default=None,
        description="Milliseconds that one attempt of a call may take; that of `defaults` by default.",
    )
    idempotency: Idempotency = Field(description="What a repeated call does, and what makes it one.")
    retry: RetryRef | None = Field(
        default=None,
        description="Retry profile of typed clients, or `never`; that of `defaults` by default. With "
        "`when_keyed` only calls with a key are retried.",
    )
    max_request: LowerName | None = Field(
        default=None,
        description="Limit, in bytes, of the encoded request over any transport. By default the variable "
        "of role `max_body_bytes` that the component reads, else that of `defaults`.",
    )
    pagination: LowerName | None = Field(
        default=None,
        description="Pagination policy of a listing, for readers and reviews; the rules `page_size` and "
        "`page_token` of its request fields apply it.",
    )
    calls: tuple[MethodRef, ...] = Field(
        default=(),
        description="Methods that its handler may call, as `Service.Method`; its component needs the "
        "permissions, and its deadline has to be as long as theirs.",
    )
    raises: tuple[LowerName, ...] = Field(
        default=(), description="Conditions that its handler may raise, and soft outcomes that it may return."
    )
    drives: Drive | None = Field(
        default=None,
        description="The transition that it applies, for a method that takes the states from its request; "
        "`driven_by` of the entity names it.",
    )
    names_caller: LowerName | None = Field(
        default=None,
        description="Request field, a string, that must be the proven caller; typed clients fill it in.",
    )
    route: Route | None = Field(
        default=None, description="Its HTTP route; without one it is reachable by gRPC only."
    )


class Service(Part):
    """A gRPC service, which one component implements."""

    proto: LowerName = Field(description="Proto of `system.yaml` that defines it.")
    doc: Doc = Field(description="What it is for; a comment in the .proto file.")
    methods: Annotated[dict[TypeName, Method], Field(min_length=1)] = Field(description="Its methods.")


class Defaults(Part):
    """Values for methods that do not have their own."""

    deadline_ms: Positive = Field(default=1000, description="Deadline of an attempt in milliseconds.")
    retry: RetryRef = Field(default="never", description="Retry profile, or `never`.")
    max_request: LowerName | None = Field(
        default=None,
        description="Limit, in bytes, of a request; by default the limit `message_bytes` of the transport.",
    )


class ServicesFile(Part):
    """Components, the services that they offer, and the contract of each method."""

    components: Annotated[dict[LowerName, Component], Field(min_length=1)] = Field(
        description="Components; the handler of each is a class in `handlers/<system>/<component>.py`."
    )
    defaults: Defaults = Field(
        default=Defaults(),
        description="Deadline, retries and request size of methods that do not have their own.",
    )
    services: Annotated[dict[TypeName, Service], Field(min_length=1)] = Field(description="Services of gRPC.")
