"""Records of stored entities as frozen structs: a field for each field of the record's message."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, render_template
from codegen.language.lifecycle import Entity
from codegen.language.types import MessageField
from codegen.source.spec import SCALARS, Spec, type_ref


def emit(spec: Spec) -> Iterator[Artefact]:
    stored = select_stored_entities(spec)
    if stored:
        rows = {name: spec.messages[entity.record] for name, entity in stored.items()}
        text = render_template(
            "python/records.py.j2",
            spec,
            rows=rows,
            entities=stored,
            nested={name: spec.messages[name] for name in list_nested_messages(spec)},
            python_type=lambda row: to_python_type(spec, row),
            default=lambda row: format_default(spec, row),
        )
        yield Artefact(f"generated/{spec.name}/records.py", text)


def list_nested_messages(spec: Spec, of: Entity | None = None) -> list[str]:
    """List the messages inside records, or inside one record, in order of dependency."""
    found: list[str] = []

    def add_nested(message: str) -> None:
        for row in spec.messages[message].fields.values():
            inner = type_ref(row.type).name
            if inner in spec.messages and inner not in found:
                add_nested(inner)
                found.append(inner)

    for entity in [of] if of else select_stored_entities(spec).values():
        add_nested(entity.record)
    return found


def select_stored_entities(spec: Spec) -> dict[str, Entity]:
    """Select the entities that have a record class: all of them, whichever engine keeps them."""
    return spec.lifecycle.entities


def select_postgres_entities(spec: Spec) -> dict[str, Entity]:
    """Select the entities that PostgreSQL stores."""
    return {name: row for name, row in spec.lifecycle.entities.items() if row.in_postgres}


def select_s3_entities(spec: Spec) -> dict[str, Entity]:
    """Select the entities that are objects of a bucket."""
    return {name: row for name, row in spec.lifecycle.entities.items() if row.in_s3}


def to_python_type(spec: Spec, row: MessageField) -> str:
    """Convert the type of a field to Python; enums are integers, as in the generated messages."""
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


def format_default(spec: Spec, row: MessageField) -> str:
    """Format the default of a field."""
    kind, inner, _ = type_ref(row.type)
    if kind != "single":
        return "()" if kind == "repeated" else "_field(default_factory=dict)"
    if row.optional:
        return "None"
    return f"{inner}()" if inner in spec.messages else _DEFAULTS[to_python_type(spec, row)]
