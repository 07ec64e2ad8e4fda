"""Entities that a server keeps, as frozen dataclasses: a field for each field of the record's message."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, fill
from codegen.language.lifecycle import Entity
from codegen.language.types import MessageField
from codegen.spec import SCALARS, Spec


def emit(spec: Spec) -> Iterator[Artefact]:
    kept = kept_entities(spec)
    if kept:
        rows = {name: spec.messages[entity.record] for name, entity in kept.items()}
        text = fill(
            "python/records.py.j2", spec, rows=rows, kept=kept, python_type=lambda row: python_type(spec, row)
        )
        yield Artefact(f"generated/{spec.name}/records.py", text)


def kept_entities(spec: Spec) -> dict[str, Entity]:
    """The entities that a server keeps."""
    return {name: row for name, row in spec.lifecycle.entities.items() if row.kept_in}


def in_postgres(spec: Spec) -> dict[str, Entity]:
    """The entities that PostgreSQL keeps."""
    return {name: row for name, row in spec.lifecycle.entities.items() if row.in_postgres}


def in_redis(spec: Spec) -> dict[str, Entity]:
    """The entities that Redis keeps."""
    return {name: row for name, row in spec.lifecycle.entities.items() if row.in_redis}


def python_type(spec: Spec, row: MessageField) -> str:
    """The type of a record's field; states are numbers, as everywhere in Python."""
    if row.type == "repeated string":
        return "tuple[str, ...]"
    known = "datetime" if row.type == "timestamp" else "int" if row.type in spec.enums else SCALARS[row.type]
    return f"{known} | None" if row.optional else known
