"""An entity as Redis keeps it: the words of its enums, the keys of its indexes, and what its edges mean."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from codegen.emit.python.lifecycle import list_states
from codegen.emit.redis.script_arguments import Layout, entry, quoted
from codegen.language.lifecycle import Entity, Shift, Transition
from codegen.language.persistence import Index, KeptInRedis, Lease
from codegen.language.types import MessageField
from codegen.source.spec import Spec, field_enum

SIGNATURE = "signature"
"""The placeholder that stands for a set of texts in the key of a part."""
SETTLED = ".settled"
"""The field of a hash that says who gave a lease back last and how, so that a repeated report is known."""

GIVEN = ".given"
"""The field of a hash with all that the entity was created with, as one text. What is written later stands
beside it under its own name, and counts."""


@dataclass(frozen=True)
class RedisEntity:
    """One entity, its names and everything that scripts have to know of it."""

    spec: Spec
    name: str
    row: Entity

    @cached_property
    def kept(self) -> KeptInRedis:
        kept = self.row.in_redis
        if kept is None:
            raise ValueError(f"{self.name} is not kept in Redis")
        return kept

    @cached_property
    def fields(self) -> dict[str, MessageField]:
        return self.spec.messages[self.row.record].fields

    @property
    def key(self) -> str:
        return self.row.key

    @property
    def status(self) -> str:
        return self.row.status

    @property
    def lease(self) -> Lease | None:
        return self.row.lease

    @cached_property
    def states(self) -> list[str]:
        return list_states(self.spec, self.row)

    @cached_property
    def ended(self) -> frozenset[str]:
        """States in which an entity has come to its end, whether or not somebody may give it another life."""
        ends = {
            self.row.transitions[edge.gives_up.with_].to
            for edge in self.row.transitions.values()
            if edge.gives_up and self.row.transitions[edge.gives_up.with_].from_ == edge.from_
        }
        return frozenset({*self.row.terminal, *ends})

    @cached_property
    def claim(self) -> tuple[str, Transition] | None:
        """The edge by which a lease is taken, where it is taken from an index."""
        lease = self.lease
        if lease is None or lease.index is None:
            return None
        return next(item for item in self.row.transitions.items() if item[1].to == lease.state)

    @cached_property
    def packed(self) -> bool:
        """Whether it keeps what it was created with as one text. Those who hold leases are read by others."""
        leases = [other.lease for other in self.spec.lifecycle.entities.values() if other.lease]
        return all(lease.holder is None or lease.holder.entity != self.name for lease in leases)

    def in_given(self, name: str) -> bool:
        """Whether a field can be in the text of what the entity was created with."""
        own = {self.status, self.kept.sequence, *self.row.create.stamps, *self.apart}
        return self.packed and name in self.fields and name not in own

    @cached_property
    def apart(self) -> frozenset[str]:
        """Fields that a change may take away, which therefore are never in that text."""
        edges = self.row.transitions.values()
        changes: list[Transition | Shift] = [*edges, *self.row.shifts.values()]
        found = {name for change in changes for name in (*change.clears, *change.takes)}
        found |= {edge.waits.until for edge in edges if edge.waits}
        return frozenset(found | ({self.lease.owner, self.lease.expires} if self.lease else set()))

    @cached_property
    def leased_index(self) -> Index | None:
        return self.kept.indexes[self.lease.index] if self.lease and self.lease.index else None

    @cached_property
    def idle(self) -> str | None:
        """The hash of those who wait for one, and are handed what is created."""
        return self.lease.holder.idle if self.lease and self.lease.holder else None

    def rung_by(self, layout: Layout) -> str:
        """The channel that tells those who wait, and the keys of all that a ring changes."""
        if self.idle:
            layout.key("idle", self.idle)
            layout.key("rings", f"{self.idle}:rings")
        return layout.key("bell", self.kept.wakes or "")

    @property
    def signature_field(self) -> str:
        """The field of a hash that has the signature of the set of texts by which indexes have parts."""
        return ".signature"

    @cached_property
    def parted(self) -> str | None:
        """The list of texts by which indexes have parts."""
        found = {index.parts.by for index in self.kept.indexes.values() if index.parts}
        if len(found) > 1:
            raise ValueError(f"{self.name} has parts by {', '.join(sorted(found))}; it can be by one only")
        return next(iter(found), None)

    def word(self, field: str, value: str) -> str:
        """What a value of an enum is called in Redis."""
        enum = field_enum(self.spec, self.fields[field])
        return enum.word(value) if enum else value

    def words(self, field: str) -> list[str]:
        """All values of an enum as Redis has them."""
        enum = field_enum(self.spec, self.fields[field])
        return [enum.word(name) for name, row in enum.values.items() if row.number != 0] if enum else []

    def is_enum(self, field: str) -> bool:
        return field_enum(self.spec, self.fields[field]) is not None

    def optional(self, field: str) -> bool:
        return self.fields[field].optional

    def state(self, value: str) -> str:
        """The literal of a state."""
        return quoted(self.word(self.status, value))

    def literal(self, field: str, value: bool | int | str) -> str:
        """A value of the spec as it stands in a hash."""
        if isinstance(value, bool):
            return quoted("true" if value else "false")
        return quoted(self.word(field, value) if isinstance(value, str) else str(value))

    def key_of_index(self, name: str) -> IndexKey:
        index = self.kept.indexes[name]
        return IndexKey(self, f"index_{name}", index.key)

    def part_of_index(self, name: str) -> IndexKey:
        parts = self.kept.indexes[name].parts
        if parts is None:
            raise ValueError(f"{name} has no parts")
        return IndexKey(self, f"part_{name}", parts.key, is_part=True)


@dataclass(frozen=True)
class IndexKey:
    """The key of an index, or of a part of one; at most one of its fields is an enum."""

    entity: RedisEntity
    name: str
    pattern: str
    is_part: bool = False

    @cached_property
    def enum(self) -> str | None:
        """The enum field in the key."""
        return next(
            (each for each in self._fields if each in self.entity.fields and self._is_enum(each)), None
        )

    @cached_property
    def text(self) -> str | None:
        """The other field in the key, whose value only the caller knows."""
        return next((each for each in self._fields if each != self.enum), None)

    @cached_property
    def by_word(self) -> dict[str, str]:
        """The key for each value of the enum."""
        enum = self.enum
        if enum is None:
            return {}
        return {word: self.pattern.replace(f"{{{enum}}}", word) for word in self.entity.words(enum)}

    @cached_property
    def _fields(self) -> list[str]:
        """The fields of the hash in the key: in that of a part the signature is none of the record."""
        found = placeholders(self.pattern)
        if not self.is_part:
            return found
        return [self.entity.signature_field if each == SIGNATURE else each for each in found]

    def _is_enum(self, field: str) -> bool:
        return self.entity.is_enum(field)


def placeholders(pattern: str) -> list[str]:
    """The fields in a key."""
    return re.findall(r"\{(\w+)\}", pattern)


def owned(pattern: str, name: str = "owner") -> str:
    """A key that belongs to a holder, under the name that the caller has for the holder."""
    return re.sub(r"\{\w+\}", f"{{{name}}}", pattern)


def member(table: str, value: str) -> str:
    """An entry of a table of Lua by an expression; one that is a literal reads as a name where it can."""
    if value.startswith("'") and not (word := entry(value[1:-1])).startswith("["):
        return f"{table}.{word}"
    return f"{table}[{value}]"


def needed(by_word: dict[str, str], value: str) -> dict[str, str]:
    """The keys that a value can choose: one where it is a literal."""
    word = value[1:-1]
    return {word: by_word[word]} if value.startswith("'") and word in by_word else by_word
