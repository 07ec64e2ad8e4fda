"""The SQL files of PostgreSQL: the schema with all guards, and every statement of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codegen.emit.artefact import Artefact, render_template
from codegen.emit.artefact import quote_sql as quoted
from codegen.emit.postgres.history import emit as emit_histories
from codegen.emit.postgres.history import histories, history_schema
from codegen.emit.postgres.postgres_entity import KeptEntity
from codegen.emit.python.records import select_postgres_entities
from codegen.language.deployments import Deployment
from codegen.language.lifecycle import Transition
from codegen.source.spec import Spec

FOLDERS = {"sql": "spec/migrations/{system}", "postgres": "spec/migrations/{system}/postgres"}
"""Folders of the generated SQL, and where the accepted migrations of each are, which are copied there.

`sql` has what PostgreSQL keeps by default, and `postgres` all entities, where a deployment keeps them there.
"""


def emit(spec: Spec) -> Iterator[Artefact]:
    yield from _emit_folder(spec, "sql")
    yield from _emit_folder(in_deployments(spec), "postgres")


def name_series(spec: Spec, deployment: Deployment) -> str:
    """Name the series of migrations that a deployment needs."""
    is_moved = deployment.engine == "postgres" and "postgres" in spec.moved_to
    return f"{spec.name}/postgres" if is_moved else spec.name


def in_deployments(spec: Spec) -> Spec:
    """Return the spec as PostgreSQL keeps it in deployments that say so; without entities if none does."""
    if "postgres" in spec.moved_to:
        return spec.placed_by("postgres")
    return replace(spec, lifecycle=spec.lifecycle.model_copy(update={"entities": {}}))


def _emit_folder(spec: Spec, folder_name: str) -> Iterator[Artefact]:
    kept = {name: KeptEntity(spec, name, row) for name, row in select_postgres_entities(spec).items()}
    if not kept and not histories(spec):
        return
    folder = f"generated/{spec.name}/{folder_name}"
    yield Artefact(f"{folder}/schema.sql", schema(spec))
    granted = render_template(
        "postgres/schema/grants.sql.j2",
        spec,
        kept=[*kept.values()],
        histories=[*histories(spec).values()],
        # Handlers that were written for another engine may write fields that no edge owns.
        updates=folder_name == "postgres",
    )
    yield Artefact(f"{folder}/grants.sql", granted)
    yield from emit_histories(spec, folder)
    for name, entity in kept.items():
        text = "\n".join(statements(spec, entity))
        header = render_template("postgres/schema/header.sql.j2", spec, entity=entity)
        yield Artefact(f"{folder}/{name}.sql", f"{header}\n{text}")


def emit_migrations(spec: Spec, root: Path) -> Iterator[Artefact]:
    """The accepted migrations, where the running service finds them."""
    for folder, accepted in FOLDERS.items():
        for path in sorted((root / accepted.format(system=spec.name)).glob("*.sql")):
            target = f"generated/{spec.name}/{folder}/migrations/{path.name}"
            yield Artefact(target, path.read_text(encoding="utf-8"))


def schema(spec: Spec) -> str:
    """Everything that a fresh database needs."""
    return "\n".join(
        (
            render_template("postgres/schema/schema.sql.j2", spec),
            *(table_schema(spec, name) for name in with_tables(spec)),
        )
    )


def with_tables(spec: Spec) -> list[str]:
    """The entities that have tables: those that are kept there, and those whose history is."""
    return [*select_postgres_entities(spec), *histories(spec)]


def table_schema(spec: Spec, name: str) -> str:
    """The tables of one entity."""
    return entity_schema(spec, name) if name in select_postgres_entities(spec) else history_schema(spec, name)


def entity_schema(spec: Spec, name: str, entity: KeptEntity | None = None) -> str:
    """The tables of one entity, and what guards them."""
    entity = entity or KeptEntity(spec, name, spec.lifecycle.entities[name])
    parts = ("table", "history", "guards", "indexes")
    return "\n".join(
        render_template(f"postgres/schema/{part}.sql.j2", spec, entity=entity, quoted=quoted)
        for part in parts
    )


def guards(spec: Spec, name: str) -> str:
    """The functions and triggers of one entity, which a migration replaces as a whole."""
    entity = KeptEntity(spec, name, spec.lifecycle.entities[name])
    return render_template("postgres/schema/guards.sql.j2", spec, entity=entity, quoted=quoted)


def statements(spec: Spec, entity: KeptEntity) -> Iterator[str]:
    """Every statement of an entity, each under a line with its name and what it takes."""
    columns = ", ".join(f"{each.field} {each.type}" for each in entity.columns)
    cuts = "".join(f"-- cuts {field} to {most} bytes\n" for field, most in entity.cuts.items())
    cuts += "".join(f"-- stores {each.field} as {each.name}\n" for each in entity.columns if each.is_renamed)
    yield f"-- columns({columns})\n-- What the table has; a text is cut before it is kept.\n{cuts}"
    for name, doc, template, data in _wanted(entity):
        parameters = Parameters()
        body = render_template(
            f"postgres/statements/{template}.sql.j2",
            spec,
            entity=entity,
            p=parameters,
            quoted=quoted,
            quoted_sql=quoted,
            **data,
        )
        yield f"-- {name}({parameters})\n-- {doc}\n{_without_gaps(body)};\n"


def _without_gaps(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


_Wanted = tuple[str, str, str, dict[str, Any]]
"""Name, what it is for, template, and what the template needs besides the entity."""


def _wanted(entity: KeptEntity) -> Iterator[_Wanted]:
    what = entity.name
    yield from _creations(entity)
    yield "get", f"One {what} as it is now.", "get", {}
    yield "lock", "Some as they are now, locked for a step that the engine takes.", "lock", {}
    if entity.changing:
        yield "lock_free", "The same for those that no other transaction has.", "lock", {"free": True}
    if entity.changing:
        yield "write", "What the engine has made of them.", "write", {}
    yield "update", "Fields that no edge owns.", "update", {}
    for name, (change, due) in entity.clocks.items():
        yield name, "Which are due, longest overdue first.", "due", {"change": change, "due": due}
    if entity.lease:
        yield from _leases(entity)
    for direction, order in (("newest", "DESC"), ("oldest", "ASC")):
        doc = f"A page of the listing, the {direction} first."
        yield f"find_{direction}", doc, "find", {"direction": order}
    yield "history", f"Every state change of one {what}, oldest first.", "read_history", {}
    yield "census", "How many there are in each state, and since when the oldest.", "census", {}
    if entity.listed_by:
        yield "count_since", "How many there are in each state, since a time.", "count_since", {}
    if entity.row.delete:
        yield "delete", "Deletes some, each in the state that is expected.", "delete", {}
        yield "purge", "Deletes those that ended long ago, and their history.", "purge", {}
    if entity.forgets_ended:
        yield "forget", "Deletes what ended long enough ago, or before the last so many.", "forget", {}
    if entity.held_entity:
        yield "held", f"How many leases a {what} has.", "held", {}


def _creations(entity: KeptEntity) -> Iterator[_Wanted]:
    what, kept = entity.name, entity.row.in_postgres
    if entity.has_quick_creation:
        yield "create", f"Adds a {what} unless one has the same {entity.unique_text}.", "create", {}
        yield "create_shared", "The same for several who ask at once.", "create", {"shared": True}
    if entity.at_once:
        first, _ = entity.at_once
        note = f"Adds each unless it is known, and takes {first} with it: their keys, or NULL if all are new."
        yield f"create_{first}", note, "create_at_once", {"first": first}
    yield "begin", "Begins a creation that others wait for.", "begin", {}
    yield "insert", "Adds what the engine has made of them.", "insert", {}
    if entity.unique or (kept and kept.unique_for):
        yield "find_unique", f"The {what} that has what a new one must not share.", "find_unique", {}
    if kept and kept.unique_for:
        yield "remember", "Remembers values that no other may have for some time.", "remember", {}
    if entity.row.create.ceiling:
        yield "depth", "How many the index holds that has a ceiling.", "depth", {}


def _leases(entity: KeptEntity) -> Iterator[_Wanted]:
    entering = entity.entering
    if entering is not None:
        name = next(name for name, edge in entity.transitions.items() if edge is entering)
        if entity.edge_words.is_compiled(entering):
            doc = f"Claims the next, as many as are asked for. {_place(entity, name)}"
            yield "claim", doc, "leases/claim", {"edge": entering, "edge_name": name}
        else:
            yield "choose", "The next to be claimed, locked for the engine.", "leases/choose", {}
        if entity.not_before:
            yield "next_free", "The seconds until the next can be claimed.", "leases/next_free", {}
        yield "backlog", "How many can be claimed, and the age of the oldest.", "leases/backlog", {}
    for name, edge in entity.transitions.items():
        if entity.row.lease.state in edge.sources and entity.edge_words.is_compiled(edge):  # type: ignore[union-attr]
            yield from _settlements(entity, name, edge)
    yield "renew", "Lets leases begin anew that have not ended.", "leases/renew", {}
    yield "holds", "Some as they are, to explain what was not written.", "leases/holds", {}
    if entity.holder:
        yield "holder", "The holder of a lease, and how many it has.", "leases/holder", {}
    if entity.rank_field:
        yield "pause", "Stops claims of a value.", "pause", {}
        yield "resume", "Lets claims of a value go on.", "resume", {}
        yield "paused", "The values that are paused.", "paused", {}


def _settlements(entity: KeptEntity, name: str, edge: Transition) -> Iterator[_Wanted]:
    data, entering = {"edge": edge, "edge_name": name}, entity.entering
    note = f"{edge.trigger} Its holder alone may. {_place(entity, name)}"
    yield f"settle_{name}", note, "leases/settle", data
    if entering is not None and entity.edge_words.is_compiled(entering):
        note = "The same, and claims one for each that it settled and some more, all in one commit."
        yield f"exchange_{name}", note, "leases/exchange", {**data, "entering": entering}


def _place(entity: KeptEntity, name: str) -> str:
    return f"({entity.spec.folder}/lifecycle.yaml: {entity.name}.{name})"


@dataclass
class Parameters:
    """The parameters of a statement: names and types, numbered by their first use."""

    found: dict[str, str]

    def __init__(self) -> None:
        self.found = {}

    def __call__(self, name: str, kind: str) -> str:
        if self.found.setdefault(name, kind) != kind:
            raise ValueError(f"{name} is {self.found[name]} and {kind}")
        return f"${[*self.found].index(name) + 1}::{kind}"

    def __str__(self) -> str:
        return ", ".join(f"{name} {kind}" for name, kind in self.found.items())
