"""What is in PostgreSQL: its schema with all guards, and every statement that the engine sends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codegen.emit.artefact import Artefact, render_template
from codegen.emit.artefact import quote_sql as quoted
from codegen.emit.postgres.history import emit as emit_histories
from codegen.emit.postgres.history import histories, history_schema
from codegen.emit.postgres.postgres_entity import KeptEntity
from codegen.emit.python.records import select_postgres_entities
from codegen.language.lifecycle import Transition
from codegen.source.spec import Spec

MIGRATIONS = "spec/migrations"
"""Where the accepted migrations of each system are; they are copied beside the other SQL."""


def emit(spec: Spec) -> Iterator[Artefact]:
    kept = {name: KeptEntity(spec, name, row) for name, row in select_postgres_entities(spec).items()}
    if not kept and not histories(spec):
        return
    folder = f"generated/{spec.name}/sql"
    yield Artefact(f"{folder}/schema.sql", schema(spec))
    granted = render_template(
        "postgres/schema/grants.sql.j2", spec, kept=[*kept.values()], histories=[*histories(spec).values()]
    )
    yield Artefact(f"{folder}/grants.sql", granted)
    yield from emit_histories(spec)
    for name, entity in kept.items():
        text = "\n".join(statements(spec, entity))
        header = render_template("postgres/schema/header.sql.j2", spec, entity=entity)
        yield Artefact(f"{folder}/{name}.sql", f"{header}\n{text}")


def emit_migrations(spec: Spec, root: Path) -> Iterator[Artefact]:
    """The accepted migrations, where the running service finds them."""
    for path in sorted((root / MIGRATIONS / spec.name).glob("*.sql")):
        yield Artefact(f"generated/{spec.name}/sql/migrations/{path.name}", path.read_text(encoding="utf-8"))


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


def entity_schema(spec: Spec, name: str) -> str:
    """The tables of one entity, and what guards them."""
    entity = KeptEntity(spec, name, spec.lifecycle.entities[name])
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
        cuts = entity.cuts_of(data["edge"]) if "edge" in data else {}
        notes = [doc, *(f"cuts {field} to {most} bytes" for field, most in cuts.items())]
        lines = "\n".join(f"-- {note}" for note in notes)
        yield f"-- {name}({parameters})\n{lines}\n{_without_gaps(body)};\n"


def _without_gaps(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def _wanted(entity: KeptEntity) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """(name, what it is for, template, what the template needs besides the entity)."""
    what, transitions = entity.name, entity.transitions
    yield "create", f"Adds a {what} unless one has the same {entity.unique_text}.", "create", {}
    yield "create_shared", "The same for several who ask at once.", "create", {"shared": True}
    if entity.at_once:
        first, edge = entity.at_once
        note = f"Adds each unless it is known, and takes {first} with it: their keys, or NULL if all are new."
        yield f"create_{first}", note, "create_at_once", {"first": first}
    if entity.unique:
        yield "find_unique", f"The {what} that has what a new one must not share.", "find_unique", {}
    yield "get", f"One {what} as it is now.", "get", {}
    yield "states", "The states of some, for whoever must know why nothing happened.", "states", {}
    for name, edge in transitions.items():
        yield from _edge(entity, name, edge)
    if entity.row.lease:
        yield "renew", "Makes a lease longer that has not ended; its holder alone may.", "leases/renew", {}
        yield "holds", "Who holds the lease of each, and whether it goes on.", "leases/holds", {}
    yield "find", "A page of the listing, newest first.", "find", {}
    for direction in ("newest", "oldest"):
        data = {"direction": "DESC" if direction == "newest" else "ASC"}
        yield f"page_{direction}", f"A part of the listing, the {direction} first.", "page", data
    yield "history", f"Every state change of one {what}, oldest first.", "read_history", {}
    yield "census", "How many there are in each state, and since when the oldest.", "census", {}
    if entity.row.delete:
        yield "delete", f"Takes one {what} back.", "delete", {}
        yield "purge", "Deletes those that ended long ago, and their history.", "purge", {}


def _edge(entity: KeptEntity, name: str, edge: Transition) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    lease, where = entity.row.lease, f"({entity.spec.folder}/lifecycle.yaml: {entity.name}.{name})"
    data = {"edge": edge, "edge_name": name}
    if lease and edge.to == lease.state:
        yield (
            "acquire",
            f"Takes the oldest that are free, as many as are asked for. {where}",
            "leases/acquire",
            data,
        )
    elif lease and edge.from_ == lease.state:
        note = f"{edge.trigger} Its holder alone may. {where}"
        yield f"settle_{name}", note, "leases/settle", {**data, "shared": True}
        note = "The same for one that somebody else had locked, in its latest version."
        yield f"settle_{name}_alone", note, "leases/settle", {**data, "shared": False}
        entering = entity.entering
        if entering and not edge.gives_up:
            note = "The same, and takes one for each that it settled and some more, all in one commit."
            yield f"exchange_{name}", note, "leases/exchange", {**data, "entering": entering}
    else:
        relaxed, own = entity.repaired(edge), {**data, "shared": False}
        yield f"move_{name}", f"{edge.trigger} {where}", "move", {**own, "relaxed": False}
        if relaxed:
            note = "The same in a transaction of its own, whose answer does not wait for the disk."
            yield f"move_{name}_relaxed", note, "move", {**own, "relaxed": True}
        note = "The same for those that nobody has locked."
        yield f"move_{name}_shared", note, "move", {**data, "shared": True, "relaxed": relaxed}
    if edge.due:
        yield f"sweep_{name}", f"All of them by the clock, some at a time. {where}", "due/sweep", data
        yield (
            f"due_{name}",
            "Which are due, where one of them stands in the way of the others.",
            "due/due",
            data,
        )
    if edge.gives_up:
        end = entity.transitions[edge.gives_up.with_]
        data = {**data, "edge": end, "given_up": edge.gives_up, "swept": edge}
        if end.from_ == edge.to:
            yield (
                f"give_up_{name}",
                f"{end.trigger} In the transaction that failed. {where}",
                "due/give_up",
                data,
            )
        elif edge.due:
            yield f"sweep_{name}_giving_up", f"{end.trigger} {where}", "due/sweep_giving_up", data


@dataclass
class Parameters:
    """What a statement takes: names and types, numbered by their first use."""

    found: dict[str, str]

    def __init__(self) -> None:
        self.found = {}

    def __call__(self, name: str, kind: str) -> str:
        if self.found.setdefault(name, kind) != kind:
            raise ValueError(f"{name} is {self.found[name]} and {kind}")
        return f"${[*self.found].index(name) + 1}::{kind}"

    def __str__(self) -> str:
        return ", ".join(f"{name} {kind}" for name, kind in self.found.items())
