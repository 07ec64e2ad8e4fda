"""Base model and common name types of the spec language."""

from __future__ import annotations

import math
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


_WANTED = {"number": "a number that is not negative", "env": "{env: VARIABLE}", "field": "{field: name}"}


def _read(kinds: tuple[str, ...]) -> BeforeValidator:
    *others, last = (_WANTED[kind] for kind in kinds)
    wanted = f"{', '.join(others)} or {last}" if others else last

    def read(value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, str) and (info.context or {}).get("canonical"):
            return value
        is_number = "number" in kinds and isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and 0 <= value < math.inf:
            return value
        if isinstance(value, dict) and len(value) == 1:
            ((kind, name),) = value.items()
            if kind in kinds and isinstance(name, str) and re.match(_PATTERNS[kind], name):
                return name
        raise PydanticCustomError("number_source", f"It must be {wanted}")

    return BeforeValidator(read)


def _describe(kinds: tuple[str, ...]) -> WithJsonSchema:
    options: list[dict[str, Any]] = [
        {
            "type": "object",
            "properties": {kind: {"type": "string", "pattern": _PATTERNS[kind]}},
            "required": [kind],
            "additionalProperties": False,
        }
        for kind in kinds
        if kind != "number"
    ]
    options += [{"type": "number", "minimum": 0}] if "number" in kinds else []
    return WithJsonSchema(options[0] if len(options) == 1 else {"anyOf": options})


def _write(source: str | float) -> dict[str, str] | float:
    return {"env" if source.isupper() else "field": source} if isinstance(source, str) else source


_WRITTEN = PlainSerializer(_write, return_type=dict[str, str] | int | float)
NumberSource = Annotated[str, _read(("env", "field")), _describe(("env", "field")), _WRITTEN]
"""A variable, or a field of the record. The value is the name: that of a variable is in upper case."""
Amount = Annotated[
    str | int | float, _read(("number", "env", "field")), _describe(("number", "env", "field")), _WRITTEN
]
"""A number, a variable, or a field of the record, which is in lower case."""
