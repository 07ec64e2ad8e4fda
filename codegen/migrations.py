"""Migrations: SQL from the schema of one accepted spec to the next, as far as it can be derived."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from codegen import sqlite_migrations
from codegen.emit.postgres.history import histories, history_schema
from codegen.emit.postgres.history import steps as history_steps
from codegen.emit.postgres.postgres_entity import KeptEntity
from codegen.emit.postgres.postgres_files import (
    FOLDERS,
    entity_schema,
    guards,
    in_deployments,
    table_schema,
    with_tables,
)
from codegen.emit.python.records import select_postgres_entities
from codegen.emit.sql.stored_entity import Column
from codegen.emit.sqlite import sqlite_files
from codegen.source.spec import Spec

_LEADS_TO = re.compile(r"^-- Leads to the schema sha256:([0-9a-f]{16})\b", re.MULTILINE)
_SLUG = re.compile(r"[^a-z0-9]+")


class MigratedStore(NamedTuple):
    """A kind of store with migrations: their folder, its tables, and how to derive a migration."""

    folder: str
    tables: Callable[[Spec], Mapping[str, str]]
    derive: Callable[[Spec, Spec], tuple[list[str], list[str]]]


class MigrationNotDerivable(Exception):
    """Changes that need a hand-written migration, one sentence for each."""

    def __init__(self, system: str, path: str, digest: str, problems: list[str]) -> None:
        self.problems = problems
        listed = "\n".join(f"  - {each}" for each in problems)
        super().__init__(
            f"{system}: {len(problems)} changes of what the database keeps cannot be derived:\n{listed}\n"
            f"Write {path}, which begins with '-- Leads to the schema sha256:{digest}.', and accept again."
        )


def write_all(root: Path, old: Spec | None, new: Spec, title: str) -> list[Path]:
    """Write the next migration for each store of a system that needs one."""
    written = (write_next(root, old, new, title, store) for store in STORES)
    return [path for path in written if path is not None]


def write_next(
    root: Path, old: Spec | None, new: Spec, title: str, store: MigratedStore | None = None
) -> Path | None:
    """Write the next migration of a system if it needs one; raises MigrationNotDerivable."""
    store = store or POSTGRES
    folder = root / store.folder.format(system=new.name)
    known = sorted(folder.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    if not store.tables(new) and not (old and store.tables(old)):
        return None
    digest = compute_schema_digest(new, store)
    if known and digest in _LEADS_TO.findall(known[-1].read_text(encoding="utf-8")):
        return None
    if not known or old is None:
        path = folder / "0001_initial.sql"
        steps = [*store.tables(new).values()]
    else:
        slug = _SLUG.sub("_", title.lower()).strip("_") or "change"
        path = folder / f"{int(known[-1].name[:4]) + 1:04}_{slug}.sql"
        steps, problems = store.derive(old, new)
        if not steps and not problems:
            problems = ["The same words make another schema than the last migration leads to: say how."]
        if problems:
            raise MigrationNotDerivable(new.name, str(path.relative_to(root)), digest, problems)
    folder.mkdir(parents=True, exist_ok=True)
    header = f"-- Leads to the schema sha256:{digest}. A migration is never edited once it was accepted.\n"
    path.write_text("\n".join((header, *(each.strip("\n") + "\n" for each in steps))), encoding="utf-8")
    return path


def compute_schema_digest(spec: Spec, store: MigratedStore | None = None) -> str:
    """Compute a hash of the schema; a change of the spec that does not affect the schema keeps it."""
    tables = (store or POSTGRES).tables(spec)
    lines = "\n".join(tables[name] for name in sorted(tables)).splitlines()
    text = "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("--"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def derive_migration(old: Spec, new: Spec) -> tuple[list[str], list[str]]:
    """Derive the steps from one schema to another, and list the changes that cannot be derived."""
    steps: list[str] = []
    problems: list[str] = []
    found, undecided = _derive_histories(old, new)
    steps += found
    problems += undecided
    before, after = select_postgres_entities(old), select_postgres_entities(new)
    for name in before.keys() - after.keys():
        problems.append(f"{name} is kept no longer: say what becomes of its rows.")
    for name in after:
        if name not in before:
            steps.append(entity_schema(new, name))
            continue
        was, will_be = KeptEntity(old, name, before[name]), KeptEntity(new, name, after[name])
        found = [*_find_renames(was, will_be)]
        problems += found or [*_find_undecidable(was, will_be)]
        if not found:
            steps += _iter_steps(was, will_be, old, new)
    return steps, problems


def _derive_histories(old: Spec, new: Spec) -> tuple[list[str], list[str]]:
    steps: list[str] = []
    before, after = histories(old), histories(new)
    problems = [
        f"{name} has no history any more: say what becomes of its rows."
        for name in before.keys() - after.keys()
    ]
    for name, will_be in after.items():
        found, undecided = (
            history_steps(before[name], will_be) if name in before else ([history_schema(new, name)], [])
        )
        steps += found
        problems += undecided
    return steps, problems


def _find_renames(was: KeptEntity, will_be: KeptEntity) -> Iterator[str]:
    for what, one, other in (
        ("table", was.table, will_be.table),
        ("history", was.history, will_be.history),
        ("key", was.key, will_be.key),
        ("status", was.status, will_be.status),
    ):
        if one != other:
            yield f"{was.name}: its {what} was {one} and becomes {other}."


def _find_undecidable(was: KeptEntity, will_be: KeptEntity) -> Iterator[str]:
    table, columns = was.table, {each.name: each for each in was.columns}
    for column in will_be.columns:
        known = columns.pop(column.name, None)
        if known is None:
            if not column.optional and column.default is None:
                yield f"{table}.{column.name} is new and needs a value: say which one old rows get."
        elif known.type != column.type:
            yield f"{table}.{column.name} was {known.type} and becomes {column.type}."
        elif known.optional and not column.optional:
            yield f"{table}.{column.name} may no longer be absent: say what old rows get."
    for name in columns:
        yield f"{table}.{name} is gone: say when it is not needed any more."
    if was.names_edges and not will_be.names_edges:
        yield f"{was.history}.{was.log['edge']} is gone: say when it is not needed any more."
    for state in was.states:
        if state not in will_be.states:
            yield f"{table}: {state} is gone: say where the rows go that are in it."
    new_columns = {each.field for each in will_be.columns} - {each.field for each in was.columns}
    for name, text in will_be.constraints.items():
        if was.constraints.get(name) != text and not _is_widened(was, will_be, name, new_columns):
            yield f"{table}: {name} becomes {text}: make sure that old rows hold to it."


def _is_widened(was: KeptEntity, will_be: KeptEntity, name: str, new_columns: set[str]) -> bool:
    """Whether every old row satisfies a constraint: it is about new columns, or allows more states."""
    old, new = was.constraints.get(name), will_be.constraints[name]
    if old is None:
        return new.startswith("CHECK") and any(re.search(rf"\b{each}\b", new) for each in new_columns)
    states = re.compile(r"'([A-Z0-9_]+)'")
    same_form = states.sub("", old).replace(", ", "") == states.sub("", new).replace(", ", "")
    return same_form and " IN (" in old and set(states.findall(old)) <= set(states.findall(new))


def _iter_steps(was: KeptEntity, will_be: KeptEntity, old: Spec, new: Spec) -> Iterator[str]:
    table, columns = was.table, {each.name: each for each in was.columns}
    for column in will_be.columns:
        yield from _iter_column_steps(table, columns.get(column.name), column)
    for name in was.constraints.keys() - will_be.constraints.keys():
        yield f"ALTER TABLE {table} DROP CONSTRAINT {name};"
    for name, text in will_be.constraints.items():
        if name in was.constraints and was.constraints[name] != text:
            yield f"ALTER TABLE {table} DROP CONSTRAINT {name}, ADD CONSTRAINT {name} {text};"
        elif name not in was.constraints:
            yield f"ALTER TABLE {table} ADD CONSTRAINT {name} {text};"
    if will_be.names_edges and not was.names_edges:
        yield f"ALTER TABLE {will_be.history} ADD COLUMN {will_be.log['edge']} text;"
    for name in sorted(was.triggers - will_be.triggers):
        yield f"DROP TRIGGER {name} ON {table};"
    if guards(old, was.name) != guards(new, was.name):
        yield guards(new, was.name)
    for name, (_, over) in was.indexes.items():
        if will_be.indexes.get(name, ("", ""))[1] != over:
            yield f"DROP INDEX {name};"
    for name, (what, over) in will_be.indexes.items():
        if was.indexes.get(name, ("", ""))[1] != over:
            yield f"-- {what}\nCREATE INDEX {name} ON {table} {over};"


def _iter_column_steps(table: str, was: Column | None, will_be: Column) -> Iterator[str]:
    if was is None:
        yield f"ALTER TABLE {table} ADD COLUMN {will_be};"
        return
    if will_be.optional and not was.optional:
        yield f"ALTER TABLE {table} ALTER COLUMN {was.name} DROP NOT NULL;"
    if was.default != will_be.default:
        change = "DROP DEFAULT" if will_be.default is None else f"SET DEFAULT {will_be.default}"
        yield f"ALTER TABLE {table} ALTER COLUMN {was.name} {change};"


def _render_tables(spec: Spec) -> dict[str, str]:
    return {name: table_schema(spec, name) for name in with_tables(spec)}


POSTGRES = MigratedStore(FOLDERS["sql"], _render_tables, derive_migration)
IN_DEPLOYMENTS = MigratedStore(
    FOLDERS["postgres"],
    lambda spec: _render_tables(in_deployments(spec)),
    lambda old, new: derive_migration(in_deployments(old), in_deployments(new)),
)
SQLITE = MigratedStore(sqlite_files.MIGRATIONS, sqlite_files.tables, sqlite_migrations.derive_migration)
STORES = (POSTGRES, IN_DEPLOYMENTS, SQLITE)
