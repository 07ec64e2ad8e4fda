"""An entity as any SQL database sees it: names, fields, states and edges, in an order that is fixed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from codegen.emit.lifecycle import states_of
from codegen.language.lifecycle import Entity, Transition
from codegen.language.types import MessageField
from codegen.spec import Spec


@dataclass(frozen=True)
class Column:
    """One column of the table."""

    name: str
    type: str
    optional: bool
    default: str | None
    check: str | None

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
        return self.row.key

    @property
    def status(self) -> str:
        return self.row.status

    @cached_property
    def states(self) -> list[str]:
        """In the order of their numbers."""
        numbers = self.spec.enums[self.fields[self.status].type].values
        return sorted(states_of(self.spec, self.row), key=lambda state: numbers[state].number)

    @cached_property
    def fields(self) -> dict[str, MessageField]:
        rows = self.spec.messages[self.row.record].fields
        return dict(sorted(rows.items(), key=lambda item: item[1].number))

    @cached_property
    def transitions(self) -> dict[str, Transition]:
        rank = {state: number for number, state in enumerate(self.states)}
        rows = self.row.transitions.items()
        return dict(sorted(rows, key=lambda item: (rank[item[1].from_], rank[item[1].to])))

    @cached_property
    def counters(self) -> list[str]:
        """Columns that only ever grow."""
        fence = [self.row.lease.fence] if self.row.lease else []
        counted = [edge.counts for edge in self.transitions.values() if edge.counts]
        return [*dict.fromkeys((*counted, *fence))]
