"""`services.yaml`: the components, the services they offer and the contract of each method."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from codegen.language.base import Doc, LowerName, MethodRef, Part, Positive, TypeName

RetryRef = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
IdempotencyClass = Literal["always", "when_keyed", "compare_and_set", "first_write_wins", "never"]


class Component(Part):
    """A unit of hand-written logic: one handler class, one principal."""

    serves: tuple[TypeName, ...] = ()
    owns: Doc


class Idempotency(Part):
    """What happens when a call is repeated."""

    class_: IdempotencyClass = Field(
        alias="class",
        description=(
            "always: repeats are harmless; when_keyed: if the key is not empty; "
            "compare_and_set: applies only to the expected state; "
            "first_write_wins: later writes change nothing; never: each call has its own effect."
        ),
    )
    key: tuple[LowerName, ...] = Field(default=(), description="Request fields that make two calls the same.")


class Drive(Part):
    """Says that a method moves an entity, and which request fields name the states."""

    entity: LowerName
    from_: LowerName = Field(alias="from")
    to: LowerName


Success = Annotated[int, Field(ge=200, le=299)]


class Instead(Part):
    """Another status for some answers: those in which a field is set, or those in which it is not."""

    status: Success
    if_set: LowerName | None = Field(
        default=None, description="A field of the answer that is true, not empty or not 0."
    )
    if_unset: LowerName | None = Field(default=None, description="A field of the answer that is none of it.")


class Route(Part):
    """Where a method is found over HTTP."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: Annotated[
        str,
        StringConstraints(pattern=r"^/[A-Za-z0-9_/{}.:-]*$"),
        Field(description="Each {name} is a field of the request; the others are in the query or the body."),
    ]
    status: Success = Field(default=200, description="The status of an answer.")
    body: LowerName | None = Field(
        default=None,
        description="The bytes field of the request that the body is; the others are in the query.",
    )
    answer: LowerName | None = Field(
        default=None, description="The bytes field of the answer that its body is, as it goes."
    )
    any_value: bool = Field(
        default=False,
        description="Whether it also takes paths that another route has, for methods which that one lacks.",
    )
    instead: tuple[Instead, ...] = Field(
        default=(), description="Other statuses; the first that fits is answered. 204 has no body."
    )


class Method(Part):
    """One unary call and all that a caller or a handler has to know of it."""

    doc: Doc
    request: TypeName | None = Field(default=None, description="`<Method>Request` unless named.")
    response: TypeName | None = Field(default=None, description="`<Method>Response` unless named.")
    deadline_ms: Positive | None = None
    idempotency: Idempotency
    retry: RetryRef | None = Field(default=None, description="A retry profile, or never.")
    max_request: LowerName | None = Field(
        default=None,
        description="The limit on the size of its request, whatever carries it. A method without one goes "
        "by the variable of role `max_body_bytes` that its component reads, and else by the default.",
    )
    pagination: LowerName | None = None
    calls: tuple[MethodRef, ...] = Field(default=(), description="What its handler may call to answer.")
    raises: tuple[LowerName, ...] = Field(
        default=(), description="Conditions its handler may raise or answer."
    )
    drives: Drive | None = None
    names_caller: LowerName | None = Field(
        default=None, description="Request field that must name the proven caller."
    )
    route: Route | None = None


class Service(Part):
    """A set of methods that one component offers."""

    proto: LowerName
    doc: Doc
    methods: Annotated[dict[TypeName, Method], Field(min_length=1)]


class Defaults(Part):
    """What holds for a method that does not say otherwise."""

    deadline_ms: Positive = 1000
    retry: RetryRef = "never"
    max_request: LowerName | None = None


class ServicesFile(Part):
    """Components and services."""

    components: Annotated[dict[LowerName, Component], Field(min_length=1)]
    defaults: Defaults = Defaults()
    services: Annotated[dict[TypeName, Service], Field(min_length=1)]
