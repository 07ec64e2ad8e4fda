"""Base model and common name types of the spec language."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints


class Part(BaseModel):
    """A piece of a spec: immutable, and with no room for keys the language does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


def get_value(part: object, key: str, default: Any = None) -> Any:
    """Return the value of a key as the spec spells it; some are reserved in Python, and end in `_` there."""
    fields = getattr(type(part), "model_fields", {})
    return getattr(part, key if key in fields else f"{key}_", default)


LowerName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$")]
"""A name in lower case with underscores: components, principals, conditions, fields."""

UpperName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$")]
"""A name in upper case with underscores: variables, enum values, states."""

TypeName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Za-z0-9]*$")]
"""A name in camel case: messages, enums, services, methods."""

MethodRef = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Za-z0-9]*\.[A-Z][A-Za-z0-9]*$")]
"""A method as `Service.Method`."""

Doc = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
"""A sentence for readers of the generated files."""

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
