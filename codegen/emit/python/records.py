"""Entities that a server keeps, as frozen structs: a field for each field of the record's message."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, render_template
from codegen.language.lifecycle import Entity
from codegen.language.types import MessageField
from codegen.source.spec import SCALARS, Spec, type_ref


def emit(spec: Spec) -> Iterator[Artefact]:
    kept = kept_entities(spec)
    if kept:
        rows = {name: spec.messages[entity.record] for name, entity in kept.items()}
        text = render_template(
            "python/records.py.j2",
            spec,
            rows=rows,
            kept=kept,
            held={name: spec.messages[name] for name in held_messages(spec)},
            python_type=lambda row: python_type(spec, row),
            default_of=lambda row: default_of(spec, row),
        )
        yield Artefact(f"generated/{spec.name}/records.py", text)


def held_messages(spec: Spec, of: Entity | None = None) -> list[str]:
    """The messages that records hold, or one record, what others are made of first."""
    found: list[str] = []

    def visit(message: str) -> None:
        for row in spec.messages[message].fields.values():
            inner = type_ref(row.type).name
            if inner in spec.messages and inner not in found:
                visit(inner)
                found.append(inner)

    for entity in [of] if of else kept_entities(spec).values():
        visit(entity.record)
    return found


def kept_entities(spec: Spec) -> dict[str, Entity]:
    """The entities that a server keeps."""
    return {name: row for name, row in spec.lifecycle.entities.items() if row.kept_in}


def in_postgres(spec: Spec) -> dict[str, Entity]:
    """The entities that PostgreSQL keeps."""
    return {name: row for name, row in spec.lifecycle.entities.items() if row.in_postgres}


def in_redis(spec: Spec) -> dict[str, Entity]:
    """The entities that Redis keeps."""
    return {name: row for name, row in spec.lifecycle.entities.items() if row.in_redis}


def in_s3(spec: Spec) -> dict[str, Entity]:
    """The entities that are objects of a bucket."""
    return {name: row for name, row in spec.lifecycle.entities.items() if row.in_s3}


def python_type(spec: Spec, row: MessageField) -> str:
    """The type of a record's field; states are numbers, as everywhere in Python."""
    kind, inner, _ = type_ref(row.type)
    known = (
        "datetime" if inner == "timestamp" else "int" if inner in spec.enums else SCALARS.get(inner, inner)
    )
    if kind == "repeated":
        return f"tuple[{known}, ...]"
    if kind == "map":
        return f"Mapping[str, {known}]"
    return f"{known} | None" if row.optional else known


_DEFAULTS = {
    "str": '""',
    "int": "0",
    "bool": "False",
    "float": "0.0",
    "bytes": 'b""',
    "datetime": "_NEVER",
}


def default_of(spec: Spec, row: MessageField) -> str:
    """What a field is where nothing is said."""
    kind, inner, _ = type_ref(row.type)
    if kind != "single":
        return "()" if kind == "repeated" else "_field(default_factory=dict)"
    if row.optional:
        return "None"
    return f"{inner}()" if inner in spec.messages else _DEFAULTS[python_type(spec, row)]
