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
TYPES: dict[VariableType, str] = {
    "string": "text, that `pattern` may bound",
    "int": "a whole number",
    "number": "a decimal number",
    "bool": "`true` or `false`, or `1` or `0`",
    "url": "`scheme://user:password@host:port/name`",
    "port": "a port from 1 to 65535; with `min: 0` also 0",
    "address": "`host:port`",
    "addresses": "addresses with commas between them, none twice",
    "choice": "one of `choices`",
    "path": "a file that exists",
    "data_path": "a file or folder, which is created where it does not exist",
    "secret": "text that no page and no log shows; it has no default",
    "digests": "`name=<SHA-256 in hex>` pairs with commas between them",
    "constant": "its default, which is not to be set",
}
"""What a variable of a type holds."""
ENGINE_ROLES: dict[EngineRole, str] = {
    "log_level": "the least level that is logged; a `choice`",
    "tls_certificate": "the certificate of the node; a `path`",
    "tls_key": "the private key of the certificate; a `path`",
    "tls_authority": "the authority of the certificates of peers; a `path`",
    "caller_token": "the bearer token with which the node calls others; a `secret`",
    "accepted_tokens": "the principals and the digests of their tokens that the node accepts; `digests`",
    "metrics_port": "the port of a listener for Prometheus; a `port` or `int`; 0 or unset is none",
    "max_body_bytes": "the most bytes of a request of methods without `max_request`; an `int`",
}
"""What the engine reads the variable of a role for."""


class Clamp(Part):
    """Bounds that a value is moved to when it is read."""

    min: int = Field(description="A smaller value is used as this one.")
    max: int = Field(description="A larger value is used as this one.")


def _find_readers_shape(value: Any) -> str:
    return "everyone" if isinstance(value, str) else "some"


Readers = Annotated[
    Annotated[Literal["everyone"], Tag("everyone")]
    | Annotated[tuple[LowerName, ...], Field(min_length=1), Tag("some")],
    Discriminator(_find_readers_shape),
]
"""Components or nodes by name, or everyone."""


class Variable(Part):
    """One environment variable; an empty one counts as unset."""

    type: VariableType = Field(description="Its type, by which the text is parsed and checked at the start.")
    doc: Doc = Field(description="What it sets; in the reference page, `.env.example` and error messages.")
    read_by: Readers = Field(
        description="Components or nodes that read it, or `everyone`; the settings of others do not have it."
    )
    unit: str | None = Field(default=None, description="Its unit, such as `s` or `ms`, for readers.")
    default: bool | int | float | str | None = Field(
        default=None,
        description="Value where it is unset; without one the setting is `None`, unless it is required.",
    )
    default_from: Literal["hostname", "process"] | None = Field(
        default=None,
        description="Default that is found at the start: the hostname, or a name that no other process has.",
    )
    required: bool = Field(default=False, description="Whether a node refuses to start where it is unset.")
    min: int | float | None = Field(default=None, description="Least value; a smaller one stops the start.")
    max: int | float | None = Field(default=None, description="Greatest value; a larger one stops the start.")
    clamp: Clamp | None = Field(
        default=None, description="Bounds that an int is moved to, where `min` and `max` refuse it."
    )
    choices: tuple[str, ...] = Field(
        default=(), description="Values of a `choice`; any other one stops the start."
    )
    pattern: str | None = Field(
        default=None, description="Python regular expression that the whole of a `string` must match."
    )
    role: EngineRole | None = Field(
        default=None,
        description="Setting of the engine that the variable holds, whatever its name is; one variable at "
        "most for each role.",
    )
    also_named: tuple[UpperName, ...] = Field(
        default=(), description="Other names of it, which count in this order where it is unset."
    )


class VariableRule(Part):
    """A relation between variables that a node checks when it starts, if it reads them all."""

    doc: Doc = Field(description="Why it must hold; the end of the error message.")
    variable: UpperName | None = Field(
        default=None, description="Variable that one of the two next keys compares."
    )
    greater_than: UpperName | None = Field(
        default=None, description="Variable whose value `variable` must exceed."
    )
    less_than_count_of: UpperName | None = Field(
        default=None,
        description="Variable of type addresses: `variable` must be less than the number of its elements, "
        "as an index into them is.",
    )
    together: tuple[UpperName, ...] = Field(
        default=(), description="Variables of which all are set, or none; in place of the keys above."
    )


class EnvironmentFile(Part):
    """Environment variables, their bounds and readers, and the rules between them."""

    variables: dict[UpperName, Variable] = Field(description="Variables by name.")
    prefix: Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9]*_$")] | None = Field(
        default=None,
        description="Prefix of names that only this system uses: a node warns of a variable with it that "
        "is not declared, as of a typing error.",
    )
    rules: tuple[VariableRule, ...] = Field(default=(), description="Relations between variables.")
