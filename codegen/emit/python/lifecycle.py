"""Guard tables of the lifecycle: which edges there are and who may drive each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from codegen.emit.artefact import Artefact, render_template, to_camel_case
from codegen.emit.http.openapi_schemas import UUID, UUID4
from codegen.emit.python.records import held_messages, in_s3, kept_entities
from codegen.language.lifecycle import Entity
from codegen.language.types import MessageField
from codegen.source.spec import Spec, field_enum

_S3_IMPORT = "from runtime.model.kept_in_s3 import"
_S3_TABLES = (
    *("KeptInS3", "KeyIndex", "Large", "Polling", "Repairing", "Retiring", "Schema", "Shape", "Shard"),
)
_IMPORT = "from runtime.model.lifecycles import"
_TABLES = (
    *(
        "Backoff",
        "Ceiling",
        "Due",
        "Fill",
        "GiveUp",
        "Growth",
        "Holder",
        "Index",
        "Kept",
        "KeptInRedis",
        "KeptInSqlite",
    ),
    *("Lease", "Lifecycle", "Outbox", "Parts", "Remembered", "Shift", "Take", "Transition"),
)


class Fields(NamedTuple):
    """What a store that holds text has to know of the fields of a record."""

    types: dict[str, str]
    optional: list[str]
    words: dict[str, dict[str, str]]


def emit(spec: Spec) -> Iterator[Artefact]:
    held = held_messages(spec) if in_s3(spec) else []
    data: dict[str, Any] = {
        "entities": {name: (row, states_of(spec, row)) for name, row in spec.lifecycle.entities.items()},
        "imported": sorted(_enum_values(spec)),
        "records": sorted([*(f"{to_camel_case(name)}Record" for name in kept_entities(spec)), *held]),
        "values_of": lambda entity, values: _literals(spec, entity, values),
        "fields_of": lambda entity: fields_of(spec, entity.record),
        "in_s3": lambda name, entity: _in_s3(spec, name, entity),
        "key_form": lambda entity: _key_form(spec, entity),
    }
    # What the text turns out to use is imported on one line, as a person would.
    text = render_template("python/lifecycle/lifecycle.py.j2", spec, tables="tables", **data)
    for imported, tables in ((_S3_IMPORT, _S3_TABLES), (_IMPORT, _TABLES)):
        used = ", ".join(name for name in tables if re.search(rf"\b{name}\b[\](]", text))
        line = f"{imported} {used}\n" if used else ""
        text = text.replace(f"{imported} tables\n", line, 1)
    yield Artefact(f"generated/{spec.name}/lifecycle.py", text)


def _key_form(spec: Spec, entity: Entity) -> str | None:
    """What a key must match where it becomes a part of other keys; None where any text can be one."""
    rules = spec.messages[entity.record].fields[entity.key].rules
    if not entity.in_redis and not entity.in_s3:
        return None
    if rules.uuid or rules.uuid4:
        return UUID4 if rules.uuid4 else UUID
    return rules.pattern


def _in_s3(spec: Spec, name: str, entity: Entity) -> str:
    """How a bucket keeps an entity, as the engine is told."""
    rows = spec.messages[entity.record].fields
    return render_template(
        "python/lifecycle/lifecycle_s3.j2",
        spec,
        row=entity.in_s3,
        made=f"{to_camel_case(name)}Record",
        fields=fields_of(spec, entity.record),
        messages={each: fields_of(spec, each) for each in held_messages(spec, entity)},
        time_in=lambda key: time_in(key, rows),
    )


def time_in(key: str, rows: Mapping[str, MessageField]) -> str | None:
    """The time of the record that is in the key of an index, if one is."""
    named = re.findall(r"\{([a-z0-9_]+)\}", key)
    return next((each for each in named if each in rows and rows[each].type == "timestamp"), None)


def states_of(spec: Spec, entity: Entity) -> list[str]:
    """The states of an entity: every value of its status enum but the unspecified one."""
    enum = field_enum(spec, spec.messages[entity.record].fields[entity.status])
    return [name for name, row in enum.values.items() if row.number != 0] if enum else []


def fields_of(spec: Spec, message: str) -> Fields:
    """The fields of a record, or of a message in one, as text has them."""
    rows = spec.messages[message].fields
    enums = {name: enum for name, row in rows.items() if (enum := field_enum(spec, row))}
    return Fields(
        types={name: "enum" if name in enums else row.type for name, row in rows.items()},
        optional=[name for name, row in rows.items() if row.optional],
        words={name: {value: enum.word(value) for value in enum.values} for name, enum in enums.items()},
    )


def _enum_values(spec: Spec) -> set[str]:
    """Every value of an enum that may be named; those that are not are left out when it is formatted."""
    found: set[str] = set()
    for entity in spec.lifecycle.entities.values():
        found.update(entity.shown.as_.values() if entity.shown else ())
        for field in spec.messages[entity.record].fields.values():
            enum = field_enum(spec, field)
            found.update(enum.values if enum else ())
    return found


def _literals(spec: Spec, entity: Entity, values: Mapping[str, object]) -> str:
    """What fields are set to, or must be, as Python; the values of enums are constants."""
    rows = spec.messages[entity.record].fields
    texts = {
        name: str(value) if field_enum(spec, rows[name]) else repr(value) for name, value in values.items()
    }
    return "{" + ", ".join(f"{name!r}: {text}" for name, text in texts.items()) + "}"
