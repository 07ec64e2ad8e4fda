"""SQL conditions of claims and due transitions, and their order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from codegen.emit.artefact import quote_sql as quoted
from codegen.emit.postgres.edge_words import Parameter
from codegen.language.lifecycle import Due, Transition, Update
from codegen.language.storage.layouts import PlacedIndex

if TYPE_CHECKING:
    from codegen.emit.postgres.postgres_entity import KeptEntity

_PLACEHOLDER = re.compile(r"{(\w+)}")
_UUID = "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"
"""The regular expression of keys of type uuid."""


def index_fields(index: PlacedIndex) -> list[str]:
    """List the fields of the record that the key of an index names."""
    return _PLACEHOLDER.findall(index.key)


class ClaimWords:
    """The order of claims of one entity, and its clocks."""

    def __init__(self, entity: KeptEntity) -> None:
        self._entity = entity
        self._edges = entity.edge_words

    # Claims.

    @property
    def ranks(self) -> list[str]:
        """The conditions of the ranks of `claim_order` in their order; without it one that is always true."""
        entity, lease = self._entity, self._entity.row.lease
        field = entity.rank_field
        if lease is None or field is None or not lease.claim_order:
            return ["true"]
        return [
            f"{self._edges.read(field)} = {self._edges.literal(field, value)}" for value in lease.claim_order
        ]

    def is_free(self) -> Iterator[str]:
        """Whether an entity is there to be claimed, now or from a time on."""
        entity, entering, index = self._entity, self._entity.entering, self._entity.leased_index
        assert entering is not None
        yield f"{entity.table}.{entity.status} = {quoted(entity.acquirable or '')}"
        if index is not None:
            yield from self.is_in_index(index, has_state=entity.acquirable in index.in_)
        yield from self._edges.conditions(entering)

    def is_in_index(self, index: PlacedIndex, *, has_state: bool | None = None) -> Iterator[str]:
        """Whether an entity is in an index; `has_state` says that its state is known to be, or not to be."""
        entity = self._entity
        if has_state is None:
            states = ", ".join(map(quoted, index.in_))
            yield f"{entity.table}.{entity.status} IN ({states})"
        elif not has_state:
            yield "false"
        if index.only_if:
            yield f"{self._edges.read(index.only_if)} IS NOT NULL"
        if index.only_unless:
            yield f"{self._edges.read(index.only_unless)} IS NULL"

    def is_ready(self) -> Iterator[str]:
        """Whether the time of an entity has come, and it carries no lease that goes on."""
        entity, lease = self._entity, self._entity.row.lease
        assert lease is not None
        if lease.expires and not entity.is_milliseconds(lease.expires):
            ends = self._edges.read(lease.expires)
            yield f"({ends} IS NULL OR {ends} < clock_timestamp())"
        if entity.not_before:
            at = self._edges.read(entity.not_before)
            now = self._edges.time_value(entity.not_before, "clock_timestamp()")
            yield f"coalesce({at} <= {now}, true)"

    def is_served(self, p: Parameter) -> Iterator[str]:
        """Whether an owner is able to run an entity, and its value is not paused."""
        entity, lease = self._entity, self._entity.row.lease
        assert lease is not None
        if entity.rank_field:
            value = self._edges.read(entity.rank_field)
            yield f"NOT EXISTS (SELECT FROM {entity.paused} AS paused WHERE paused.value = {value})"
        if lease.holder:
            yield f"{self._edges.read(lease.holder.needs)} <@ {p('offered', 'text[]')}"
        elif lease.only:
            offered = p("offered", "text[]")
            yield f"({offered} IS NULL OR {self._edges.read(lease.only)} = ANY({offered}))"

    @property
    def order(self) -> str:
        """The order within a rank: age, then key."""
        entity, lease = self._entity, self._entity.row.lease
        assert lease is not None
        first = " NULLS FIRST" if entity.fields[lease.oldest_by].optional else ""
        return f"{self._edges.read(lease.oldest_by)}{first}, {entity.table}.{entity.key}"

    @property
    def has_cursor(self) -> bool:
        """Whether a claim may go on from where the last one ended: ages alone order what is claimed."""
        entity, lease = self._entity, self._entity.row.lease
        if lease is None or entity.not_before or entity.fields[lease.oldest_by].optional:
            return False
        return self.ranks == ["true"] and not entity.is_milliseconds(lease.oldest_by)

    # Clocks.

    def due_rows(self, change: Transition | Update | None, due: Due, p: Parameter) -> Iterator[str]:
        """The conditions under which a change is due; no change means the deletion."""
        entity = self._entity
        states = self._states(change)
        if due.holder_in and entity.row.lease:
            states = [each for each in states if each == entity.row.lease.state]
        yield f"{entity.table}.{entity.status} IN ({', '.join(map(quoted, states)) or 'NULL'})"
        if isinstance(change, Transition):
            yield from self._edges.conditions(change)
        elif change is not None:
            for name, value in change.where.items():
                yield f"{self._edges.read(name)} = {self._edges.literal(name, value)}"
        if due.at:
            yield f"{self._edges.read(due.at)} < {self._due_time(due, p)}"
        elif due.holder_in and entity.holder is not None:
            gone, state = f"holder.{entity.holder.key} IS NULL", f"holder.{entity.holder.status}"
            yield f"({gone} OR {state} = {quoted(due.holder_in)})"
        if change is None and entity.held_entity is not None:
            yield f"NOT EXISTS (SELECT FROM {self.held_rows(entity.table + '.' + entity.key)})"

    def held_rows(self, key: str) -> str:
        """The leases that an entity holds, by its key."""
        other = self._entity.held_entity
        assert other is not None
        assert other.lease is not None
        state = quoted(other.lease.state)
        # Names of owners are text, whatever the keys of those who may be one are.
        owner = f"held.{other.lease.owner} = {key}::text"
        return f"{other.table} AS held WHERE {owner} AND held.{other.status} = {state}"

    def is_holder(self, owner: str) -> str:
        """The condition of being the holder of a name, by the index of the holder's keys."""
        holder = self._entity.holder
        assert holder is not None
        if holder.key_type == "uuid":
            owner = f"CASE WHEN {owner} ~ {quoted(_UUID)} THEN {owner}::uuid END"
        return f"holder.{holder.key} = {owner}"

    def _due_time(self, due: Due, p: Parameter) -> str:
        """The time before which something is overdue: a clock that is asked once is looked up in an index."""
        assert due.at is not None
        now = "clock_timestamp()"
        if due.after:
            now = f"{now} - {p(due.after, 'double precision')} * interval '1 second'"
        if self._entity.is_milliseconds(due.at):
            now = f"ceil(extract(epoch FROM {now}) * 1000)::bigint"
        return f"(SELECT {now})"

    def _states(self, change: Transition | Update | None) -> list[str]:
        if isinstance(change, Transition):
            return [*change.sources]
        if change is not None:
            return [*change.in_]
        deletion = self._entity.row.delete
        return [*deletion.from_] if deletion else []
