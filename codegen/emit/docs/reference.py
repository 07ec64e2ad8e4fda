"""The reference page of a system, and a picture of the life of each of its entities."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from codegen.diagram import Edge, draw_state_diagram, format_mermaid
from codegen.emit.artefact import Artefact, render_template
from codegen.emit.docs import reference_lifecycle, reference_metrics, reference_tables, tables
from codegen.emit.docs.markdown import code, codes, duration, prose
from codegen.emit.docs.policy_tables import policies
from codegen.language.lifecycle import Entity
from codegen.source.spec import Spec

FOLDER = "docs/reference"
"""Where the pages of systems are, beside those that people write."""


def emit(spec: Spec) -> Iterator[Artefact]:
    """`<system>.md`, and `<system>/lifecycle-<entity>.svg` beside it."""
    text = render_template(
        "docs/index.md.j2",
        spec,
        tables=tables,
        reference=reference_tables,
        lifecycle=reference_lifecycle,
        policies=policies(spec),
        measured=reference_metrics,
        mermaid=lambda entity: format_mermaid(entity.initial, entity.terminal, _edges(entity)),
        picture=partial(_picture, spec),
        title=_title,
        code=code,
        codes=codes,
        prose=prose,
        duration=duration,
        holders=lambda entity: (entity.held_by, *entity.shared_with),
        silent=_silent(spec),
    )
    yield Artefact(f"{FOLDER}/{spec.name}.md", text)
    for name in spec.lifecycle.entities:
        yield Artefact(f"{FOLDER}/{_picture(spec, name)}", drawing(spec, name))


def drawing(spec: Spec, name: str) -> str:
    """The life of an entity as a picture."""
    entity = spec.lifecycle.entities[name]
    states = reference_lifecycle.state_names(spec, entity)
    return draw_state_diagram(_title(name), states, entity.initial, entity.terminal, _edges(entity))


def _edges(entity: Entity) -> list[Edge]:
    return [Edge(row.from_, row.to, name, ", ".join(row.by)) for name, row in entity.transitions.items()]


def _picture(spec: Spec, entity: str) -> str:
    return f"{spec.name}/lifecycle-{entity}.svg"


def _title(entity: str) -> str:
    return f"Lifecycle of {entity.replace('_', ' ')}"


def _silent(spec: Spec) -> list[str]:
    """Principals that call nobody."""
    callers = {caller for caller, _ in spec.permissions}
    return [name for name in spec.callers.principals if name not in callers]
