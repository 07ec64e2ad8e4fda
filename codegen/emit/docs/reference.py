"""Reference page of a system, and a diagram of the lifecycle of each entity."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from codegen.diagram import Edge, draw_state_diagram, format_mermaid
from codegen.emit.artefact import Artefact, render_template
from codegen.emit.docs import (
    reference_deployments,
    reference_lifecycle,
    reference_metrics,
    reference_services,
)
from codegen.emit.docs.markdown import code, codes, prose
from codegen.emit.docs.reference_policies import render_policies
from codegen.language.lifecycle import Entity
from codegen.source.spec import Spec

FOLDER = "docs/reference"
"""The folder of generated and hand-written reference pages."""


def emit(spec: Spec) -> Iterator[Artefact]:
    """Emit `<system>.md`, and `<system>/lifecycle-<entity>.svg` beside it."""
    text = render_template(
        "docs/index.md.j2",
        spec,
        deployments=reference_deployments,
        services=reference_services,
        lifecycle=reference_lifecycle,
        policies=render_policies(spec),
        metrics=reference_metrics,
        mermaid=lambda entity: format_mermaid(
            entity.initial, entity.terminal, _list_edges(entity), entity.create.to
        ),
        picture=partial(_name_picture, spec),
        title=_format_title,
        code=code,
        codes=codes,
        prose=prose,
        components=lambda entity: (entity.held_by, *entity.shared_with),
        silent=_list_silent_principals(spec),
    )
    yield Artefact(f"{FOLDER}/{spec.name}.md", text)
    for name in spec.lifecycle.entities:
        yield Artefact(f"{FOLDER}/{_name_picture(spec, name)}", draw_lifecycle(spec, name))


def draw_lifecycle(spec: Spec, name: str) -> str:
    """Draw the lifecycle of an entity as SVG."""
    entity = spec.lifecycle.entities[name]
    states = reference_lifecycle.list_state_names(spec, entity)
    return draw_state_diagram(
        _format_title(name), states, entity.initial, entity.terminal, _list_edges(entity)
    )


def _list_edges(entity: Entity) -> list[Edge]:
    return [
        Edge(source, row.to, name, ", ".join(row.by))
        for name, row in entity.transitions.items()
        for source in row.sources
    ]


def _name_picture(spec: Spec, entity: str) -> str:
    return f"{spec.name}/lifecycle-{entity}.svg"


def _format_title(entity: str) -> str:
    return f"Lifecycle of {entity.replace('_', ' ')}"


def _list_silent_principals(spec: Spec) -> list[str]:
    """List the principals that may call no method."""
    callers = {caller for caller, _ in spec.permissions}
    return [name for name in spec.callers.principals if name not in callers]
