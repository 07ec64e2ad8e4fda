"""What is made for entities that a SQLite file keeps, and the migrations from one form of it to the next."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codegen import migrations
from codegen.emit.sqlite import sqlite_files
from codegen.source.spec import Spec
from codegen.sqlite_migrations import difference
from runtime.stores.sqlite.statements import parsed
from tests.support.codegen.specs import FOLDERS, change_spec, spec, texts

LAUNDRY = "tests/specs/laundry"
Change = Callable[[Any], None]


def tables(text: str) -> sqlite3.Connection:
    """A database in memory with a schema."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(text)
    return connection


def fields(data: Any) -> Any:
    return data["book"]["messages"]["ShirtRow"]["fields"]


def typed(change: Change) -> Spec:
    """The laundry with other types."""
    made = change_spec(spec(LAUNDRY), "types", change)
    # What was worked out from the types before is worked out anew.
    made.__dict__.pop("messages", None)
    made.__dict__.pop("enums", None)
    return made


def lived(change: Change) -> Spec:
    """The laundry with other lives."""
    return change_spec(spec(LAUNDRY), "lifecycle", change)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_statement_can_be_prepared(folder: str) -> None:
    """SQLite itself finds no fault in any schema or statement."""
    of = spec(folder)
    if not sqlite_files.entities(of):
        assert texts(sqlite_files.emit, of) == {}
        return
    connection = tables(sqlite_files.schema(of))
    for name, entity in sqlite_files.entities(of).items():
        found = parsed(texts(sqlite_files.emit, of)[f"generated/{of.name}/sqlite/{name}.sql"])
        leased = {"acquire", "renew"} if entity.row.lease else set()
        assert {"create", "get", "find", "census"} <= set(found)
        assert found.keys() & {"acquire", "renew"} == leased
        for statement in found.values():
            connection.execute(f"EXPLAIN {statement}", Nothing())


class Nothing(dict[str, None]):
    """Every parameter there is."""

    def __missing__(self, key: str) -> None:
        return None


def test_nothing_that_is_asked_often_reads_a_whole_table() -> None:
    """What is taken next, what is due and what is listed is found by an index."""
    connection = tables(sqlite_files.schema(spec("spec/queuey")))
    found = parsed(texts(sqlite_files.emit, spec("spec/queuey"))["generated/queuey/sqlite/job.sql"])
    for name in ("acquire", "get", "find_unique", "due_abandon", "is_due_abandon", "renew", "move_claim"):
        plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {found[name]}", Nothing()))
        # Whoever takes the next one looks at the first entry of its index and at no other.
        assert "SCAN" not in plan.replace("SCAN jobs USING INDEX jobs_acquirable", ""), (name, plan)
        assert "TEMP B-TREE" not in plan, (name, plan)


def wider(data: Any) -> None:
    fields(data)["colour"] = {"number": 20, "type": "string", "optional": True}
    fields(data)["washes"] = {"number": 21, "type": "uint32", "optional": True}


def narrower(data: Any) -> None:
    del data["entities"]["shirt"]["transitions"]["repent"]


def listed(data: Any) -> None:
    data["entities"]["shirt"]["listed_by"] = "changed_at"


def without_socks(data: Any) -> None:
    del data["entities"]["sock"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (spec(LAUNDRY), typed(wider)),
        (spec(LAUNDRY), lived(narrower)),
        (lived(narrower), spec(LAUNDRY)),
        (spec(LAUNDRY), lived(listed)),
        (lived(without_socks), spec(LAUNDRY)),
    ],
    ids=["columns", "edge gone", "edge new", "listing", "entity"],
)
def test_what_can_be_derived_leads_to_the_same(old: Spec, new: Spec) -> None:
    """A file that was migrated has the columns, triggers and indexes of a fresh one, and its rows."""
    steps, problems = difference(old, new)
    assert problems == []
    assert steps
    migrated, fresh = tables(sqlite_files.schema(old)), tables(sqlite_files.schema(new))
    migrated.execute("INSERT INTO shirts (shirt_id, label, fabric, price) VALUES ('s', 'l', 'f', 1.0)")
    migrated.executescript("\n".join(steps))
    assert migrated.execute("SELECT shirt_id, state FROM shirts").fetchall() == [("s", "waiting")]
    assert forms(migrated) == forms(fresh)
    assert difference(new, new) == ([], [])


def forms(connection: sqlite3.Connection) -> dict[str, Any]:
    """What a file is like, without the words in which it was said."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    columns = {
        name: connection.execute(f"PRAGMA table_info({name})").fetchall()
        for kind, name, _ in rows
        if kind == "table"
    }
    return {**columns, **{name: text for kind, name, text in rows if kind != "table"}}


def kept(**words: Any) -> Spec:
    return lived(lambda data: data["entities"]["shirt"]["kept_in"].update(words))


@pytest.mark.parametrize(
    ("new", "asked"),
    [
        (typed(lambda data: fields(data).pop("note")), "shirts.note is gone"),
        (typed(lambda data: fields(data)["soap"].update(type="string")), "shirts.soap was"),
        (typed(lambda data: fields(data)["fabric"].update(optional=True)), "shirts.fabric was"),
        (typed(lambda data: fields(data)["price"].update(type="uint32")), "shirts.price was"),
        (
            typed(lambda data: fields(data).update(size={"number": 20, "type": "string"})),
            "shirts.size is new and needs a value",
        ),
        (kept(table="blouses"), "its table was shirts and becomes blouses"),
        (kept(history=None), "its history was shirt_changes and becomes none"),
        (kept(unique=[]), "its unique was label and becomes none"),
        (lived(without_socks), "sock is kept no longer"),
    ],
)
def test_what_a_person_must_say(new: Spec, asked: str) -> None:
    _, problems = difference(spec(LAUNDRY), new)
    assert any(asked in each for each in problems), problems


def test_migrations_are_numbered_and_written_once(tmp_path: Path) -> None:
    old, new = spec(LAUNDRY), typed(wider)
    (first,) = migrations.write_all(tmp_path, None, old, "")
    assert first.relative_to(tmp_path).as_posix() == "spec/migrations/laundry/sqlite/0001_initial.sql"
    assert migrations.write_all(tmp_path, None, old, "") == []
    tables(first.read_text())
    (second,) = migrations.write_all(tmp_path, old, new, "Colours, too!")
    assert second.name == "0002_colours_too.sql"
    assert migrations.schema_digest(new, migrations.SQLITE) in second.read_text()
    assert migrations.write_all(tmp_path, old, new, "again") == []
    with pytest.raises(migrations.NotDerivable, match="colour is gone"):
        migrations.write_all(tmp_path, new, old, "Back")
    copied = [each.path for each in sqlite_files.emit_migrations(old, tmp_path)]
    assert copied == [f"generated/laundry/sqlite/migrations/{each.name}" for each in (first, second)]
