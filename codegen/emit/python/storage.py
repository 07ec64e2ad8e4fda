"""Storage tables: the physical names of entities in the engines that deployments name."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, render_template
from codegen.emit.python.lifecycle import describe_fields, list_enum_values, list_states
from codegen.source.spec import Spec


def emit(spec: Spec) -> Iterator[Artefact]:
    if not has_storage(spec):
        return
    moved = spec.on_sqlite()
    entities = {
        name: (row, list_states(moved, row), describe_fields(moved, row.record).words[row.status])
        for name, row in moved.lifecycle.entities.items()
    }
    text = render_template(
        "python/lifecycle/storage.py.j2",
        moved,
        engines={"sqlite": entities},
        imported=sorted(list_enum_values(moved)),
    )
    yield Artefact(f"generated/{spec.name}/storage.py", text)


def has_storage(spec: Spec) -> bool:
    """Whether a deployment names an engine with physical names of its own."""
    return any(each.engine == "sqlite" for each in spec.deployments.root.values())
