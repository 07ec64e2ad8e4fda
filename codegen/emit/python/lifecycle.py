"""Lifecycle tables: the states and edges of each entity, the guards of each edge, and its store."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from codegen.emit.artefact import Artefact, render_template, to_camel_case
from codegen.emit.http.openapi_schemas import UUID, UUID4
from codegen.emit.python.records import list_nested_messages, select_s3_entities, select_stored_entities
from codegen.language.lifecycle import Entity
from codegen.language.storage.layouts import Words
from codegen.language.types import MessageField
from codegen.source.spec import Spec, field_enum

_TABLES = {
    "runtime.model.lifecycles": (
        *("Backoff", "Ceiling", "Due", "Default", "DeadLetter", "Multiplier", "Holder", "Index", "Lease"),
        *("Lifecycle", "Overrides", "Parts", "Placed", "Update", "Take", "Transition"),
    ),
    "runtime.stores.layouts.memory": ("KeptInMemory",),
    "runtime.stores.layouts.postgres": ("KeptInPostgres",),
    "runtime.stores.layouts.redis": ("KeptInRedis", "Outbox", "Remembered"),
    "runtime.stores.layouts.s3": (
        *(
            "KeptInBucket",
            "KeptInS3",
            "KeyIndex",
            "Large",
            "Polling",
            "Repairing",
            "Retiring",
            "Schema",
            "Shape",
            "Shard",
        ),
    ),
    "runtime.stores.layouts.sqlite": ("KeptInSqlite",),
}
"""The tables of the engine by their modules."""


class FieldTypes(NamedTuple):
    """Types of the fields of a record, for a store whose values are text."""

    types: dict[str, str]
    optional: list[str]
    words: dict[str, dict[str, str]]


def emit(spec: Spec) -> Iterator[Artefact]:
    nested = list_nested_messages(spec) if select_s3_entities(spec) else []
    data: dict[str, Any] = {
        "entities": {name: (row, list_states(spec, row)) for name, row in spec.lifecycle.entities.items()},
        "imported": sorted(list_enum_values(spec)),
        "records": sorted(
            [*(f"{to_camel_case(name)}Record" for name in select_stored_entities(spec)), *nested]
        ),
        "stored": select_stored_entities(spec),
        "literals": lambda entity, values: _format_literals(spec, entity, values),
        "field_types": lambda entity: describe_fields(spec, entity.record),
        "bucket_table": lambda name, entity: render_bucket(spec, name, entity),
        "has_layout": _has_layout,
        "key_pattern": lambda entity: _format_key_pattern(spec, entity),
    }
    # Import only the tables that the text uses, on one line.
    layouts = [module.rpartition(".")[2] for module in _TABLES if ".layouts." in module]
    text = render_template("python/lifecycle/lifecycle.py.j2", spec, tables="tables", layouts=layouts, **data)
    for module, tables in _TABLES.items():
        used = ", ".join(name for name in tables if re.search(rf"\b{name}\b[\](]", text))
        line = f"from {module} import {used}\n" if used else ""
        text = text.replace(f"from {module} import tables\n", line, 1)
    yield Artefact(f"generated/{spec.name}/lifecycle.py", text)


def _format_key_pattern(spec: Spec, entity: Entity) -> str | None:
    """Format the pattern of a key that becomes a part of other keys; None where any text is allowed."""
    rules = spec.messages[entity.record].fields[entity.key].rules
    if not entity.in_redis and not entity.in_s3:
        return None
    if rules.uuid or rules.uuid4:
        return UUID4 if rules.uuid4 else UUID
    return rules.pattern


def _has_layout(entity: Entity) -> bool:
    """Whether there is something to say about its storage: one in memory has its words alone."""
    layout = entity.in_memory
    return layout is None or layout.words != Words()


def render_bucket(spec: Spec, name: str, entity: Entity) -> str:
    """Render the table of an entity that is stored in a bucket; it is empty for any other."""
    rows, layout = spec.messages[entity.record].fields, entity.in_s3
    if layout is None:
        return ""
    keyed = (layout.keyed_by,) if layout.keyed_by else ()
    return render_template(
        "python/lifecycle/lifecycle_s3.j2",
        spec,
        row=layout,
        has_more_words=layout.words != Words(unique=keyed),
        record=f"{to_camel_case(name)}Record",
        fields=describe_fields(spec, entity.record),
        messages={each: describe_fields(spec, each) for each in list_nested_messages(spec, entity)},
        time_field=lambda key: find_time_field(key, rows),
    )


def find_time_field(key: str, rows: Mapping[str, MessageField]) -> str | None:
    """Find the timestamp field in the key of an index, if it has one."""
    named = re.findall(r"\{([a-z0-9_]+)\}", key)
    return next((each for each in named if each in rows and rows[each].type == "timestamp"), None)


def list_states(spec: Spec, entity: Entity) -> list[str]:
    """List the states of an entity: every value of its status enum except the unspecified one."""
    enum = field_enum(spec, spec.messages[entity.record].fields[entity.status])
    return [name for name, row in enum.values.items() if row.number != 0] if enum else []


def describe_fields(spec: Spec, message: str) -> FieldTypes:
    """Describe the fields of a record, or of a message in one, for a store whose values are text."""
    rows = spec.messages[message].fields
    enums = {name: enum for name, row in rows.items() if (enum := field_enum(spec, row))}
    return FieldTypes(
        types={name: "enum" if name in enums else row.type for name, row in rows.items()},
        optional=[name for name, row in rows.items() if row.optional],
        words={name: {value: enum.word(value) for value in enum.values} for name, enum in enums.items()},
    )


def list_enum_values(spec: Spec) -> set[str]:
    """List every enum value that may be used; the formatter removes the imports of unused ones."""
    found: set[str] = set()
    for entity in spec.lifecycle.entities.values():
        found.update(entity.public_status.as_.values() if entity.public_status else ())
        for field in spec.messages[entity.record].fields.values():
            enum = field_enum(spec, field)
            found.update(enum.values if enum else ())
    return found


def _format_literals(spec: Spec, entity: Entity, values: Mapping[str, object]) -> str:
    """Format values of fields as a Python dict; enum values are constants."""
    rows = spec.messages[entity.record].fields
    texts = {
        name: str(value) if field_enum(spec, rows[name]) else repr(value) for name, value in values.items()
    }
    return "{" + ", ".join(f"{name!r}: {text}" for name, text in texts.items()) + "}"
