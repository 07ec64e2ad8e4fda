"""`environment.yaml`: variables, their meaning, bounds and readers, and rules between them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag

from codegen.language.base import Doc, LowerName, Part, UpperName

VariableType = Literal[
    "string",
    "int",
    "number",
    "bool",
    "url",
    "port",
    "address",
    "addresses",
    "choice",
    "path",
    "data_path",
    "secret",
    "digests",
    "constant",
]
EngineRole = Literal[
    "log_level",
    "tls_certificate",
    "tls_key",
    "tls_authority",
    "caller_token",
    "accepted_tokens",
    "metrics_port",
    "max_body_bytes",
]
"""Settings that the engine itself reads, whatever the names of their variables."""


class Clamp(Part):
    """Bounds a value is moved to when it is used."""

    min: int
    max: int


def _find_readers_shape(value: Any) -> str:
    return "everyone" if isinstance(value, str) else "some"


Readers = Annotated[
    Annotated[Literal["everyone"], Tag("everyone")]
    | Annotated[tuple[LowerName, ...], Field(min_length=1), Tag("some")],
    Discriminator(_find_readers_shape),
]
"""Components or nodes by name, or everyone."""


class Variable(Part):
    """One environment variable."""

    type: VariableType
    doc: Doc
    read_by: Readers
    unit: str | None = None
    default: bool | int | float | str | None = None
    default_from: Literal["hostname", "process"] | None = None
    required: bool = False
    min: int | float | None = None
    max: int | float | None = None
    clamp: Clamp | None = None
    choices: tuple[str, ...] = ()
    pattern: str | None = Field(
        default=None, description="A regular expression that the whole of a text must match."
    )
    role: EngineRole | None = None
    also_named: tuple[UpperName, ...] = Field(
        default=(), description="Other names of it, which count in this order where it is unset."
    )


class VariableRule(Part):
    """Something that must hold between variables."""

    doc: Doc
    variable: UpperName | None = None
    greater_than: UpperName | None = None
    less_than_count_of: UpperName | None = None
    together: tuple[UpperName, ...] = Field(default=(), description="All of them are set, or none.")


class EnvironmentFile(Part):
    """Variables and the rules between them."""

    variables: dict[UpperName, Variable]
    prefix: Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9]*_$")] | None = Field(
        default=None,
        description="What names begin with that are nobody else's: a node warns of one that is not known.",
    )
    rules: tuple[VariableRule, ...] = ()
