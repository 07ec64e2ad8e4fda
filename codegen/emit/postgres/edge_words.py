"""SQL of the writes of an edge: one function for each word, as `runtime/stores/semantics` has them in Python.

Only edges of the hot path are compiled: those that take a lease or leave it without a failure. The others are
taken in a transaction by the functions of the semantics themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from codegen.emit.artefact import quote_sql as quoted
from codegen.emit.postgres.types import EMPTY
from codegen.emit.sql.names import GIVEN
from codegen.language.lifecycle import Transition
from codegen.source.spec import field_enum

if TYPE_CHECKING:
    from codegen.emit.postgres.postgres_entity import KeptEntity

Parameter = Callable[[str, str], str]


class EdgeWords:
    """The edges of one entity. `source` is the row beside the table with moment, owner and what is given."""

    def __init__(self, entity: KeptEntity) -> None:
        self._entity = entity

    def is_compiled(self, edge: Transition) -> bool:
        """Whether an edge is one statement: it cannot fail, and draws or logs no value per entity."""
        entity, lease = self._entity, self._entity.row.lease
        is_claim = bool(lease and edge.to == lease.state)
        is_drawn = is_claim and bool(edge.from_request or (lease and lease.token))
        words = edge.dead_letter or edge.backoff or edge.multiply or len(edge.sources) > 1
        return not (words or is_drawn or entity.has_reasons)

    def writes(self, edge: Transition, p: Parameter, source: str) -> dict[str, str]:
        """Return the expression of each column that an edge writes; of two words the later counts."""
        entity = self._entity
        made = {entity.row.status: quoted(edge.to)}
        made |= dict(self._lease_writes(edge, p, source))
        if edge.increment:
            made[edge.increment] = self.increment(edge.increment)
        made |= dict(self._end_waits(edge, source))
        made |= {name: self.time_value(name, f"{source}.moment") for name in edge.stamps}
        made |= {name: self.literal(name, value) for name, value in edge.sets.items()}
        made |= {name: self.read(other) for name, other in edge.copy_.items()}
        made |= {
            name: self.take(name, source, keep_first=take.keep_first)
            for name, take in edge.from_request.items()
        }
        made |= {name: self.unset(name) for name in edge.clear}
        if entity.row.revision:
            made[entity.row.revision] = self.increment(entity.row.revision)
        return {entity.column(name): value for name, value in made.items()}

    def exchanges(
        self, settling: Transition, entering: Transition, p: Parameter
    ) -> Iterator[tuple[str, str]]:
        """Merge two edges for one statement: `moved.settles` says which of them each row takes."""
        first, second = (self.writes(edge, p, "moved") for edge in (settling, entering))
        for column in {**first, **second}:
            kept = f"{self._entity.table}.{column}"
            settled, taken = (each.get(column, kept) for each in (first, second))
            both = settled if settled == taken else f"CASE WHEN moved.settles THEN {settled} ELSE {taken} END"
            yield column, both

    # Words.

    def increment(self, name: str) -> str:
        """`increment`: one more than before."""
        return f"{self.number(name)} + 1"

    def take(self, name: str, source: str, *, keep_first: bool) -> str:
        """`from_request`: what is given, typed already; with `keep_first`, what there is unless unset."""
        given = f"{source}.{GIVEN}{name}"
        return (
            f"CASE WHEN {self.is_unset(name)} THEN {given} ELSE {self.read(name)} END"
            if keep_first
            else given
        )

    def _end_waits(self, edge: Transition, source: str) -> Iterator[tuple[str, str]]:
        """End the waits of other edges: at once in the state of waiting, and with no trace in any other."""
        entity = self._entity
        for until, state in entity.waits.items():
            if until == entity.not_before:
                continue
            is_over = edge.to == state and until != entity.held_back_by
            yield until, self.time_value(until, f"{source}.moment") if is_over else self.unset(until)

    def _lease_writes(self, edge: Transition, p: Parameter, source: str) -> Iterator[tuple[str, str]]:
        """The writes of an edge that enters or leaves the leased state."""
        entity, lease, entering = self._entity, self._entity.row.lease, self._entity.entering
        if lease is None:
            return
        if edge.to == lease.state and lease.state not in edge.sources:
            yield lease.owner, f"{source}.owner"
            yield lease.fence, self.increment(lease.fence)
            if lease.expires:
                yield lease.expires, self.lease_end(p, f"{source}.moment")
            if lease.renewed:
                yield lease.renewed, self.time_value(lease.renewed, f"{source}.moment")
        elif lease.state in edge.sources and edge.to != lease.state:
            if lease.expires:
                yield lease.expires, self.unset(lease.expires)
            if lease.token:
                yield lease.token, self.unset(lease.token)
            if not (lease.keeps_owner and entering and edge.to != entity.acquirable):
                yield lease.owner, self.unset(lease.owner)

    def lease_end(self, p: Parameter, moment: str, seconds: str | None = None) -> str:
        """The end of a lease that begins at a moment; `seconds` may stand in for its own length."""
        lease = self._entity.row.lease
        assert lease is not None
        assert lease.expires
        own = self.variable(p, lease.seconds, "double precision") if lease.seconds.isupper() else ""
        length = own or self.number(lease.seconds)
        length = f"coalesce({seconds}, {length})" if seconds else length
        return self.time_value(lease.expires, f"{moment} + {length} * interval '1 second'")

    def renewal(self, p: Parameter) -> dict[str, str]:
        """The columns of a lease that begins anew: its end is later, or it was renewed now."""
        lease, made = self._entity.row.lease, dict[str, str]()
        assert lease is not None
        if lease.expires:
            seconds = p("seconds", "double precision")
            made[lease.expires] = self.lease_end(p, "clock_timestamp()", seconds)
        if lease.renewed:
            made[lease.renewed] = self.time_value(lease.renewed, "held.moment")
        if self._entity.row.revision:
            made[self._entity.row.revision] = self.increment(self._entity.row.revision)
        return {self._entity.column(name): value for name, value in made.items()}

    def conditions(self, edge: Transition) -> Iterator[str]:
        """`when` and `where`: what a record must be like."""
        yield from (f"{self.read(flag)} IS TRUE" for flag in edge.when)
        yield from (f"{self.read(name)} = {self.literal(name, value)}" for name, value in edge.where.items())

    def variable(self, p: Parameter, name: str, kind: str) -> str:
        """The value of a variable, or what stands in for it in some entities."""
        usual, overrides = p(name, kind), self._entity.row.overrides
        special = (
            {text: row[name] for text, row in overrides.for_.items() if name in row} if overrides else {}
        )
        if not special or overrides is None:
            return usual
        cases = " ".join(f"WHEN {quoted(text)} THEN {value}" for text, value in special.items())
        return f"CASE {self.read(overrides.by)} {cases} ELSE {usual} END"

    # Times.

    def moment(self, table: str = "") -> str:
        """Now, but never a time before a stamp that the record has."""
        entity = self._entity
        table = table or entity.table
        stamps = [self._to_instant(name, f"{table}.{entity.column(name)}") for name in entity.stamps]
        now = "clock_timestamp()"
        if not any(entity.type_of(name) == "timestamptz" for name in entity.stamps):
            now = f"date_trunc('milliseconds', {now})"
        return f"greatest({', '.join((now, *stamps))})" if stamps else now

    def latest_stamp(self) -> str | None:
        """The latest of all stamps that a record has."""
        stamps = [self._to_instant(name, self.read(name)) for name in self._entity.stamps]
        return f"greatest({', '.join(stamps)})" if stamps else None

    def time_value(self, name: str, moment: str) -> str:
        """A moment as a field has it: a time, or milliseconds since the epoch."""
        if self._entity.type_of(name) == "timestamptz":
            return moment
        return f"floor(extract(epoch FROM {moment}) * 1000)::bigint"

    def age(self, name: str) -> str:
        """The seconds since a time of the record; one that is absent counts as the epoch."""
        at = self._to_instant(name, self.read(name))
        return f"extract(epoch FROM clock_timestamp() - coalesce({at}, timestamptz 'epoch'))"

    def read_instant(self, name: str) -> str:
        """A time of the row, whether it is kept as such or in milliseconds."""
        return self._to_instant(name, self.read(name))

    def _to_instant(self, name: str, value: str) -> str:
        if self._entity.type_of(name) == "timestamptz":
            return value
        return f"timestamptz 'epoch' + {value} * interval '1 millisecond'"

    # Fields.

    def read(self, name: str) -> str:
        """A column of the row."""
        return f"{self._entity.table}.{self._entity.column(name)}"

    def number(self, name: str) -> str:
        """A number of the row; one that may be absent counts as 0."""
        is_optional = self._entity.fields[name].optional
        return f"coalesce({self.read(name)}, 0)" if is_optional else self.read(name)

    def unset(self, name: str) -> str:
        """The value of an unset column."""
        if self._entity.fields[name].optional:
            return "NULL"
        return EMPTY.get(self._entity.type_of(name), "0")

    def is_unset(self, name: str) -> str:
        """Whether a column has nothing yet; an empty text is nothing."""
        column, kind = self.read(name), self._entity.type_of(name)
        if kind == "text":
            return f"coalesce({column}, '') = ''"
        is_optional = self._entity.fields[name].optional
        return f"{column} IS NULL" if is_optional else f"{column} = {self.unset(name)}"

    def literal(self, name: str, value: object) -> str:
        """A value of a field; that of an enum is its number, but states are names."""
        enum = field_enum(self._entity.spec, self._entity.fields[name])
        if enum is not None and isinstance(value, str):
            return quoted(value) if name == self._entity.row.status else str(enum.values[value].number)
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value) if isinstance(value, int) else quoted(str(value))
