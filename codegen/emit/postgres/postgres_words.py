"""The words of a lifecycle as PostgreSQL needs them, prepared as `runtime.stores.semantics.Rules` does."""

from __future__ import annotations

from functools import cached_property

from codegen.emit.postgres.claim_words import index_fields
from codegen.emit.postgres.types import TYPES
from codegen.emit.sql.names import postgres_column
from codegen.emit.sql.stored_entity import StoredEntity, name_clocks
from codegen.language.lifecycle import Due, Transition, Update
from codegen.language.storage.layouts import PlacedIndex
from codegen.source.spec import type_ref


class PostgresWords(StoredEntity):
    """One entity: its names and types, and what follows from its lifecycle."""

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

    def column(self, field: str) -> str:
        """The column of a field, as SQL says it."""
        return postgres_column(field)

    def type_of(self, field: str) -> str:
        """The type of a column."""
        row = self.fields[field]
        if row.rules.uuid or row.rules.uuid4:
            return "uuid"
        kind, inner, _ = type_ref(row.type)
        if kind == "repeated" and inner == "string":
            return "text[]"
        if kind != "single" or inner in self.spec.messages:
            return "jsonb"
        if inner in self.spec.enums and field != self.row.status:
            return "integer"
        return TYPES.get(inner, "text")

    @cached_property
    def entering(self) -> Transition | None:
        """The edge that takes the lease."""
        lease, named = self.row.lease, self.row.named_edges
        rows = (edge for name, edge in self.row.transitions.items() if name not in named)
        return next((edge for edge in rows if lease and edge.to == lease.state), None)

    @cached_property
    def acquirable(self) -> str | None:
        """The state from which the lease is taken."""
        return self.entering.sources[0] if self.entering else None

    @cached_property
    def ordered_edges(self) -> dict[str, Transition]:
        """The edges in the order of the lifecycle table: those that are taken by name come last."""
        rows, named = self.row.transitions, self.row.named_edges
        return {name: rows[name] for name in (*(each for each in rows if each not in named), *named)}

    @cached_property
    def waits(self) -> dict[str, str]:
        """Times until which entities wait, and the state in which they do."""
        return {edge.backoff.until: edge.to for edge in self.ordered_edges.values() if edge.backoff}

    @cached_property
    def waiting(self) -> dict[str, list[str]]:
        """The waits that are set in the states that they lead to and in no other, and those states."""
        found: dict[str, list[str]] = {}
        for edge in self.transitions.values():
            if edge.backoff and edge.backoff.until not in (self.not_before, self.held_back_by):
                found.setdefault(edge.backoff.until, []).append(edge.to)
        # A wait that others write too is theirs.
        for update in self.row.updates.values():
            for name in (*update.stamps, *update.sets, *update.from_request, *update.clear):
                found.pop(name, None)
        return {name: states for name, states in found.items() if len({*states}) == 1}

    @cached_property
    def leased_index(self) -> PlacedIndex | None:
        """The index that orders claims."""
        lease, kept = self.row.lease, self.row.in_postgres
        return kept.indexes[lease.index] if lease and lease.index and kept else None

    @cached_property
    def rank_field(self) -> str | None:
        """The field whose values are served in the order of `claim_order`."""
        named = index_fields(self.leased_index) if self.leased_index else []
        return named[0] if named else None

    @property
    def paused(self) -> str:
        """The table of values that are paused."""
        return f"{self.table}_paused"

    @property
    def remembered(self) -> str:
        """The table of unique values that are remembered for some time."""
        return f"{self.table}_values"

    @cached_property
    def not_before(self) -> str | None:
        """The time before which nothing is claimed."""
        lease = self.row.lease
        return lease.oldest_by if lease and lease.oldest_by in self.waits else None

    @cached_property
    def held_back_by(self) -> str | None:
        """The field that holds an entity back from claims."""
        return self.leased_index.only_unless if self.leased_index else None

    @cached_property
    def stamps(self) -> list[str]:
        """The times that say when something has happened, and so lie never ahead."""
        found = {*self.row.create.stamps}
        for edge in self.row.transitions.values():
            found |= {*edge.stamps}
        for update in self.row.updates.values():
            found |= {*update.stamps}
        ahead = {*self.waits, self.row.lease.expires if self.row.lease else ""}
        return [name for name in self.spec.messages[self.row.record].fields if name in found - ahead]

    def state_number(self, state: str) -> int:
        """The number of a state."""
        return self.spec.enums[self.fields[self.row.status].type].values[state].number

    def is_milliseconds(self, name: str) -> bool:
        """Whether a time is a number of milliseconds since the epoch."""
        return self.type_of(name) != "timestamptz"

    @cached_property
    def has_reasons(self) -> bool:
        """Whether the history has owner, reason and trace of each change."""
        return any(edge.reason for edge in self.transitions.values())

    @cached_property
    def has_quick_creation(self) -> bool:
        """Whether one statement creates: nothing but the time and one unique field is decided there."""
        create, kept = self.row.create, self.row.in_postgres
        words = any(
            (create.to, create.copy_, create.defaults, create.ceiling, self.not_before, self.row.revision)
        )
        words = words or bool(kept and (kept.unique_for or len(kept.unique) > 1))
        has_times = all(not self.is_milliseconds(name) for name in create.stamps)
        is_flat = all(type_ref(row.type).name not in self.spec.messages for row in self.fields.values())
        is_flat = is_flat and all(self.type_of(name) != "text[]" for name in self.fields)
        return not words and has_times and is_flat and self.held_back_by not in self.waits

    @cached_property
    def clocks(self) -> dict[str, tuple[Transition | Update | None, Due]]:
        """The due changes, by the names of the statements that find them."""
        found: dict[str, tuple[Transition | Update | None, Due]] = {}
        for name, edge in self.ordered_edges.items():
            found |= {title: (edge, due) for title, due in name_clocks(name, edge.dues)}
        for name, update in self.row.updates.items():
            found |= {title: (update, due) for title, due in name_clocks(name, update.dues)}
        if self.row.delete and self.row.delete.due:
            found["due_delete"] = (None, self.row.delete.due)
        return found
