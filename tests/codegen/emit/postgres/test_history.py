"""The tables of the history, and how they follow the spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codegen.emit.postgres import postgres_files
from codegen.emit.postgres.history import histories, history_schema
from codegen.migrations import compute_schema_digest, derive_migration, write_next
from codegen.source.spec import Spec
from runtime.stores.postgres.statements import parse_statements
from tests.support.codegen import specs
from tests.support.codegen.specs import spec, texts

RENTAL = "tests/specs/rental"
OUTBOX = ("storage", "redis", "entities", "bike", "outbox")
BIKE = ("types", "yard", "messages", "BikeRow", "fields")


def change_at(of: Spec, path: tuple[str, ...], value: Any) -> Spec:
    """A spec with one value changed or removed."""
    file, *names, last = path

    def change(data: Any) -> None:
        for name in names:
            data = data[name]
        if value is None:
            del data[last]
        else:
            data[last] = value

    return specs.change_spec(of, file, change)


def test_a_column_for_each_field() -> None:
    """In the order of their numbers, with the type for the values of Redis."""
    history = histories(spec(RENTAL))["bike"]
    fields = spec(RENTAL).messages["BikeRow"].fields
    assert [*history.record] == sorted(fields, key=lambda name: fields[name].number)
    kinds = {
        name: history.record[name]
        for name in ("bike_id", "tools", "state", "drops", "left_at", "report", "mended")
    }
    assert kinds == {
        "bike_id": "text",
        "tools": "json",
        "state": "text",
        "drops": "bigint",
        "left_at": "timestamptz",
        "report": "json",
        "mended": "boolean",
    }


def test_statements_have_the_columns_of_the_tables() -> None:
    """The engine finds each by its name, with a list for each column."""
    emitted = texts(postgres_files.emit, spec(RENTAL))
    found = parse_statements(emitted["generated/rental/sql/bike.sql"])
    # The spec has no retention of the history, so that there is no statement to delete any of it.
    assert {*found} == {"write_changes", "write_ended", "get", "history"}
    assert "forget" in parse_statements(
        texts(postgres_files.emit, spec("spec/priority"))["generated/priority/sql/task.sql"]
    )
    history = histories(spec(RENTAL))["bike"]
    assert found["write_ended"].takes == dict.fromkeys(history.ended_columns, "text")
    assert "generated/rental/sql/van.sql" not in emitted
    assert history_schema(spec(RENTAL), "bike") in emitted["generated/rental/sql/schema.sql"]


def test_the_first_migration_creates_the_tables(tmp_path: Path) -> None:
    """And with the same spec there is no second one."""
    rental = spec(RENTAL)
    path = write_next(tmp_path, None, rental, "first")
    assert path is not None
    assert path.name == "0001_initial.sql"
    assert "CREATE TABLE bike_changes" in path.read_text()
    assert "CREATE TABLE old_bikes" in path.read_text()
    assert write_next(tmp_path, rental, rental, "nothing") is None


def test_a_new_field_is_a_new_column(tmp_path: Path) -> None:
    """Old rows have nothing in it."""
    write_next(tmp_path, None, spec(RENTAL), "first")
    wider = change_at(spec(RENTAL), (*BIKE, "colour"), {"number": 99, "type": "string", "optional": True})
    path = write_next(tmp_path, spec(RENTAL), wider, "A colour")
    assert path is not None
    assert path.name == "0002_a_colour.sql"
    assert "ALTER TABLE old_bikes ADD COLUMN IF NOT EXISTS colour text;" in path.read_text()
    assert compute_schema_digest(wider) in path.read_text()


def test_a_removed_field_keeps_its_column() -> None:
    """History is never deleted by a migration."""
    wider = change_at(spec(RENTAL), (*BIKE, "colour"), {"number": 99, "type": "string", "optional": True})
    assert derive_migration(wider, spec(RENTAL)) == ([], [])


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ((*BIKE, "mended", "type"), "string", "old_bikes.mended was boolean and becomes text."),
        (
            (*OUTBOX, "ended"),
            "older_bikes",
            "bike: its table of records was old_bikes and becomes older_bikes.",
        ),
        (OUTBOX, None, "bike has no history any more: say what becomes of its rows."),
    ],
)
def test_changes_that_need_a_decision(path: tuple[str, ...], value: Any, problem: str) -> None:
    """A type that changes, a table that is renamed, a history that ends."""
    _, problems = derive_migration(spec(RENTAL), change_at(spec(RENTAL), path, value))
    assert problems == [problem]


def test_a_history_that_begins_later_gets_its_tables_then() -> None:
    """An entity that had none gets both tables."""
    without = change_at(spec(RENTAL), OUTBOX, None)
    steps, problems = derive_migration(without, spec(RENTAL))
    assert (steps, problems) == ([history_schema(spec(RENTAL), "bike")], [])
