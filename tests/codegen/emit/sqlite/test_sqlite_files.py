"""The output for entities in a SQLite file, and the migrations from one form of it to the next."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codegen import migrations
from codegen.emit.sqlite import sqlite_files
from codegen.emit.sqlite.sqlite_entity import SqliteEntity
from codegen.source.spec import Spec
from codegen.sqlite_migrations import derive_migration
from runtime.stores.sqlite.statements import parse_statements
from tests.support.codegen.specs import FOLDERS, change_spec, spec, texts

LAUNDRY = "tests/specs/laundry"
_PART_OF_ORDER = re.compile("TEMP B-TREE FOR (RIGHT PART|LAST TERM) OF ORDER BY")
Change = Callable[[Any], None]


def create_tables(text: str) -> sqlite3.Connection:
    """A database in memory with a schema."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(text)
    return connection


def fields(data: Any) -> Any:
    return data["book"]["messages"]["ShirtRow"]["fields"]


def change_types(change: Change) -> Spec:
    """The laundry with other types."""
    spec_ = change_spec(spec(LAUNDRY), "types", change)
    # Properties that were computed from the types before are computed anew.
    spec_.__dict__.pop("messages", None)
    spec_.__dict__.pop("enums", None)
    return spec_


def change_lifecycles(change: Change) -> Spec:
    """The laundry with other lifecycles."""
    return change_spec(spec(LAUNDRY), "lifecycle", change)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_statement_can_be_prepared(folder: str) -> None:
    """SQLite itself finds no fault in any schema or statement."""
    of = spec(folder)
    if not sqlite_files.entities(of):
        assert texts(sqlite_files.emit, of) == {}
        return
    connection = create_tables(sqlite_files.schema(of))
    for name, entity in sqlite_files.entities(of).items():
        found = parse_statements(texts(sqlite_files.emit, of)[f"generated/{of.name}/sqlite/{name}.sql"])
        leased = {"claimable", "held"} if entity.row.lease else set()
        assert {"get", "insert", "write", "find_newest", "find_oldest", "count"} <= set(found)
        assert found.keys() & {"claimable", "held"} == leased
        for statement in found.values():
            connection.execute(f"EXPLAIN {fill(statement, entity)}", Nothing())


def fill(statement: str, entity: SqliteEntity) -> str:
    """A statement with what the engine puts into it."""
    changes = ", ".join(f"{each.name} = :record_{each.field}" for each in entity.columns)
    return statement.replace("{changes}", changes).replace("{filters}", f"{entity.status} = :state")


class Nothing(dict[str, None]):
    """Every parameter there is."""

    def __missing__(self, key: str) -> None:
        return None


def test_no_frequent_query_reads_a_whole_table() -> None:
    """Claims, due transitions and listings use an index."""
    connection = create_tables(sqlite_files.schema(spec("spec/queuey")))
    text = texts(sqlite_files.emit, spec("spec/queuey"))["generated/queuey/sqlite/job.sql"]
    entity, found = sqlite_files.entities(spec("spec/queuey"))["job"], parse_statements(text)
    names = ("claimable", "get", "find_by_idempotency_key", "due_abandon", "write", "history", "find_newest")
    for name in names:
        query = f"EXPLAIN QUERY PLAN {fill(found[name], entity)}"
        plan = " ".join(row[3] for row in connection.execute(query, Nothing()))
        # A claim reads the first entry of its index and no other.
        assert "SCAN" not in plan.replace("SCAN jobs USING INDEX jobs_acquirable", ""), (name, plan)
        # Those of equal time alone are sorted.
        assert "TEMP B-TREE" not in _PART_OF_ORDER.sub("", plan), (name, plan)


def wider(data: Any) -> None:
    fields(data)["colour"] = {"number": 20, "type": "string", "optional": True}
    fields(data)["washes"] = {"number": 21, "type": "uint32", "optional": True}


def narrower(data: Any) -> None:
    del data["entities"]["shirt"]["transitions"]["repent"]


def listed(data: Any) -> None:
    data["entities"]["shirt"]["listed_by"] = "changed_at"


def wordier(data: Any) -> None:
    """Words that need tables and columns of their own."""
    shirt = data["entities"]["shirt"]
    shirt |= {"unique_for": {"fabric": "SOAK_SECONDS"}, "expires": "SOAK_SECONDS"}
    shirt["transitions"]["stain"]["reason"] = "remark"


def without_socks(data: Any) -> None:
    del data["entities"]["sock"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (spec(LAUNDRY), change_types(wider)),
        (spec(LAUNDRY), change_lifecycles(narrower)),
        (change_lifecycles(narrower), spec(LAUNDRY)),
        (spec(LAUNDRY), change_lifecycles(listed)),
        (change_lifecycles(without_socks), spec(LAUNDRY)),
        (spec(LAUNDRY), change_lifecycles(wordier)),
    ],
    ids=["columns", "edge gone", "edge new", "listing", "entity", "words"],
)
def test_a_migrated_file_equals_a_fresh_one(old: Spec, new: Spec) -> None:
    """A file that was migrated has the columns, triggers and indexes of a fresh one, and its rows."""
    steps, problems = derive_migration(old, new)
    assert problems == []
    assert steps
    migrated, fresh = create_tables(sqlite_files.schema(old)), create_tables(sqlite_files.schema(new))
    migrated.execute("INSERT INTO shirts (shirt_id, label, fabric, price) VALUES ('s', 'l', 'f', 1.0)")
    migrated.executescript("\n".join(steps))
    assert migrated.execute("SELECT shirt_id, state FROM shirts").fetchall() == [("s", "waiting")]
    assert read_forms(migrated) == read_forms(fresh)
    assert derive_migration(new, new) == ([], [])


def read_forms(connection: sqlite3.Connection) -> dict[str, Any]:
    """The schema of a file, independent of how it was written."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    columns = {
        name: connection.execute(f"PRAGMA table_info({name})").fetchall()
        for kind, name, _ in rows
        if kind == "table"
    }
    return {**columns, **{name: text for kind, name, text in rows if kind != "table"}}


def change_names(**words: str) -> Spec:
    return change_spec(
        spec(LAUNDRY), "storage", lambda data: data["sqlite"]["entities"]["shirt"].update(words)
    )


@pytest.mark.parametrize(
    ("new", "question"),
    [
        (change_types(lambda data: fields(data).pop("note")), "shirts.note is gone"),
        (change_types(lambda data: fields(data)["soap"].update(type="string")), "shirts.soap was"),
        (change_types(lambda data: fields(data)["fabric"].update(optional=True)), "shirts.fabric was"),
        (change_types(lambda data: fields(data)["price"].update(type="uint32")), "shirts.price was"),
        (
            change_types(lambda data: fields(data).update(size={"number": 20, "type": "string"})),
            "shirts.size is new and needs a value",
        ),
        (change_names(table="blouses"), "its table was shirts and becomes blouses"),
        (change_names(history="stains"), "its history was shirt_changes and becomes stains"),
        (
            change_lifecycles(lambda data: data["entities"]["shirt"].pop("unique")),
            "its unique was label and becomes none",
        ),
        (change_lifecycles(without_socks), "sock is kept no longer"),
    ],
)
def test_changes_that_need_a_decision(new: Spec, question: str) -> None:
    _, problems = derive_migration(spec(LAUNDRY), new)
    assert any(question in each for each in problems), problems


def test_migrations_are_numbered_and_written_once(tmp_path: Path) -> None:
    old, new = spec(LAUNDRY), change_types(wider)
    (first,) = migrations.write_all(tmp_path, None, old, "")
    assert first.relative_to(tmp_path).as_posix() == "spec/migrations/laundry/sqlite/0001_initial.sql"
    assert migrations.write_all(tmp_path, None, old, "") == []
    create_tables(first.read_text())
    (second,) = migrations.write_all(tmp_path, old, new, "Colours, too!")
    assert second.name == "0002_colours_too.sql"
    assert migrations.compute_schema_digest(new, migrations.SQLITE) in second.read_text()
    assert migrations.write_all(tmp_path, old, new, "again") == []
    with pytest.raises(migrations.MigrationNotDerivable, match="colour is gone"):
        migrations.write_all(tmp_path, new, old, "Back")
    copied = [each.path for each in sqlite_files.emit_migrations(old, tmp_path)]
    assert copied == [f"generated/laundry/sqlite/migrations/{each.name}" for each in (first, second)]
