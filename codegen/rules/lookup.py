"""Lookups that several rules share: fields of messages, values of fields, methods, principals."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
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
    """Why a value is not valid for a field, as the end of a sentence, and a hint."""

    problem: str
    hint: str


def iter_methods(spec: Spec) -> Iterator[tuple[MethodRow, Path]]:
    """Iterate over all methods, each with its path in services.yaml."""
    for row in spec.methods.values():
        yield row, ("services", row.service_name, "methods", row.name)


def iter_types(spec: Spec) -> Iterator[tuple[Path, EnumType | MessageType, Members]]:
    """Iterate over all types, each with its members and their path in types.yaml."""
    for proto, types in spec.types.root.items():
        for name, enum in types.enums.items():
            yield (proto, "enums", name, "values"), enum, enum.values
        for name, message in types.messages.items():
            yield (proto, "messages", name, "fields"), message, message.fields


def format_enum_prefix(enum: str) -> str:
    """Format the prefix of the values of an enum: `JobStatus` -> `JOB_STATUS_`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", enum).upper() + "_"


def get_fields(spec: Spec, message: str) -> Mapping[str, MessageField] | None:
    """Get the fields of a message; None if it is not defined."""
    found = spec.messages.get(message)
    return found.fields if found else None


def get_request_fields(spec: Spec, ref: str | None) -> Mapping[str, MessageField] | None:
    """Get the fields of the request of `Service.Method`; None if either is not defined."""
    row = spec.methods.get(ref or "")
    return get_fields(spec, row.request) if row else None


def is_other_type(spec: Spec, field: MessageField, *wanted: str) -> bool:
    """Whether a field has a type that is defined and is none of the wanted ones."""
    ref = type_ref(field.type)
    known = ref.name in SCALARS or ref.name in spec.enums or ref.name in spec.messages
    return known and field.type not in wanted


def find_misfit(spec: Spec, type_text: str, value: object) -> Misfit | None:
    """Find why a value is not valid for a field type; None if it is, or the type is not defined."""
    ref, text = type_ref(type_text), json.dumps(value)
    if ref.kind != "single" or ref.name in spec.messages:
        return Misfit(f"is of type {type_text}, which has no simple values", "Name another field.")
    if enum := spec.enums.get(ref.name):
        if isinstance(value, str) and (value in enum.values or value in spec.dropped):
            return None
        return Misfit(f"is a {ref.name}, which has no value {text}", suggest(str(value), enum.values))
    if ref.name not in SCALARS:
        return None
    python = SCALARS[ref.name]
    if type(value) not in _KINDS.get(python, ()):
        hint = f"Its values are {_WORDS[python]}."
        return Misfit(f"is of type {ref.name}, which {text} is not", hint)
    least, greatest = RANGES.get(ref.name, (None, None))
    if (
        least is not None
        and greatest is not None
        and isinstance(value, int)
        and not least <= value <= greatest
    ):
        return Misfit(f"is of type {ref.name}, which {text} is not", f"It goes from {least} to {greatest}.")
    return None


def format_states(states: Iterable[str]) -> str:
    """Format states as `A`, or as `A, B and C`."""
    *others, last = states
    return f"{', '.join(others)} and {last}" if others else last


def format_list(names: list[str]) -> str:
    """Format names as `'a', 'b' and 'c'`."""
    quoted = [f"'{name}'" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]]) if len(quoted) > 1 else "".join(quoted)


def list_external_principals(spec: Spec) -> list[str]:
    """List the principals that are no component: they call from outside of a deployment."""
    return [name for name in spec.callers.principals if name not in spec.services.components]


def find_public_methods(spec: Spec) -> set[str]:
    """Find the methods that an external principal may call."""
    external = set(list_external_principals(spec))
    return {ref for principal, ref in spec.permissions if principal in external and ref in spec.methods}
