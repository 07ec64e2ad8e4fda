"""Runs that were counted without being failures are subtracted before the comparison, in every engine."""

from __future__ import annotations

from typing import Any

from codegen.emit.docs.reference_lifecycle import render_transitions
from codegen.emit.python import lifecycle
from codegen.source.spec import Spec
from tests.support.codegen.specs import change_spec, spec, texts


def make_spec(folder: str, entity: str, edge: str, field: str) -> Spec:
    """A spec in which an edge subtracts a field from its count."""

    def change(data: Any) -> None:
        data["entities"][entity]["transitions"][edge]["dead_letter"]["less"] = field

    return change_spec(spec(f"tests/specs/{folder}"), "lifecycle", change)


def test_the_field_is_in_the_table_and_on_the_page() -> None:
    """The engines read the table; people read the page."""
    folder, names = "bakery", ("cake", "burn", "round")
    entity, _edge, field = names
    (table,) = texts(lifecycle.emit, make_spec(folder, *names)).values()
    assert f'less="{field}"' in table
    assert f"less `{field}`" in render_transitions(make_spec(folder, *names).lifecycle.entities[entity])
