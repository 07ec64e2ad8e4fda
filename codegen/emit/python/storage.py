"""Storage tables: the physical names of entities in the engines that deployments name."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, render_template, to_camel_case
from codegen.emit.python.lifecycle import (
    FieldTypes,
    describe_fields,
    list_enum_values,
    list_states,
    render_bucket,
)
from codegen.emit.python.records import list_nested_messages, select_s3_entities
from codegen.language.lifecycle import Entity
from codegen.source.spec import Spec


def emit(spec: Spec) -> Iterator[Artefact]:
    if not has_storage(spec):
        return
    placed = {engine: spec.placed_by(engine) for engine in spec.moved_to}
    in_buckets = [name for each in placed.values() for name in select_s3_entities(each)]
    records = [f"{to_camel_case(name)}Record" for name in in_buckets]
    text = render_template(
        "python/lifecycle/storage.py.j2",
        spec,
        engines={engine: _list_entities(each) for engine, each in placed.items()},
        imported=sorted(list_enum_values(spec)),
        records=sorted([*records, *(list_nested_messages(spec) if records else ())]),
    )
    yield Artefact(f"generated/{spec.name}/storage.py", text)


def has_storage(spec: Spec) -> bool:
    """Whether a deployment names an engine with physical names of its own."""
    return bool(spec.moved_to)


def _list_entities(moved: Spec) -> dict[str, tuple[Entity, list[str], FieldTypes, str]]:
    """List the entities with their states, their fields, and the table of those in a bucket."""
    return {
        name: (
            row,
            list_states(moved, row),
            describe_fields(moved, row.record),
            render_bucket(moved, name, row),
        )
        for name, row in moved.lifecycle.entities.items()
    }
