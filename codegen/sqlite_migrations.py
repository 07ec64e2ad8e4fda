"""Migrations of SQLite databases, as far as they can be derived.

SQLite adds columns and replaces triggers and indexes, but changes nothing else of a table that exists. A
change that needs the table to be rebuilt is left to a person, who knows how large it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from codegen.emit.sqlite.sqlite_entity import SqliteEntity
from codegen.emit.sqlite.sqlite_files import beside, entities, entity_schema, guards
from codegen.source.spec import Spec

_TRIGGER = re.compile(r"^CREATE TRIGGER (\w+)", re.MULTILINE)


def derive_migration(old: Spec, new: Spec) -> tuple[list[str], list[str]]:
    """Derive the steps from one schema to another, and list the changes that cannot be derived."""
    before, after = entities(old), entities(new)
    steps: list[str] = []
    problems = [
        f"{name} is kept no longer: say what becomes of its rows." for name in before if name not in after
    ]
    for name, will_be in after.items():
        if name not in before:
            steps.append(entity_schema(will_be))
            continue
        found = [*_find_renames(before[name], will_be)]
        problems += found or [*_find_undecidable(before[name], will_be)]
        if not found:
            steps += _iter_steps(before[name], will_be)
    return steps, problems


def _find_renames(was: SqliteEntity, will_be: SqliteEntity) -> Iterator[str]:
    for what, one, other in (
        ("table", was.table, will_be.table),
        ("history", was.history, will_be.history),
        ("key", was.key, will_be.key),
        ("status", was.status, will_be.status),
        ("unique", ", ".join(was.unique), ", ".join(will_be.unique)),
    ):
        if one != other:
            yield f"{was.name}: its {what} was {one or 'none'} and becomes {other or 'none'}."


def _find_undecidable(was: SqliteEntity, will_be: SqliteEntity) -> Iterator[str]:
    table, columns = was.table, {each.name: each for each in was.columns}
    fresh = {each.check for each in will_be.columns if each.name not in columns}
    for column in will_be.columns:
        known = columns.pop(column.name, None)
        if known is None:
            if not column.optional and column.default is None:
                yield f"{table}.{column.name} is new and needs a value: say which one old rows get."
        elif str(known) != str(column):
            yield f"{table}.{column.name} was '{known}' and becomes '{column}': the table is made anew."
    for name in columns:
        yield f"{table}.{name} is gone: say when it is not needed any more."
    if was.names_edges and not will_be.names_edges:
        yield f"{was.history}.{was.log['edge']} is gone: say when it is not needed any more."
    if was.states != will_be.states:
        yield f"{table}: there are other states, which the table knows: it is made anew."
        return
    for check in will_be.checks:
        if check not in was.checks and check not in fresh:
            yield f"{table}: it must hold that {check}: make sure that old rows hold to it."
    for check in was.checks:
        if check not in will_be.checks:
            yield f"{table}: it need not hold any more that {check}: the table is made anew."


def _iter_steps(was: SqliteEntity, will_be: SqliteEntity) -> Iterator[str]:
    table, known = was.table, {each.name for each in was.columns}
    if was.number != will_be.number:
        yield f"ALTER TABLE {table} RENAME COLUMN {was.number} TO {will_be.number};"
    for column in will_be.columns:
        if column.name not in known:
            check = f" CHECK ({column.check})" if column.check else ""
            yield f"ALTER TABLE {table} ADD COLUMN {column}{check};"
    if will_be.names_edges and not was.names_edges:
        yield f"ALTER TABLE {will_be.history} ADD COLUMN {will_be.log['edge']} TEXT;"
    if will_be.is_detailed and not was.is_detailed:
        names = [will_be.log[name] for name in ("owner", "reason", "trace")]
        added = (f"ADD COLUMN {name} TEXT NOT NULL DEFAULT ''" for name in names)
        yield "\n".join(f"ALTER TABLE {will_be.history} {each};" for each in added)
    yield from (text for part, text in beside(will_be).items() if part not in beside(was))
    if guards(was) != guards(will_be):
        yield "\n".join(f"DROP TRIGGER {name};" for name in _TRIGGER.findall(guards(was)))
        yield guards(will_be)
    for name, (_, over) in was.indexes.items():
        if will_be.indexes.get(name, ("", ""))[1] != over:
            yield f"DROP INDEX {name};"
    for name, (what, over) in will_be.indexes.items():
        if was.indexes.get(name, ("", ""))[1] != over:
            yield f"-- {what}\nCREATE INDEX {name} ON {table} {over};"
