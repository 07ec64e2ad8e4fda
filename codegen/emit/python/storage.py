"""Storage tables: the physical names of entities in the engines that deployments name."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, render_template
from codegen.emit.python.lifecycle import describe_fields, list_enum_values, list_states
from codegen.language.lifecycle import Entity
from codegen.source.spec import Spec


def emit(spec: Spec) -> Iterator[Artefact]:
    if not has_storage(spec):
        return
    engines = {engine: _list_entities(spec.placed_by(engine)) for engine in spec.moved_to}
    text = render_template(
        "python/lifecycle/storage.py.j2",
        spec,
        engines=engines,
        imported=sorted(list_enum_values(spec)),
    )
    yield Artefact(f"generated/{spec.name}/storage.py", text)


def has_storage(spec: Spec) -> bool:
    """Whether a deployment names an engine with physical names of its own."""
    return bool(spec.moved_to)


def _list_entities(moved: Spec) -> dict[str, tuple[Entity, list[str], dict[str, dict[str, str]]]]:
    """List the entities with their states, and what the values of their enums are called."""
    return {
        name: (row, list_states(moved, row), describe_fields(moved, row.record).words)
        for name, row in moved.lifecycle.entities.items()
    }
