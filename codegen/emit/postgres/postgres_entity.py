"""An entity as PostgreSQL sees it: columns, constraints, and what each edge writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from codegen.emit.artefact import quote_sql as quoted
from codegen.emit.postgres.types import EMPTY, TYPES
from codegen.emit.sql.names import GIVEN, postgres_column
from codegen.emit.sql.stored_entity import Column, StoredEntity
from codegen.language.lifecycle import GiveUp, Take, Transition
from codegen.language.types import MessageField

Parameter = Callable[[str, str], str]


class KeptEntity(StoredEntity):
    """One entity, its names and everything that templates have to know of it."""

    @property
    def table(self) -> str:
        return self.row.in_postgres.table if self.row.in_postgres else ""

    @property
    def history(self) -> str:
        return self.row.in_postgres.history if self.row.in_postgres else ""

    @property
    def unique(self) -> tuple[str, ...]:
        """Fields that no two entities share."""
        return tuple(sorted(self.row.in_postgres.unique)) if self.row.in_postgres else ()

    @property
    def unique_text(self) -> str:
        return " and ".join(self.unique) or self.row.key

    def column(self, field: str) -> str:
        """The column of a field, as SQL says it."""
        return postgres_column(field)

    @property
    def key_type(self) -> str:
        return self.type_of(self.row.key)

    @cached_property
    def columns(self) -> list[Column]:
        return [self._column(name, row) for name, row in self.fields.items()]

    @cached_property
    def given_columns(self) -> list[Column]:
        """What whoever creates an entity says of it; the store writes the others."""
        return [each for each in self.columns if each.field not in self.guarded]

    @cached_property
    def guarded(self) -> set[str]:
        """Fields that only creation and transitions write."""
        found = {self.row.status, *self.row.create.stamps, *self.counters, *self.waiting}
        for edge in self.transitions.values():
            found |= {*edge.stamps, *edge.sets, *edge.takes}
        if lease := self.row.lease:
            found |= {lease.owner, lease.expires}
        return found

    @cached_property
    def unchanging(self) -> list[Column]:
        """What is set when an entity is created and that no edge ever writes, beside its key."""
        stamps = {stamp for edge in self.transitions.values() for stamp in edge.stamps}
        changing = self.guarded - ({*self.row.create.stamps} - stamps)
        return [each for each in self.columns if each.field not in {*changing, self.row.key}]

    @cached_property
    def changing(self) -> list[Column]:
        """What edges write."""
        still = {self.row.key, *(each.field for each in self.unchanging)}
        return [each for each in self.columns if each.field not in still]

    @cached_property
    def waiting(self) -> dict[str, list[str]]:
        """Fields that say until when an entity waits, and the states in which it does."""
        found: dict[str, list[str]] = {}
        for edge in self.transitions.values():
            if edge.waits:
                found.setdefault(edge.waits.until, []).append(edge.to)
        return found

    @cached_property
    def stamped_always(self) -> list[str]:
        """Columns of stamps that every edge sets, so that one without them was typed by hand."""
        every = [set(edge.stamps) for edge in self.transitions.values()]
        common = set.intersection(*every) if every else set()
        return [self.column(name) for name in self.fields if name in common]

    @cached_property
    def entering(self) -> Transition | None:
        """The edge that takes the lease."""
        lease = self.row.lease
        found = (edge for edge in self.transitions.values() if lease and edge.to == lease.state)
        return next(found, None)

    @cached_property
    def acquirable(self) -> str | None:
        """The state from which the lease is taken."""
        return self.entering.from_ if self.entering else None

    @cached_property
    def due_edges(self) -> dict[str, Transition]:
        return {name: edge for name, edge in self.transitions.items() if edge.due}

    @cached_property
    def edges_from(self) -> dict[str, list[tuple[str, Transition]]]:
        """The edges by the state that they leave, states without any left out."""
        found: dict[str, list[tuple[str, Transition]]] = {}
        for name, edge in self.transitions.items():
            found.setdefault(edge.from_, []).append((name, edge))
        return found

    @cached_property
    def filters(self) -> list[Column]:
        """Columns that a listing may ask to be equal to something."""
        ruled_out = {self.row.key, self.row.status}
        return [
            each
            for each in self.columns
            if each.type in ("text", "integer", "bigint", "boolean") and each.field not in ruled_out
        ]

    @cached_property
    def constraints(self) -> dict[str, str]:
        """What must hold for every row, by name."""
        table, status, lease = self.table, self.status, self.lease
        found = {f"{table}_pkey": f"PRIMARY KEY ({self.key})"}
        if self.unique:
            found[f"{table}_unique"] = f"UNIQUE ({', '.join(self.columns_of(self.unique))})"
        for column in self.columns:
            if column.check:
                found[f"{table}_{column.field}_check"] = f"CHECK ({column.check})"
        if lease:
            state, either = (
                quoted(lease.state),
                [lease.state, *([self.acquirable] if self.acquirable else [])],
            )
            held = f"{lease.owner} IS NOT NULL AND {lease.expires} IS NOT NULL"
            free = f"{lease.owner} IS NULL AND {lease.expires} IS NULL"
            found[f"{table}_lease_held"] = f"CHECK ({status} <> {state} OR ({held}))"
            found[f"{table}_lease_free"] = f"CHECK ({status} IN ({_list(either)}) OR ({free}))"
        for until, states in self.waiting.items():
            over = f"{self.column(until)} IS NULL"
            found[f"{table}_{until}_check"] = f"CHECK ({status} IN ({_list(states)}) OR {over})"
        found[f"{table}_{self.row.status}_check"] = f"CHECK ({status} IN ({_list(self.states)}))"
        return found

    @cached_property
    def indexes(self) -> dict[str, tuple[str, str]]:
        """What each index is for and what it is over, by name."""
        found: dict[str, tuple[str, str]] = {}
        apart, listed = self.listed_apart, self.listed_by
        if self.lease and self.acquirable:
            order = self.lease.oldest_by + (f", {self.key}" if self.acquirable in apart else "")
            what = "The next one to be taken" + ("; also their listing." if self.acquirable in apart else ".")
            over = f"({order}) WHERE {self.status} = {quoted(self.acquirable)}"
            found[f"{self.table}_acquirable"] = (what, over)
        for name, edge in self.due_edges.items():
            # The index of the listing has each state in the order of its time already.
            if edge.due and edge.due.at and edge.due.at != self.row.listed_by:
                over = f"({self.column(edge.due.at)}) WHERE {self.status} = {quoted(edge.from_)}"
                found[f"{self.table}_due_{name}"] = (f"What is due to {name}.", over)
        if listed:
            what = "Listings, by state and newest first; also what is due by the same time."
            over = f"({self.status}, {listed} DESC, {self.key} DESC)"
            found[f"{self.table}_listed"] = (what, f"{over} WHERE {self.listed_together}" if apart else over)
        return found

    @cached_property
    def listed_apart(self) -> list[str]:
        """States whose rows the listing finds by another index, so that its own need not have them.

        Those that wait to be taken are in the order of the listing already. Those that are held are few, as
        each occupies somebody. A row passes through both, and each time an index is spared an entry.
        """
        lease, listed = self.lease, self.listed_by
        if not lease or not listed:
            return []
        waiting = self.acquirable if lease.oldest_by == listed else None
        swept = any(self.sweeps_lease(edge) for edge in self.due_edges.values())
        return [state for state in (waiting, lease.state if swept else None) if state]

    @property
    def listed_together(self) -> str:
        """The condition of the other states."""
        return " AND ".join(f"{self.status} <> {quoted(state)}" for state in self.listed_apart)

    @cached_property
    def at_once(self) -> tuple[str, Transition] | None:
        """The edge, and its name, that whoever creates an entity may take in the same step, if there is one.

        It leads to where the entity can be taken, and needs nothing that is not known at once.
        """
        for name, edge in self.transitions.items():
            plain = not (edge.when or edge.takes or edge.sets or edge.counts or edge.waits)
            stamped = {*edge.stamps} <= {*self.row.create.stamps}
            leads = edge.from_ == self.row.initial and edge.to == self.acquirable
            if leads and plain and stamped and self.creators_at_once(edge):
                return name, edge
        return None

    @property
    def names_edges(self) -> bool:
        """Whether the history has the names of edges, because their states do not tell them apart."""
        return bool(self.row.paired_edges)

    def named(self, edge_name: str) -> str:
        """The name of an edge that is told apart by it; empty where its states do that."""
        return edge_name if edge_name in self.row.paired_edges else ""

    @cached_property
    def edge_names(self) -> dict[tuple[str, str], tuple[str, list[str]]]:
        """By their states: the edge that is taken unless another is named, and those that may be."""
        found: dict[tuple[str, str], tuple[str, list[str]]] = {}
        for name, edge in sorted(self.transitions.items(), key=lambda item: item[1].by_name):
            found.setdefault((edge.from_, edge.to), (name, []))
            if edge.by_name:
                found[edge.from_, edge.to][1].append(name)
        return found

    def creators_at_once(self, edge: Transition) -> list[str]:
        """Those who may create an entity and drive this edge."""
        return sorted({*self.row.create.by} & {*edge.by})

    @property
    def triggers(self) -> set[str]:
        """The triggers of its table."""
        numbered = ["2_move", "5_delete", "6_record", "7_record_new", "9_truncate"]
        if self.unchanging:
            numbered.append("1_keep")
        if self.row.delete:
            numbered.append("8_forget")
        if self.row.lease:
            numbered.append("3_lease")
        if self.stamped_always or self.waiting:
            numbered.append("4_complete")
        return {f"{self.table}_{each}" for each in numbered}

    def type_of(self, field: str) -> str:
        """The type of a column."""
        row = self.fields[field]
        if row.rules.uuid or row.rules.uuid4:
            return "uuid"
        return TYPES.get(row.type, "text")

    def sweeps_lease(self, edge: Transition) -> bool:
        """Whether an edge is driven by the end of the lease."""
        lease = self.row.lease
        return bool(lease and edge.due and edge.from_ == lease.state and edge.due.at == lease.expires)

    def repaired(self, edge: Transition) -> bool:
        """Whether losing a step in a crash costs nothing but time, because the clock drives it again."""
        return edge.due is not None and edge.from_ == self.row.initial and edge.to == self.acquirable

    def free_actors(self, edge_name: str, edge: Transition) -> list[str]:
        """Actors that may take an edge at any time; the others only right after the failure that it ends."""
        ends = [row for row in self.transitions.values() if row.gives_up and row.gives_up.with_ == edge_name]
        failing = [row for row in ends if row.to == edge.from_]
        if not failing:
            return sorted(edge.by)
        instead = {row.due.by for row in ends if row.due and row.from_ == edge.from_}
        bound = {actor for row in failing for actor in row.by}
        return [actor for actor in sorted(edge.by) if actor in instead or actor not in bound]

    def waited_since(self) -> str | None:
        """The stamp that says since when an entity has been free to be taken, if every way there sets one."""
        into = [set(edge.stamps) for edge in self.transitions.values() if edge.to == self.acquirable]
        common = set.intersection(*into) if into else set()
        return next((self.column(name) for name in self.fields if name in common), None)

    def writes(self, edge: Transition, p: Parameter, source: str) -> Iterator[tuple[str, str]]:
        """(column, expression) for all that an edge writes; `source` has the moment and what is given."""
        yield self.status, quoted(edge.to)
        yield from self._lease_writes(edge, p, source)
        if edge.counts:
            yield self.column(edge.counts), f"{self.table}.{self.column(edge.counts)} + 1"
        for until, states in self.waiting.items():
            if edge.to not in states:
                yield self.column(until), "NULL"
            elif not (edge.waits and edge.waits.until == until):
                yield (
                    self.column(until),
                    f"{source}.moment",
                )  # It waits for nothing, so the wait is over at once.
        if edge.waits:
            yield self.column(edge.waits.until), self._wait(edge, p, source)
        for stamp in edge.stamps:
            yield self.column(stamp), f"{source}.moment"
        for field, value in edge.sets.items():
            yield self.column(field), _literal(value)
        for field, take in edge.takes.items():
            yield self.column(field), self._taken(field, take, source)

    def failures(self, end: GiveUp, table: str = "") -> str:
        """How often an entity has failed, for the comparison with the most that it may."""
        count = f"{table}{self.column(end.count)}"
        return f"{count} - {table}{self.column(end.less)}" if end.less else count

    def exchanges(
        self, settling: Transition, entering: Transition, p: Parameter
    ) -> Iterator[tuple[str, str]]:
        """The same for one statement that takes two edges: `moved` says which of them each row takes."""
        first, second = (dict(self.writes(edge, p, "moved")) for edge in (settling, entering))
        for column in {**first, **second}:
            settled, taken = (each.get(column, f"{self.table}.{column}") for each in (first, second))
            both = settled if settled == taken else f"CASE WHEN moved.settles THEN {settled} ELSE {taken} END"
            yield column, both

    def takes_of(self, edge: Transition) -> dict[str, str]:
        """What an edge is given from outside, as parameters and columns are called, and the type of each."""
        return {f"{GIVEN}{take.from_}": self.type_of(field) for field, take in edge.takes.items()}

    def cuts_of(self, edge: Transition) -> dict[str, int]:
        """Texts that are cut to a number of bytes before they are kept."""
        found = {}
        for field, take in edge.takes.items():
            if (cut := self.fields[field].rules.cut) is not None:
                found[f"{GIVEN}{take.from_}"] = self.spec.limit(cut)
        return found

    def _lease_writes(self, edge: Transition, p: Parameter, source: str) -> Iterator[tuple[str, str]]:
        lease = self.lease
        if lease and edge.to == lease.state:
            seconds = p(lease.seconds, "double precision")
            yield lease.owner, f"{source}.owner"
            yield lease.expires, f"{source}.moment + {seconds} * interval '1 second'"
            yield lease.fence, f"{self.table}.{lease.fence} + 1"
        elif lease and edge.from_ == lease.state:
            yield lease.owner, "NULL"
            yield lease.expires, "NULL"

    def _wait(self, edge: Transition, p: Parameter, source: str) -> str:
        waits = edge.waits
        if waits is None:
            return "NULL"
        column = f"{self.table}.{self.column(waits.count)}"
        failures = column if edge.counts == waits.count else f"greatest({column} - 1, 0)"
        most, base = (self.variable(p, each, "double precision") for each in (waits.max, waits.base))
        # Beyond 2^60 every wait is the longest one, and a greater power would not fit.
        return f"{source}.moment + least({most}, {base} * 2 ^ least({failures}, 60)) * interval '1 second'"

    def variable(self, p: Parameter, name: str, kind: str) -> str:
        """The value of a variable, or what stands in for it in some entities."""
        usual, overrides = p(name, kind), self.row.overrides
        special = (
            {text: row[name] for text, row in overrides.for_.items() if name in row} if overrides else {}
        )
        if not special or overrides is None:
            return usual
        cases = " ".join(f"WHEN {quoted(text)} THEN {value}" for text, value in special.items())
        return f"CASE {self.table}.{self.column(overrides.by)} {cases} ELSE {usual} END"

    def _taken(self, field: str, take: Take, source: str) -> str:
        kind, given = self.type_of(field), f"{source}.{GIVEN}{take.from_}"
        if kind == "text" and take.default:
            given = f"coalesce(nullif({given}, ''), {quoted(take.default)})"
        elif take.default:
            given = f"coalesce({given}, {quoted(take.default)}::{kind})"
        if not self.fields[field].optional:
            given = f"coalesce({given}, {EMPTY.get(kind, '0')})"
        return f"coalesce({self.table}.{self.column(field)}, {given})" if take.keep_first else given

    def _column(self, name: str, row: MessageField) -> Column:
        kind = self.type_of(name)
        column, unsigned = self.column(name), row.type.startswith("uint")
        return Column(
            column,
            name,
            kind,
            row.optional,
            self._default(name, kind),
            f"{column} >= 0" if unsigned else None,
        )

    def _default(self, name: str, kind: str) -> str | None:
        if name == self.row.key:
            return "gen_random_uuid()" if kind == "uuid" else None
        if name == self.row.status:
            return quoted(self.row.initial)
        if self.fields[name].optional or name not in self.guarded:
            return None
        return EMPTY.get(kind, "0")


def _literal(value: bool | int | str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else quoted(value)


def _list(texts: Iterable[str]) -> str:
    return ", ".join(map(quoted, texts))
