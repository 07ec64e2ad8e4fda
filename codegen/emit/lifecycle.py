"""Guard tables of the lifecycle: which edges there are and who may drive each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from codegen.emit.artefact import Artefact, camel, fill
from codegen.emit.records import kept_entities
from codegen.language.lifecycle import Entity
from codegen.spec import Spec, field_enum

_IMPORT = "from runtime.lifecycles import"
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
    data: dict[str, Any] = {
        "entities": {name: (row, states_of(spec, row)) for name, row in spec.lifecycle.entities.items()},
        "imported": sorted(_enum_values(spec)),
        "records": sorted(f"{camel(name)}Record" for name in kept_entities(spec)),
        "values_of": lambda entity, values: _literals(spec, entity, values),
        "fields_of": lambda entity: fields_of(spec, entity),
    }
    # What the text turns out to use is imported on one line, as a person would.
    text = fill("python/lifecycle.py.j2", spec, tables="tables", **data)
    used = ", ".join(name for name in _TABLES if re.search(rf"\b{name}\b[\](]", text))
    yield Artefact(
        f"generated/{spec.name}/lifecycle.py", text.replace(f"{_IMPORT} tables\n", f"{_IMPORT} {used}\n", 1)
    )


def states_of(spec: Spec, entity: Entity) -> list[str]:
    """The states of an entity: every value of its status enum but the unspecified one."""
    enum = field_enum(spec, spec.messages[entity.record].fields[entity.status])
    return [name for name, row in enum.values.items() if row.number != 0] if enum else []


def fields_of(spec: Spec, entity: Entity) -> Fields:
    """The fields of an entity as text has them."""
    rows = spec.messages[entity.record].fields
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
