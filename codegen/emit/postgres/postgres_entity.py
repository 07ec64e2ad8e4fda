"""An entity as PostgreSQL sees it: columns, constraints, and what each edge writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from codegen.emit.artefact import quote_sql as quoted
from codegen.emit.postgres.claim_words import ClaimWords
from codegen.emit.postgres.edge_words import EdgeWords
from codegen.emit.postgres.postgres_words import PostgresWords
from codegen.emit.postgres.types import EMPTY
from codegen.emit.sql.names import GIVEN
from codegen.emit.sql.stored_entity import Column, name_clocks
from codegen.language.leases import Lease
from codegen.language.lifecycle import Due, Transition
from codegen.language.types import MessageField

_AT_ONCE = {"from_", "to", "by", "trigger", "via", "stamps", "due"}
"""The words of an edge that may be taken in the statement of the creation."""


class KeptEntity(PostgresWords):
    """One entity, its names and everything that templates have to know of it."""

    @property
    def unique_text(self) -> str:
        return " and ".join(self.unique) or self.row.key

    @property
    def key_type(self) -> str:
        return self.type_of(self.row.key)

    @cached_property
    def columns(self) -> list[Column]:
        return [self._column(name, row) for name, row in self.fields.items()]

    @cached_property
    def given_columns(self) -> list[Column]:
        """The columns that a creation sets; the store writes the others."""
        return [each for each in self.columns if each.field not in self.guarded]

    @property
    def inserted_columns(self) -> list[str]:
        """The columns that the role of the service may insert: all, where a step of the engine inserts."""
        on_access = any(due.on_access for _, due in self.clocks.values())
        if self.has_quick_creation and not self.forgets_ended and not on_access:
            return [*(each.name for each in self.given_columns), self.status]
        return [each.name for each in self.columns]

    @cached_property
    def guarded(self) -> set[str]:
        """Fields that only creation and changes write."""
        found = {self.row.status, *self.row.create.stamps, *self.counters, *self.waits}
        for edge in self.transitions.values():
            found |= {*edge.stamps, *edge.sets, *edge.from_request, *edge.copy_, *edge.multiply, *edge.clear}
        for update in self.row.updates.values():
            found |= {*update.stamps, *update.sets, *update.from_request, *update.clear}
        found |= {self.row.revision} if self.row.revision else set()
        if lease := self.row.lease:
            found |= {each for each in (lease.owner, lease.expires, lease.renewed, lease.token) if each}
        return found

    @cached_property
    def unchanging(self) -> list[Column]:
        """The columns that are set at creation and that no edge ever writes, beside the key."""
        stamps = {stamp for edge in self.transitions.values() for stamp in edge.stamps}
        stamps |= {stamp for update in self.row.updates.values() for stamp in update.stamps}
        stamps |= {*self.waits}
        if (lease := self.row.lease) and lease.renewed:
            stamps.add(lease.renewed)
        changing = self.guarded - ({*self.row.create.stamps} - stamps)
        return [each for each in self.columns if each.field not in {*changing, self.row.key}]

    @cached_property
    def changing(self) -> list[Column]:
        """What edges write."""
        still = {self.row.key, *(each.field for each in self.unchanging)}
        return [each for each in self.columns if each.field not in still]

    @cached_property
    def edge_words(self) -> EdgeWords:
        """What edges write."""
        return EdgeWords(self)

    @cached_property
    def claim_words(self) -> ClaimWords:
        """The conditions of claims and of due transitions."""
        return ClaimWords(self)

    @cached_property
    def holder(self) -> KeptEntity | None:
        """The entity that holds its leases, if that is kept in the same place."""
        lease = self.row.lease
        return self._other(lease.holder.entity) if lease and lease.holder else None

    @cached_property
    def held_entity(self) -> KeptEntity | None:
        """The entity whose leases keep this one from being deleted."""
        deletion = self.row.delete
        return self._other(deletion.unless_holding) if deletion and deletion.unless_holding else None

    def _other(self, name: str) -> KeptEntity | None:
        row = self.spec.lifecycle.entities.get(name)
        return KeptEntity(self.spec, name, row) if row and row.in_postgres else None

    # Edges.

    @cached_property
    def stamped_always(self) -> list[str]:
        """Columns of stamps that every edge sets, so that one without them was typed by hand."""
        every = [set(edge.stamps) for edge in self.transitions.values()]
        common = set.intersection(*every) if every else set()
        return [self.column(name) for name in self.fields if name in common]

    @cached_property
    def due_edges(self) -> dict[str, Transition]:
        return {name: edge for name, edge in self.transitions.items() if edge.dues}

    @cached_property
    def edges_from(self) -> dict[str, list[tuple[str, Transition]]]:
        """The edges by the state that they leave, states without any left out."""
        found: dict[str, list[tuple[str, Transition]]] = {}
        for name, edge in self.transitions.items():
            for source in edge.sources:
                found.setdefault(source, []).append((name, edge))
        return found

    @cached_property
    def filters(self) -> list[Column]:
        """Columns that a listing or a claim may ask to be equal to something."""
        return [
            each
            for each in self.columns
            if each.type in ("text", "integer", "bigint", "boolean") and each.field != self.row.status
        ]

    @property
    def listed_type(self) -> str:
        """The type of the time that orders listings."""
        return self.type_of(self.row.listed_by) if self.row.listed_by else ""

    @cached_property
    def constraints(self) -> dict[str, str]:
        """The constraints of the table, by name."""
        table, status, lease = self.table, self.status, self.lease
        found = {f"{table}_pkey": f"PRIMARY KEY ({self.key})"}
        if self.unique and not self.has_partial_unique:
            found[f"{table}_unique"] = f"UNIQUE ({', '.join(self.columns_of(self.unique))})"
        for column in self.columns:
            if column.check:
                found[f"{table}_{column.field}_check"] = f"CHECK ({column.check})"
        if lease and self.row.lease and lease.state not in self.row.beginnings:
            found |= self._lease_constraints(self.row.lease)
        for until, states in self.waiting.items():
            over = f"{self.column(until)} IS NULL"
            found[f"{table}_{until}_check"] = f"CHECK ({status} IN ({_list(states)}) OR {over})"
        found[f"{table}_{self.row.status}_check"] = f"CHECK ({status} IN ({_list(self.states)}))"
        return found

    def _lease_constraints(self, lease: Lease) -> dict[str, str]:
        state, acquirable = quoted(lease.state), [self.acquirable] if self.acquirable else []
        fields = [lease.owner, *([lease.expires] if lease.expires else [])]
        held = [f"{self.column(name)} IS NOT NULL" for name in fields]
        free = [
            f"{self.column(name)} IS NULL"
            for name in fields
            if self.fields[name].optional and not (lease.keeps_owner and name == lease.owner)
        ]
        found = {f"{self.table}_lease_held": f"CHECK ({self.status} <> {state} OR ({' AND '.join(held)}))"}
        if free:
            either = _list([lease.state, *acquirable])
            found[f"{self.table}_lease_free"] = (
                f"CHECK ({self.status} IN ({either}) OR ({' AND '.join(free)}))"
            )
        return found

    @property
    def has_partial_unique(self) -> bool:
        """Whether unique fields may be absent or empty, or are unique each by itself."""
        return len(self.unique) > 1 or any(self.fields[name].optional for name in self.unique)

    @cached_property
    def indexes(self) -> dict[str, tuple[str, str]]:
        """The purpose and the columns of each index, by name."""
        found: dict[str, tuple[str, str]] = {}
        apart, listed = self.listed_apart, self.listed_by
        if self.lease and self.acquirable:
            rank = f"{self.column(self.rank_field)}, " if self.rank_field else ""
            key = f", {self.key}" if self.acquirable in apart or rank else ""
            order = rank + self.lease.oldest_by + key
            what = "The next one to be taken" + ("; also their listing." if self.acquirable in apart else ".")
            over = f"({order}) WHERE {self.status} = {quoted(self.acquirable)}"
            found[f"{self.table}_acquirable"] = (what, over)
        for name, edge in self.due_edges.items():
            # The index of the listing has each state in the order of its time already.
            where = self._is_in(edge.sources)
            found |= dict(self._iter_due_indexes(name, edge.dues, where))
        for name, update in self.row.updates.items():
            where = f"{self.status} IN ({_list(update.in_)})"
            found |= dict(self._iter_due_indexes(name, update.dues, where))
        if self.lease and self.row.lease and self.row.lease.holder:
            over = f"({self.lease.owner}) WHERE {self.status} = {quoted(self.lease.state)}"
            found[f"{self.table}_held"] = ("What each holder has.", over)
        if listed:
            what = "Listings, by state and newest first; also what is due by the same time."
            over = f"({self.status}, {listed} DESC, {self.key} DESC)"
            found[f"{self.table}_listed"] = (what, f"{over} WHERE {self.listed_together}" if apart else over)
        return found

    @cached_property
    def listed_apart(self) -> list[str]:
        """States whose rows the listing finds by another index, so that its own need not have them.

        Claimable rows are in the order of the listing already. Leased rows are few: each occupies an owner.
        A row passes through both, and each time an index is spared an entry.
        """
        lease, listed = self.lease, self.listed_by
        if not lease or not listed or self.rank_field:
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
        """The edge, and its name, that a creation may apply in the same step, if there is one.

        It leads to where the entity can be taken, and needs nothing that is not known at once.
        """
        for name, edge in self.transitions.items():
            plain = self.has_quick_creation and not self.has_reasons and {*edge.model_fields_set} <= _AT_ONCE
            stamped = {*edge.stamps} <= {*self.row.create.stamps}
            leads = edge.sources == (self.row.initial,) and edge.to == self.acquirable
            if leads and plain and stamped and self.creators_at_once(edge):
                return name, edge
        return None

    @property
    def names_edges(self) -> bool:
        """Whether the history has the names of edges, because their states do not tell them apart."""
        return any(others for _, others in self.edge_names.values())

    def named(self, edge_name: str) -> str:
        """The name of an edge, where it distinguishes it from another one; empty where its states do."""
        edge = self.transitions[edge_name]
        return edge_name if any(self.edge_names[source, edge.to][1] for source in edge.sources) else ""

    @cached_property
    def edge_names(self) -> dict[tuple[str, str], tuple[str, list[str]]]:
        """By their states: the edge that is taken unless another is named, and those that may be."""
        found: dict[tuple[str, str], tuple[str, list[str]]] = {}
        for name, edge in self.ordered_edges.items():
            for source in edge.sources:
                if (source, edge.to) in found:
                    found[source, edge.to][1].append(name)
                else:
                    found[source, edge.to] = (name, [])
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
        if self.forgets:
            numbered.append("8_forget")
        if self.row.lease and self.row.lease.expires:
            numbered.append("3_lease")
        if self.stamped_always or self.waiting:
            numbered.append("4_complete")
        return {f"{self.table}_{each}" for each in numbered}

    def _iter_due_indexes(
        self, name: str, dues: tuple[Due, ...], where: str
    ) -> Iterator[tuple[str, tuple[str, str]]]:
        """Iterate over the indexes of what is due to a change, but for what the listing has in that order."""
        for title, due in name_clocks(name, dues):
            if due.at and due.at != self.row.listed_by:
                over = f"({self.column(due.at)}) WHERE {where}"
                yield f"{self.table}_{title}", (f"What is due to {name}.", over)

    def _is_in(self, states: tuple[str, ...]) -> str:
        """The condition of being in one of some states."""
        one, *others = states
        return f"{self.status} IN ({_list(states)})" if others else f"{self.status} = {quoted(one)}"

    def sweeps_lease(self, edge: Transition) -> bool:
        """Whether an edge is driven by the end of the lease."""
        lease = self.row.lease
        ends = [due for due in edge.dues if lease and due.at == lease.expires]
        return bool(lease and lease.state in edge.sources and ends)

    def waits_for_lease(self, edge: Transition) -> bool:
        """Whether the one who drives an edge by the clock may do so only when a lease has ended."""
        claimers = self.entering.by if self.entering else ()
        is_only = len(edge.dues) == 1 and edge.dues[0].by not in claimers
        return self.sweeps_lease(edge) and is_only and len(edge.by) > 1

    @property
    def late_actors(self) -> str:
        """Whose writes come too late when a lease has ended: those who need its proof, unless they end it."""
        lease, entering = self.row.lease, self.entering
        leaving = [edge for edge in self.transitions.values() if lease and lease.state in edge.sources]
        actors = {actor for edge in leaving for actor in edge.by}
        clocks = {due.by for edge in leaving for due in edge.dues}
        claimers = {*entering.by} if entering else set()
        inside = [update for update in self.row.updates.values() if lease and lease.state in update.in_]
        if actors <= claimers | clocks and not inside:
            return f"NOT IN ({_list(['', *sorted(clocks)])})"
        return f"IN ({_list(sorted(claimers - clocks))})" if claimers - clocks else "IS NULL"

    @property
    def unfenced_updates(self) -> list[str]:
        """Updates of a leased entity that need no proof, and so are made when the lease has ended, too."""
        updates, lease = self.row.updates.items(), self.row.lease
        return [name for name, each in updates if lease and lease.state in each.in_ and not each.fenced]

    @property
    def growing(self) -> list[str]:
        """Counters that nothing resets."""
        edges, updates = self.row.transitions.values(), self.row.updates.values()
        written = {name for row in edges for name in (*row.sets, *row.from_request, *row.clear)}
        written |= {name for row in edges for name in (*row.copy_, *row.multiply)}
        written |= {name for row in updates for name in (*row.sets, *row.from_request, *row.clear)}
        revision = [self.row.revision] if self.row.revision else []
        return [name for name in (*self.counters, *revision) if name not in written]

    def stamp_now(self, column: str) -> str:
        """Now as the column of a stamp has it."""
        field = next(each.field for each in self.columns if each.name == column)
        return self.edge_words.time_value(field, "clock_timestamp()")

    @property
    def changed_at(self) -> str | None:
        """When an entity has last changed, by its stamps."""
        shifted = any(update.stamps for update in self.row.updates.values())
        always = [
            name
            for name in self.row.create.stamps
            if self.column(name) in self.stamped_always and not self.is_milliseconds(name)
        ]
        if always and not shifted:
            return f"{self.table}.{self.column(always[0])}"
        return self.edge_words.latest_stamp()

    @property
    def forgets_ended(self) -> bool:
        """Whether what has ended is forgotten after some time, or beyond a number."""
        kept = self.row.in_postgres
        return bool(self.row.terminal and kept and (kept.expires or self.row.retention))

    @property
    def forgets(self) -> bool:
        """Whether the history goes with its entity."""
        return bool(self.row.delete or self.forgets_ended)

    def repaired(self, edge: Transition) -> bool:
        """Whether losing a step in a crash costs nothing but time, because the clock drives it again."""
        return bool(edge.dues) and edge.sources == (self.row.initial,) and edge.to == self.acquirable

    @property
    def all_ends(self) -> list[tuple[str, str]]:
        """The states between which there are edges."""
        return [(source, edge.to) for edge in self.transitions.values() for source in edge.sources]

    def free_actors(self, edge_name: str, edge: Transition, state: str) -> list[str]:
        """Actors that may take an edge out of a state at any time."""
        ends = self._given_up_by(edge_name)
        instead = {actor for row in ends if state in row.sources for actor in row.by}
        instead |= {due.by for due in edge.dues}
        instead |= {*edge.by} if edge is self.entering else set()
        bound = {actor for row in ends if row.to == state for actor in row.by}
        return sorted(({*edge.by} - bound) | instead)

    def bound_actors(self, edge_name: str, edge: Transition, state: str) -> list[str]:
        """Actors that take an edge only right after the failure that it ends."""
        ends = self._given_up_by(edge_name)
        bound = {actor for row in ends if row.to == state for actor in row.by}
        return sorted(bound - {*self.free_actors(edge_name, edge, state)})

    def _given_up_by(self, edge_name: str) -> list[Transition]:
        """The edges that an edge ends."""
        rows = [row for row in self.transitions.values() if row.dead_letter]
        return [row for row in rows if row.dead_letter and row.dead_letter.transition == edge_name]

    def waited_since(self) -> str | None:
        """The stamp that says since when an entity has been free to be taken, if every way there sets one."""
        into = [set(edge.stamps) for edge in self.transitions.values() if edge.to == self.acquirable]
        common = set.intersection(*into) if into else set()
        stamp = next((name for name in self.fields if name in common), None)
        return self.edge_words.read_instant(stamp) if stamp else None

    def takes_of(self, edge: Transition) -> dict[str, str]:
        """The request fields of an edge, by the names of their parameters, and the type of each."""
        return {f"{GIVEN}{field}": self.type_of(field) for field in edge.from_request}

    @cached_property
    def cuts(self) -> dict[str, int]:
        """Texts that are cut to a number of bytes before they are kept."""
        found = {name: row.rules.cut for name, row in self.fields.items()}
        return {name: self.spec.limit(cut) for name, cut in found.items() if cut is not None}

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


def _list(texts: Iterable[str]) -> str:
    return ", ".join(map(quoted, texts))
