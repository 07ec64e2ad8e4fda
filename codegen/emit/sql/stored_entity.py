"""An entity as any SQL database sees it: names, fields, states and edges, in an order that is fixed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from codegen.emit.python.lifecycle import list_states
from codegen.emit.sql.names import aside, quoted_name
from codegen.language.leases import Lease
from codegen.language.lifecycle import Due, Entity, Transition
from codegen.language.types import MessageField
from codegen.source.spec import Spec


def name_clocks(change: str, dues: tuple[Due, ...]) -> Iterator[tuple[str, Due]]:
    """Name the statements that find what is due to a change, one for each of its clocks."""
    for number, due in enumerate(dues, start=1):
        yield f"due_{number}_{change}" if number > 1 else f"due_{change}", due


@dataclass(frozen=True)
class Column:
    """One column of the table: its name as SQL says it, and the field that it has."""

    name: str
    field: str
    type: str
    optional: bool
    default: str | None
    check: str | None

    @property
    def is_renamed(self) -> bool:
        """Whether it has another name than its field."""
        return self.name.strip('"') != self.field

    def __str__(self) -> str:
        needed = "" if self.optional else " NOT NULL"
        default = f" DEFAULT {self.default}" if self.default is not None else ""
        return f"{self.name} {self.type}{needed}{default}"


@dataclass(frozen=True)
class StoredEntity:
    """One entity and what does not depend on the dialect. All of it is in an order that no edit changes."""

    spec: Spec
    name: str
    row: Entity

    @property
    def key(self) -> str:
        """The column of the key, as SQL says it."""
        return self.column(self.row.key)

    @property
    def status(self) -> str:
        """The column of the state, as SQL says it."""
        return self.column(self.row.status)

    @cached_property
    def lease(self) -> Lease | None:
        """The lease with the columns of its fields, as SQL says them."""
        lease = self.row.lease
        if lease is None:
            return None
        fields = ("owner", "expires", "fence", "oldest_by", "renewed")
        columns = {name: self.column(value) for name in fields if (value := getattr(lease, name))}
        return lease.model_copy(update=columns)

    @property
    def listed_by(self) -> str | None:
        """The column that orders listings, as SQL says it."""
        return self.column(self.row.listed_by) if self.row.listed_by else None

    def column(self, field: str) -> str:
        """The column of a field, as SQL says it."""
        return quoted_name(field)

    def columns_of(self, fields: Iterable[str]) -> list[str]:
        """The columns of some fields, as SQL says them."""
        return [self.column(field) for field in fields]

    @cached_property
    def log(self) -> dict[str, str]:
        """The columns of the history beside the key of the entity, by what they are."""
        times = ("number", "from_state", "to_state", "actor", "fence", "at", "edge", "txid")
        names = (*times, "owner", "reason", "trace")
        return {name: aside(name, self.row.key) for name in names}

    @cached_property
    def states(self) -> list[str]:
        """In the order of their numbers."""
        numbers = self.spec.enums[self.fields[self.row.status].type].values
        return sorted(list_states(self.spec, self.row), key=lambda state: numbers[state].number)

    @cached_property
    def fields(self) -> dict[str, MessageField]:
        rows = self.spec.messages[self.row.record].fields
        return dict(sorted(rows.items(), key=lambda item: item[1].number))

    @cached_property
    def transitions(self) -> dict[str, Transition]:
        rank = {state: number for number, state in enumerate(self.states)}
        rows = self.row.transitions.items()
        return dict(sorted(rows, key=lambda item: (rank[item[1].sources[0]], rank[item[1].to])))

    @cached_property
    def counters(self) -> list[str]:
        """Fields that only ever grow."""
        fence = [self.row.lease.fence] if self.row.lease else []
        counted = [edge.increment for edge in self.transitions.values() if edge.increment]
        return [*dict.fromkeys((*counted, *fence))]
