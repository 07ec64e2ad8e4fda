"""What several rules look up: the fields of a request, and whether a value fits a field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from codegen.diagnostics import suggest
from codegen.language.types import EnumType, EnumValue, MessageField, MessageType
from codegen.source.spec import SCALARS, MethodRow, Spec, type_ref
from codegen.source.yaml_reader import Path

Members = Mapping[str, EnumValue] | Mapping[str, MessageField]

RANGES = {
    "int32": (-(2**31), 2**31 - 1),
    "sint32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "sint64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
"""The least and the greatest number of each integer type."""

_KINDS: dict[str, tuple[type, ...]] = {"str": (str,), "bool": (bool,), "int": (int,), "float": (int, float)}
_WORDS = {
    "str": "text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "bytes": "bytes, which a spec cannot say",
    "Timestamp": "times, which a spec cannot say",
}

TIMES = ("int64", "uint64", "timestamp")
"""The types that a time of a record may have: milliseconds, or a time by itself."""


class Misfit(NamedTuple):
    """Why a value is no value of a field, as the end of a sentence, and a way out."""

    problem: str
    hint: str


def method_paths(spec: Spec) -> Iterator[tuple[MethodRow, Path]]:
    """Every method and the path to it in services.yaml."""
    for row in spec.methods.values():
        yield row, ("services", row.service_name, "methods", row.name)


def members_of_types(spec: Spec) -> Iterator[tuple[Path, EnumType | MessageType, Members]]:
    """Every type with its members and the path to them in types.yaml."""
    for proto, types in spec.types.root.items():
        for name, enum in types.enums.items():
            yield (proto, "enums", name, "values"), enum, enum.values
        for name, message in types.messages.items():
            yield (proto, "messages", name, "fields"), message, message.fields


def enum_prefix(enum: str) -> str:
    """`JobStatus` -> `JOB_STATUS_`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", enum).upper() + "_"


def fields_of(spec: Spec, message: str) -> Mapping[str, MessageField] | None:
    """The fields of a message, or None if there is no such message to look into."""
    found = spec.messages.get(message)
    return found.fields if found else None


def request_of(spec: Spec, ref: str | None) -> Mapping[str, MessageField] | None:
    """The fields of the request of `Service.Method`, or None if there is none to look into."""
    row = spec.methods.get(ref or "")
    return fields_of(spec, row.request) if row else None


def is_other_type(spec: Spec, field: MessageField, *wanted: str) -> bool:
    """Whether a field is of none of the types; not so if its type is not known at all."""
    ref = type_ref(field.type)
    known = ref.name in SCALARS or ref.name in spec.enums or ref.name in spec.messages
    return known and field.type not in wanted


def misfit(spec: Spec, type_text: str, value: object) -> Misfit | None:
    """What keeps a value from being one of a field type; None if nothing does, or the type is not known."""
    ref, shown = type_ref(type_text), json.dumps(value)
    if ref.kind != "single" or ref.name in spec.messages:
        return Misfit(f"is of type {type_text}, which has no simple values", "Name another field.")
    if enum := spec.enums.get(ref.name):
        if isinstance(value, str) and (value in enum.values or value in spec.dropped):
            return None
        return Misfit(f"is a {ref.name}, which has no value {shown}", suggest(str(value), enum.values))
    if ref.name not in SCALARS:
        return None
    python = SCALARS[ref.name]
    if type(value) not in _KINDS.get(python, ()):
        hint = f"Its values are {_WORDS[python]}."
        return Misfit(f"is of type {ref.name}, which {shown} is not", hint)
    least, greatest = RANGES.get(ref.name, (None, None))
    if (
        least is not None
        and greatest is not None
        and isinstance(value, int)
        and not least <= value <= greatest
    ):
        return Misfit(f"is of type {ref.name}, which {shown} is not", f"It goes from {least} to {greatest}.")
    return None


def listed(names: list[str]) -> str:
    """`'a', 'b' and 'c'`."""
    quoted = [f"'{name}'" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]]) if len(quoted) > 1 else "".join(quoted)


def outsiders(spec: Spec) -> list[str]:
    """The principals that are no component: they call from outside of a deployment."""
    return [name for name in spec.callers.principals if name not in spec.services.components]


def public_methods(spec: Spec) -> set[str]:
    """The methods that someone outside may call."""
    outside = set(outsiders(spec))
    return {ref for principal, ref in spec.permissions if principal in outside and ref in spec.methods}
