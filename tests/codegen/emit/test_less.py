"""Runs that were counted without being failures are subtracted before the comparison, in every engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from codegen.emit.docs.reference_lifecycle import render_transitions
from codegen.emit.postgres import postgres_files
from codegen.emit.python import lifecycle
from codegen.emit.redis import lua_files
from codegen.emit.sqlite import sqlite_files
from codegen.source.spec import Spec
from tests.support.codegen.specs import change_spec, spec, texts


def make_spec(folder: str, entity: str, edge: str, field: str) -> Spec:
    """A spec in which an edge subtracts a field from its count."""

    def change(data: Any) -> None:
        data["entities"][entity]["transitions"][edge]["gives_up"]["less"] = field

    return change_spec(spec(f"tests/specs/{folder}"), "lifecycle", change)


@pytest.mark.parametrize(
    ("folder", "names", "emit", "path", "comparison"),
    [
        (
            "bakery",
            ("cake", "burn", "round"),
            postgres_files.emit,
            "sql/cake.sql",
            "orders.burnt - orders.round > ",
        ),
        ("laundry", ("shirt", "stain", "turn"), sqlite_files.emit, "sqlite/shirt.sql", "stains - turn > "),
        (
            "rental",
            ("bike", "drop", "trips"),
            lua_files.emit,
            "lua/bike/move_drop.lua",
            "tonumber(was_drops or 0) - tonumber(was_trips or 0) >= ",
        ),
    ],
)
def test_the_field_is_subtracted_where_the_store_decides(
    folder: str, names: tuple[str, str, str], emit: Callable[[Spec], Any], path: str, comparison: str
) -> None:
    """The statement or script compares the difference, and the text without the word has none."""
    entity, _edge, field = names
    emitted = texts(emit, make_spec(folder, *names))[f"generated/{folder}/{path}"]
    usual = texts(emit, spec(f"tests/specs/{folder}"))[f"generated/{folder}/{path}"]
    assert comparison in emitted and comparison not in usual
    (table,) = texts(lifecycle.emit, make_spec(folder, *names)).values()
    assert f'less="{field}"' in table
    assert f"less `{field}`" in render_transitions(make_spec(folder, *names).lifecycle.entities[entity])
