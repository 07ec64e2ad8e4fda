"""Base model and common name types of the spec language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError


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

CANONICAL: Mapping[str, bool] = {"canonical": True}
"""The context in which a stored form is read: there a source is its name alone, upper case for a variable."""
_PATTERNS = {
    "env": r"^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$",
    "field": r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?$",
}


def _read(kinds: tuple[str, ...]) -> BeforeValidator:
    wanted = " or ".join({"env": "{env: VARIABLE}", "field": "{field: name}"}[kind] for kind in kinds)

    def read(value: Any, info: ValidationInfo) -> str:
        if isinstance(value, str) and (info.context or {}).get("canonical"):
            return value
        if isinstance(value, dict) and len(value) == 1:
            ((kind, name),) = value.items()
            if kind in kinds and isinstance(name, str) and re.match(_PATTERNS[kind], name):
                return name
        raise PydanticCustomError("number_source", f"It must be {wanted}")

    return BeforeValidator(read)


def _describe(kinds: tuple[str, ...]) -> WithJsonSchema:
    options = [
        {
            "type": "object",
            "properties": {kind: {"type": "string", "pattern": _PATTERNS[kind]}},
            "required": [kind],
            "additionalProperties": False,
        }
        for kind in kinds
    ]
    return WithJsonSchema(options[0] if len(options) == 1 else {"anyOf": options})


_WRITTEN = PlainSerializer(
    lambda name: {"env" if name.isupper() else "field": name}, return_type=dict[str, str]
)
NumberSource = Annotated[str, _read(("env", "field")), _describe(("env", "field")), _WRITTEN]
"""A variable, or a field of the record. The value is the name: that of a variable is in upper case."""
FieldSource = Annotated[str, _read(("field",)), _describe(("field",)), _WRITTEN]
"""A field of the record, or of a message in it."""
