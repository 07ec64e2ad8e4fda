"""Entities that a SQLite file keeps: its schema with all guards, and every statement that the engine runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from codegen.emit.artefact import Artefact, render_template
from codegen.emit.sqlite.sqlite_entity import SqliteEntity
from codegen.source.spec import Spec

MIGRATIONS = "spec/migrations/{system}/sqlite"
"""Where the accepted migrations of a system's files are; they are copied beside the other SQL."""


def entities(spec: Spec) -> dict[str, SqliteEntity]:
    """The entities that a file keeps, by default or in some deployment."""
    spec = spec.placed_by("sqlite")
    return {
        name: SqliteEntity(spec, name, row) for name, row in spec.lifecycle.entities.items() if row.in_sqlite
    }


def emit(spec: Spec) -> Iterator[Artefact]:
    kept = entities(spec)
    if not kept:
        return
    folder = f"generated/{spec.name}/sqlite"
    yield Artefact(f"{folder}/schema.sql", schema(spec))
    for name, entity in kept.items():
        text = render_template("sqlite/statements.sql.j2", spec, entity=entity)
        yield Artefact(f"{folder}/{name}.sql", text.rstrip("\n") + "\n")


def emit_migrations(spec: Spec, root: Path) -> Iterator[Artefact]:
    """The accepted migrations, where the running service finds them."""
    for path in sorted((root / MIGRATIONS.format(system=spec.name)).glob("*.sql")):
        target = f"generated/{spec.name}/sqlite/migrations/{path.name}"
        yield Artefact(target, path.read_text(encoding="utf-8"))


def schema(spec: Spec) -> str:
    """Everything that a fresh file needs."""
    header = render_template("sqlite/schema.sql.j2", spec).strip("\n") + "\n"
    return "\n".join((header, *tables(spec).values()))


def tables(spec: Spec) -> dict[str, str]:
    """The tables of each entity, and what guards them."""
    return {name: entity_schema(each) for name, each in entities(spec).items()}


def entity_schema(entity: SqliteEntity) -> str:
    """The tables of one entity, its guards and its indexes."""
    table = render_template("sqlite/table.sql.j2", entity.spec, entity=entity)
    indexes = [
        f"-- {what}\nCREATE INDEX {name} ON {entity.table} {over};"
        for name, (what, over) in entity.indexes.items()
    ]
    indexes += [
        f"CREATE UNIQUE INDEX {name} ON {entity.table} {over};"
        for name, over in entity.unique_indexes.items()
    ]
    parts = (table.strip("\n"), *beside(entity).values(), guards(entity), *indexes)
    return "\n\n".join(parts) + "\n"


def beside(entity: SqliteEntity) -> dict[str, str]:
    """The tables that an entity has beside its own, where a word needs them."""
    needed = {"paused": bool(entity.rank), "unique": entity.remembers, "ended": entity.forgets}
    return {
        part: render_template("sqlite/beside.sql.j2", entity.spec, entity=entity, part=part).strip("\n")
        for part, is_needed in needed.items()
        if is_needed
    }


def guards(entity: SqliteEntity) -> str:
    """The triggers of one entity, which a migration replaces as a whole."""
    return render_template("sqlite/guards.sql.j2", entity.spec, entity=entity).strip("\n")
