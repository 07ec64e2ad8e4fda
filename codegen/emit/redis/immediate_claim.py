"""Handing over: what is created is leased at once to one who waits for it, in the same script.

A script can touch no key but those that it was given, so the creator names the one whom it believes to wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from codegen.emit.redis.change import Change
from codegen.emit.redis.creation import Creation
from codegen.emit.redis.field_values import Get, Reading, Value
from codegen.emit.redis.leases import held_by
from codegen.emit.redis.lua_metrics import counted
from codegen.emit.redis.outbox import counts
from codegen.emit.redis.redis_entity import GIVEN, IndexKey, owned
from codegen.emit.redis.script_arguments import quoted


@dataclass
class _Given(Reading):
    """The fields of an entity that is only just being created: what the creation gives them."""

    made: Creation | None = None

    def __call__(self, name: str) -> str:
        return self.value(name).text

    def value(self, name: str) -> Value:
        assert self.made is not None
        found = self.made.now(name)
        if name in self.made.after or not self.entity.optional(name):
            return found
        return Value(f"({found.text} ~= '' and {found.text} or nil)", maybe=True)


@dataclass
class Handing(Creation):
    """The creation of an entity that is leased in the same moment."""

    plain: bool = True
    claim: Change = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        entity = self.entity
        assert entity.claim is not None
        made = Creation(entity, self.layout, Reading(entity), self.name, self.edge, plain=True)
        self.claim = Change(entity, self.layout, _Given(entity, made=made), *entity.claim)
        self.target = self.claim.target
        self.prelude = self.claim.prelude
        self.after |= self.claim.after

    def stored(self) -> Iterator[str]:
        """The entity itself."""
        yield from self.prelude
        yield from self._stores()

    def around(self) -> Iterator[str]:
        """All that is done beside that."""
        for name in self.entity.kept.indexes:
            yield from self._moves_between(name)
        assert self.target is not None
        yield from self._tells(self.target)
        for change in (self.name, self.claim.name):
            for counting in counted(self.entity.spec, self.entity.name, change):
                yield from counts(self, counting)

    def message(self) -> str:
        """What the one who waits is told: the record as one text, behind its owner, which may be any text."""
        lease = self.entity.lease
        known = {self.entity.kept.sequence: Value("'2'"), **self.after}
        told = "'\\n{"
        for name, value in known.items():
            if value.is_set and lease and name != lease.owner:
                text = value.text[1:-1] if value.text.startswith("'") else f"' .. {value.text} .. '"
                told += f'"{name}":"{text}",'
        return f"owner .. {told}\"{GIVEN}\":' .. fields .. '}}'"

    def _place(self, key: IndexKey, get: Get) -> str:
        if key.enum is None and key.text is not None:
            return self.layout.each_key(key.name, owned(key.pattern))
        return super()._place(key, get)

    def _stores(self) -> Iterator[str]:
        kept = self.entity.kept
        *_, line = super()._stores()
        # Both changes are written at once.
        yield line.replace(f"{quoted(kept.sequence)}, '1'", f"{quoted(kept.sequence)}, '2'")

    def _tells(self, target: str) -> Iterator[str]:
        entity, lease = self.entity, self.entity.lease
        yield "local sequence = '1'"
        yield from super()._tells(entity.row.initial)
        if entity.kept.outbox is None or lease is None:
            return
        told = {
            "entity": quoted(entity.name),
            "key": self.key,
            "sequence": "'2'",
            "from": entity.state(entity.row.initial),
            "to": entity.state(target),
            "at": "stamp",
            "actor": "taker",
            "owner": "owner",
            "fence": "fence",
        }
        if entity.kept.trace:
            told["trace"] = self.now(entity.kept.trace).text
        fields = ", ".join(f"{quoted(name)}, {text}" for name, text in told.items())
        yield f"redis.call('XADD', outbox, '*', {fields})"


def first_of(made: Creation) -> str:
    """What is empty before the first that somebody may wait for; the keys of a ring go into the layout."""
    entity, layout, lease = made.entity, made.layout, made.entity.lease
    assert lease is not None and lease.index
    entity.rung_by(layout)
    index = entity.kept.indexes[lease.index]
    part = entity.part_of_index(lease.index) if index.parts else entity.key_of_index(lease.index)
    return layout.each_key(part.name, part.pattern)


def handing(made: Creation) -> dict[str, Any]:
    """What the script for one entity has to know to hand it over."""
    entity, layout = made.entity, made.layout
    layout.each_argument("believed.owner")
    handed = Handing(entity, layout, made.was, made.name, made.edge)
    return {
        "stored": [*handed.stored()],
        "message": handed.message(),
        "lines": [*handed.around()],
        "signature": made.now(entity.signature_field).text if entity.parted else None,
        **held_by(entity, layout.each_key),
    }
