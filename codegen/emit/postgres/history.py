"""The history of entities that Redis keeps: two tables in PostgreSQL, and the statements about them.

One table has every change, by key and sequence. The other has the records of entities that ended, as they
were last; they are found there when Redis has forgotten them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from codegen.emit.artefact import Artefact, render_template
from codegen.emit.sql.names import aside, postgres_column
from codegen.language.lifecycle import Entity
from codegen.language.storage.layouts import KeptInRedis, PlacedOutbox
from codegen.source.spec import Spec, type_ref

TYPES = {
    "bool": "boolean",
    "int32": "integer",
    "sint32": "integer",
    "uint32": "bigint",
    "int64": "bigint",
    "sint64": "bigint",
    "uint64": "bigint",
    "double": "double precision",
    "float": "double precision",
    "json": "json",
    "timestamp": "timestamptz",
}
"""The PostgreSQL types of record fields; lists are JSON, and all others are text.

JSON is stored as text, so that a reader gets it as it was in Redis.
"""
CHANGE = {
    "sequence": "bigint",
    "from_state": "text",
    "to_state": "text",
    "at": "timestamptz",
    "actor": "text",
    "owner": "text",
    "fence": "bigint",
    "reason": "text",
    "trace": "text",
}
"""The columns of a change beside the key of its entity."""
MOMENT = "_at"
"""When an entity ended; no field of a record can have this name."""


@dataclass(frozen=True)
class History:
    """The tables of one entity, and everything that templates have to know of them."""

    spec: Spec
    name: str
    row: Entity
    kept: KeptInRedis
    outbox: PlacedOutbox

    @property
    def key(self) -> str:
        """The column of the key, as SQL says it."""
        return postgres_column(self.row.key)

    @property
    def table(self) -> str:
        return self.outbox.table

    @property
    def ended(self) -> str:
        return self.outbox.ended

    @property
    def sequence(self) -> str:
        """The column of a record that counts its changes, as SQL says it."""
        return postgres_column(self.kept.sequence or "")

    @cached_property
    def log(self) -> dict[str, str]:
        """The columns of a change beside the key of its entity, by what they are."""
        return {name: aside(name, self.row.key) for name in CHANGE}

    @cached_property
    def change(self) -> dict[str, str]:
        """The columns of a change and the type of each."""
        return {self.key: "text", **{self.log[name]: kind for name, kind in CHANGE.items()}}

    @cached_property
    def record(self) -> dict[str, str]:
        """The columns of a record and the type of each, in the order of their numbers."""
        rows = self.spec.messages[self.row.record].fields
        return {
            column: "text" if field == self.row.key else _type(rows[field].type)
            for field, column in self.fields.items()
        }

    @cached_property
    def fields(self) -> dict[str, str]:
        """The fields of a record and the column of each, in the order of their numbers."""
        rows = self.spec.messages[self.row.record].fields
        return {name: postgres_column(name) for name in sorted(rows, key=lambda name: rows[name].number)}

    @cached_property
    def ended_columns(self) -> dict[str, str]:
        """The same with the moment of the end."""
        return {**self.record, MOMENT: "timestamptz"}


def histories(spec: Spec) -> dict[str, History]:
    """The entities of a spec that have a history in another store."""
    return {
        name: History(spec, name, row, row.in_redis, row.in_redis.outbox)
        for name, row in spec.lifecycle.entities.items()
        if row.in_redis is not None and row.in_redis.outbox is not None
    }


def emit(spec: Spec, folder: str) -> Iterator[Artefact]:
    """The statements of each; the schema goes with that of all other tables."""
    for name, history in histories(spec).items():
        text = render_template(
            "postgres/history/history_statements.sql.j2",
            spec,
            history=history,
            moment=MOMENT,
            arrays=_arrays,
            values=_values,
        )
        yield Artefact(f"{folder}/{name}.sql", text)


def history_schema(spec: Spec, name: str) -> str:
    """The two tables of one entity, and what guards them."""
    history = histories(spec)[name]
    tables = render_template("postgres/history/history_tables.sql.j2", spec, history=history, moment=MOMENT)
    return f"{tables}\n{history_guards(history)}"


def history_guards(history: History) -> str:
    """The functions and triggers of both tables, which a migration replaces as a whole."""
    return render_template(
        "postgres/history/history_guards.sql.j2", history.spec, history=history, moment=MOMENT
    )


def steps(was: History, will_be: History) -> tuple[list[str], list[str]]:
    """The migration from the tables of one spec to those of another, and the decisions left to a person.

    A column whose field is gone stays: history is never taken back.
    """
    problems = [
        f"{was.name}: its {what} was {one} and becomes {other}."
        for what, one, other in (
            ("table of changes", was.table, will_be.table),
            ("table of records", was.ended, will_be.ended),
            ("key", was.key, will_be.key),
            ("sequence", was.sequence, will_be.sequence),
        )
        if one != other
    ]
    found = []
    for column, kind in will_be.record.items():
        if column not in was.record:
            found.append(f"ALTER TABLE {will_be.ended} ADD COLUMN IF NOT EXISTS {column} {kind};")
        elif was.record[column] != kind:
            problems.append(f"{will_be.ended}.{column} was {was.record[column]} and becomes {kind}.")
    if history_guards(was) != history_guards(will_be):
        found.append(history_guards(will_be))
    return found, problems


def _arrays(columns: dict[str, str]) -> str:
    """The array parameter of each column, with its casts from text."""
    kinds = ("bigint" if kind == "timestamptz" else kind for kind in columns.values())
    return ", ".join(f"${number}::text::{kind}[]" for number, kind in enumerate(kinds, 1))


def _values(columns: dict[str, str]) -> str:
    """The value that is written to each column."""
    return ", ".join(
        f"'epoch'::timestamptz + {name} * interval '1 microsecond'" if kind == "timestamptz" else name
        for name, kind in columns.items()
    )


def _type(field_type: str) -> str:
    reference = type_ref(field_type)
    return "json" if reference.kind != "single" else TYPES.get(reference.name, "text")
