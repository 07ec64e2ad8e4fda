"""An entity as SQLite sees it: columns, constraints, indexes, and the conditions that select rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from codegen.emit.artefact import quote_sql as quoted
from codegen.emit.sql.names import aside
from codegen.emit.sql.stored_entity import Column, StoredEntity, name_clocks
from codegen.language.lifecycle import Due, Transition, Update
from codegen.language.storage.layouts import PlacedIndex
from codegen.language.types import MessageField
from codegen.rules.storage.redis_keys import placeholders
from codegen.source.spec import field_enum, type_ref

TYPES = {"string": "TEXT", "json": "TEXT", "bytes": "BLOB", "double": "REAL", "float": "REAL"}
"""What each scalar of a record is in SQLite; others are INTEGER, and what is no scalar is JSON."""
EMPTY = {"TEXT": "''", "BLOB": "x''", "REAL": "0.0", "INTEGER": "0"}
"""What stands in a column that needs a value and was given none."""


class ClockSelection(NamedTuple):
    """The entities that one clock is about: the name of its statement, the field of its time, and where."""

    name: str
    field: str
    conditions: list[str]


class SqliteEntity(StoredEntity):
    """One entity, its names and everything that templates have to know of it."""

    @property
    def table(self) -> str:
        return self.row.in_sqlite.table if self.row.in_sqlite else ""

    @property
    def history(self) -> str:
        return self.row.in_sqlite.history if self.row.in_sqlite else ""

    @property
    def number(self) -> str:
        """The column of the table that numbers its rows."""
        return aside("number", *self.fields)

    @property
    def entities(self) -> str:
        """The column that counts the entities in each state."""
        return aside("entities", self.row.status)

    # What else is kept, where a word needs it.

    @property
    def unique(self) -> tuple[str, ...]:
        """Fields that no two entities ever share."""
        return tuple(sorted(self.row.in_sqlite.unique)) if self.row.in_sqlite else ()

    @property
    def constrained(self) -> list[str]:
        """Those of them in which nothing is NULL: a constraint of the table is enough."""
        return [name for name in self.unique if self.fields[name].optional or self.type_of(name) != "TEXT"]

    @property
    def remembers(self) -> bool:
        """Whether values are remembered for some time."""
        return bool(self.row.in_sqlite and self.row.in_sqlite.unique_for)

    @property
    def forgets(self) -> bool:
        """Whether entities are forgotten when they have ended."""
        return bool(self.row.retention or (self.row.in_sqlite and self.row.in_sqlite.expires))

    @property
    def deletable(self) -> tuple[str, ...]:
        """The states in which an entity may be removed."""
        ended = self.row.terminal if self.forgets else ()
        return tuple(dict.fromkeys((*(self.row.delete.from_ if self.row.delete else ()), *ended)))

    @property
    def names_edges(self) -> bool:
        """Whether the history has the names of edges: states do not tell them apart."""
        return bool(self.row.paired_edges or self.row.named_edges)

    @property
    def is_detailed(self) -> bool:
        """Whether the history has reasons, and with them owners and traces."""
        return any(edge.reason for edge in self.transitions.values())

    @cached_property
    def rank(self) -> str | None:
        """The field whose values are served in an order, and can be paused."""
        index = self.claimed_index
        named = placeholders(index.key) if index else []
        return named[0] if named else None

    @property
    def is_held(self) -> bool:
        """Whether leases are looked up by their owner."""
        others = self.spec.lifecycle.entities.values()
        counted = any(each.delete and each.delete.unless_holding == self.name for each in others)
        dues = [due for edge in self.transitions.values() for due in edge.dues]
        return bool(
            self.row.lease and (self.row.lease.holder or counted or any(due.holder_in for due in dues))
        )

    # Words and literals.

    def word(self, state: str) -> str:
        """A state as the file has it, quoted."""
        return quoted(self.spec.enums[self.fields[self.row.status].type].word(state))

    def words(self, states: Iterator[str] | tuple[str, ...]) -> str:
        """Some states as the file has them."""
        return ", ".join(map(self.word, states))

    def is_in(self, states: tuple[str, ...]) -> str:
        """The condition of being in one of some states."""
        if len(states) == 1:
            return f"{self.status} = {self.word(states[0])}"
        return f"{self.status} IN ({self.words(states)})"

    # The table.

    @cached_property
    def targets(self) -> dict[str, list[str]]:
        """Where edges lead, by the state that they leave."""
        found: dict[str, list[str]] = {}
        for edge in self.transitions.values():
            for source in edge.sources:
                if edge.to not in found.setdefault(source, []):
                    found[source].append(edge.to)
        return found

    @cached_property
    def columns(self) -> list[Column]:
        return [self._column(name, row) for name, row in self.fields.items()]

    @cached_property
    def monotonic(self) -> list[str]:
        """Counters that nothing lets begin anew."""
        changes: list[Transition | Update] = [*self.transitions.values(), *self.row.updates.values()]
        reset = {name for each in changes for name in (*each.sets, *each.from_request, *each.clear)}
        reset |= {name for edge in self.transitions.values() for name in edge.copy_}
        return [name for name in self.counters if name not in reset]

    @cached_property
    def guarded(self) -> set[str]:
        """Fields that only creation and transitions write; their columns have a default."""
        found = {self.row.status, *self.row.create.stamps, *self.row.create.copy_, *self.counters}
        for edge in self.transitions.values():
            found |= {*edge.stamps, *edge.sets, *edge.from_request, *edge.clear, *edge.copy_, *edge.multiply}
            if edge.backoff:
                found.add(edge.backoff.until)
        if lease := self.row.lease:
            found |= {each for each in (lease.owner, lease.expires, lease.renewed) if each}
        return found

    @cached_property
    def checks(self) -> list[str]:
        """What must hold for every row."""
        found = [each.check for each in self.columns if each.check]
        if (lease := self.lease) is not None and lease.state not in self.row.beginnings:
            found.append(f"{self.status} <> {self.word(lease.state)} OR {lease.owner} IS NOT NULL")
        return found

    # Selections.

    @cached_property
    def claimed_index(self) -> PlacedIndex | None:
        """The index whose entities are free."""
        kept, lease = self.row.in_sqlite, self.row.lease
        return kept.indexes.get(lease.index) if kept and lease and lease.index else None

    @cached_property
    def claiming(self) -> Transition | None:
        """The edge by which a lease is taken: the first that leads to it, by its states."""
        lease, named = self.row.lease, self.row.named_edges
        rows = self.row.transitions.items()
        return next(
            (row for name, row in rows if lease and row.to == lease.state and name not in named), None
        )

    @cached_property
    def parts(self) -> list[str]:
        """The columns by which the free ones are apart: their rank, and what an owner must be able to do."""
        lease = self.row.lease
        if lease is None:
            return []
        need = lease.holder.needs if lease.holder else lease.only
        rank = self.rank if lease.claim_order else None
        return [self.column(name) for name in (rank, need) if name]

    @property
    def need(self) -> str | None:
        """The column with what an owner must be able to do."""
        lease = self.row.lease
        name = (lease.holder.needs if lease.holder else lease.only) if lease else None
        return self.column(name) if name else None

    @cached_property
    def free(self) -> list[str]:
        """The conditions of being free."""
        edge, index = self.claiming, self.claimed_index
        if edge is None:
            return ["0"]
        found = [self.is_in(edge.sources), *self.wanted(edge)]
        if index is not None:
            found += [] if {*edge.sources} <= {*index.in_} else ["0"]
            found += self._presence(index)
        return found

    @property
    def waits_for_age(self) -> bool:
        """Whether nothing is free before the time that orders claims."""
        lease = self.row.lease
        waits = {edge.backoff.until for edge in self.transitions.values() if edge.backoff}
        return lease is not None and lease.oldest_by in waits

    @property
    def ripe(self) -> list[str]:
        """The conditions of being free now."""
        if not self.waits_for_age or self.row.lease is None:
            return self.free
        age = self.row.lease.oldest_by
        late = f"{self.column(age)} <= :now"
        absent = f"({self.column(age)} IS NULL OR {late})"
        return [*self.free, absent if self.fields[age].optional else late]

    @cached_property
    def ceiling(self) -> list[str] | None:
        """The conditions of being in the index that has a ceiling."""
        kept, ceiling = self.row.in_sqlite, self.row.create.ceiling
        if kept is None or ceiling is None or (index := kept.indexes.get(ceiling.index)) is None:
            return None
        return [self.is_in(index.in_), *self._presence(index)]

    @cached_property
    def clocks(self) -> list[ClockSelection]:
        """Those that each clock is about which goes by a time."""
        found: list[tuple[str, Due | None, list[str]]] = []
        for name, edge in self.transitions.items():
            conditions = [self.is_in(edge.sources), *self.wanted(edge)]
            found += [(title, due, conditions) for title, due in name_clocks(name, edge.dues)]
        for name, update in self.row.updates.items():
            conditions = [self.is_in(update.in_), *self._equal(update.where)]
            found += [(title, due, conditions) for title, due in name_clocks(name, update.dues)]
        if self.row.delete:
            found.append(("due_delete", self.row.delete.due, [self.is_in(self.row.delete.from_)]))
        return [ClockSelection(name, due.at, where) for name, due, where in found if due and due.at]

    @cached_property
    def indexes(self) -> dict[str, tuple[str, str]]:
        """What each index is for and what it is over, by name."""
        found: dict[str, tuple[str, str]] = {}
        table, key = self.table, self.key
        if self.lease and self.claiming:
            over = ", ".join([*self.parts, self.lease.oldest_by, self.number])
            found[f"{table}_acquirable"] = ("The next one to be taken.", f"({over}) WHERE {_all(self.free)}")
        if self.lease and self.is_held:
            over = f"({self.lease.owner}, {key}) WHERE {self.is_in((self.lease.state,))}"
            found[f"{table}_held"] = ("Leases by their owner.", over)
        for clock in self.clocks:
            name = clock.name.removeprefix("due_")
            over = f"({self.column(clock.field)}) WHERE {_all(clock.conditions)}"
            found[f"{table}_{name}"] = (f"Those that are due to {name.lstrip('0123456789_')}.", over)
        if self.ceiling and len(self.ceiling) > 1:
            found[f"{table}_counted"] = (
                "Those that a ceiling counts.",
                f"({key}) WHERE {_all(self.ceiling)}",
            )
        if self.listed_by:
            found[f"{table}_listed"] = ("The listing.", f"({self.listed_by}, {self.number})")
            over = f"({self.status}, {self.listed_by}, {self.number})"
            found[f"{table}_listed_by_state"] = ("The listing of some states.", over)
        return found

    @cached_property
    def unique_indexes(self) -> dict[str, str]:
        """What each unique index is over, by name: an empty text is no value."""
        names = [name for name in self.unique if name not in self.constrained]
        columns = {name: self.column(name) for name in names}
        return {f"{self.table}_one_{name}": f"({each}) WHERE {each} <> ''" for name, each in columns.items()}

    def wanted(self, edge: Transition) -> list[str]:
        """`when` and `where` as conditions."""
        return [*(self.column(flag) for flag in edge.when), *self._equal(edge.where)]

    def type_of(self, field: str) -> str:
        """What a field of the record is in SQLite."""
        row = self.fields[field]
        kind, inner, _ = type_ref(row.type)
        if field == self.row.status or kind != "single" or inner in self.spec.messages:
            return "TEXT"
        return TYPES.get(row.type, "INTEGER")

    def _equal(self, where: Mapping[str, str]) -> list[str]:
        found = []
        for name, value in where.items():
            enum = field_enum(self.spec, self.fields[name])
            found.append(f"{self.column(name)} = {enum.values[value].number if enum else quoted(value)}")
        return found

    def _presence(self, index: PlacedIndex) -> list[str]:
        found = [f"{self.column(index.only_if)} IS NOT NULL"] if index.only_if else []
        return found + ([f"{self.column(index.only_unless)} IS NULL"] if index.only_unless else [])

    def _column(self, name: str, row: MessageField) -> Column:
        column, default = self.column(name), None
        check = f"{column} >= 0" if row.type.startswith("uint") else None
        if name == self.row.status:
            default = self.word(self.row.initial)
            check = f"{column} IN ({self.words(tuple(self.states))})"
        elif not row.optional and name in self.guarded:
            default = EMPTY[self.type_of(name)]
        return Column(column, name, self.type_of(name), row.optional, default, check)


def _all(conditions: list[str]) -> str:
    return " AND ".join(conditions)
