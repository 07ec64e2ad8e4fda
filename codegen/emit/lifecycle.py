"""Guard tables of the lifecycle: which edges there are and who may drive each."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, camel, fill
from codegen.emit.records import kept_entities
from codegen.language.lifecycle import Entity
from codegen.spec import Spec, field_enum


def emit(spec: Spec) -> Iterator[Artefact]:
    entities = {name: (row, states_of(spec, row)) for name, row in spec.lifecycle.entities.items()}
    shown = {value for row, _ in entities.values() for value in (row.shown.as_.values() if row.shown else ())}
    imported = sorted({state for _, states in entities.values() for state in states} | shown)
    records = sorted(f"{camel(name)}Record" for name in kept_entities(spec))
    yield Artefact(
        f"generated/{spec.name}/lifecycle.py",
        fill("python/lifecycle.py.j2", spec, entities=entities, imported=imported, records=records),
    )


def states_of(spec: Spec, entity: Entity) -> list[str]:
    """The states of an entity: every value of its status enum but the unspecified one."""
    enum = field_enum(spec, spec.messages[entity.record].fields[entity.status])
    return [name for name, row in enum.values.items() if row.number != 0] if enum else []
