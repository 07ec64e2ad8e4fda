"""What a creation writes: everything that is given, stamped, and in the indexes of the initial state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from codegen.emit.redis.change import Change
from codegen.emit.redis.field_values import UNSET, Get, Value
from codegen.emit.redis.redis_entity import GIVEN, IndexKey, RedisEntity, member
from codegen.emit.redis.script_arguments import quoted


@dataclass
class Creation(Change):
    """The creation of an entity. The values of its fields come from the caller, so it reads nothing."""

    plain: bool = False
    """Whether it is of one entity that nothing holds back, written at once where the caller says."""
    decided: list[str] = field(default_factory=list)
    """Fields of which the script decides whether they are set."""

    def __post_init__(self) -> None:
        entity = self.entity
        self.sources, self.target = (), entity.row.initial
        self.is_new = self.own_part = True
        self.at_once = self.plain
        self.after[entity.status] = Value(entity.state(entity.row.initial))
        self.after |= {name: Value("stamp") for name in entity.row.create.stamps}
        if self.plain:
            self.after |= dict.fromkeys(decided_fields(entity), UNSET)
            return
        self.decided = decided_fields(entity)
        for name in self.decided:
            given = self.layout.each_argument(f"new.{name}")
            local = f"{name}_if_set"
            self.prelude.append(f"local {local} = {given} ~= '' and {given} or nil")
            if _ends_with_time(entity, name):
                over = f"{local} and tonumber({local}) <= now"
                self.prelude.append(f"if {over} then {local} = nil end")
            self.after[name] = Value(local, maybe=True)

    def counted_in(self, name: str) -> dict[str, str | None]:
        """An index whose size is known during the creation: where each comes in, and how many there are."""
        index, key = self.entity.kept.indexes[name], self.entity.key_of_index(name)
        inside = self._condition(index, (self.entity.row.initial,), self.now)
        table = self._table(key)
        word = self.now(key.enum).text if key.enum else ""
        return {
            "table": table,
            "key": member(table, word) if word else self.layout.key(key.name, key.pattern),
            "word": self.now(key.enum).text if key.enum else "1",
            "inside": inside or "true",
        }

    def size_of(self, name: str) -> str | None:
        """The key of an index whose size is told, if the entity is in it."""
        index, key = self.entity.kept.indexes[name], self.entity.key_of_index(name)
        inside = self._condition(index, (self.entity.row.initial,), self.now)
        return None if inside is None else self._place(key, self.now)

    def _table(self, key: IndexKey) -> str:
        if key.enum:
            return self.layout.key_table(key.name, key.by_word)
        return f"{{{self.layout.key(key.name, key.pattern)}}}"

    def now(self, name: str) -> Value:
        """A field as it is given, where the script does not write it itself."""
        if name in self.after:
            return self.after[name]
        if name == self.entity.signature_field:
            return Value(self.layout.each_argument(f"believed.{name}"))
        return Value(self.layout.each_argument(f"new.{name}"))

    def _place(self, key: IndexKey, get: Get) -> str:
        if self.plain and key.enum and key.enum not in self.after:
            return self.layout.each_key(key.name, key.pattern)
        return super()._place(key, get)

    def _wakes(self, name: str, after: str, new: str, score: str) -> Iterator[str]:
        if not self.plain:
            yield from super()._wakes(name, after, new, score)
            return
        index, kept = self.entity.kept.indexes[name], self.entity.kept
        wakes = kept.wakes if self.entity.leased_index is index else None
        if not (index.parts or wakes):
            return
        part = self._place(self.entity.part_of_index(name), self.now) if index.parts else new
        if index.parts:
            yield self._put("zadd", part, score)
        # The first of a part, or of an index, may be news for somebody who waits.
        if self.entity.idle:
            yield "if news then"
        else:
            yield f"if redis.call({quoted('ZCARD' if index.score else 'SCARD')}, {part}) == 1 then"
        if index.parts:
            known = self.layout.key("known", index.parts.known)
            version = self.layout.key("version", f"{index.parts.known}:version")
            texts = f"{self.now(self.entity.signature_field).text}, {self.now(index.parts.by).text}"
            yield f"if redis.call('HSETNX', {known}, {texts}) == 1 then"
            yield f"redis.call('INCR', {version})"
            yield "end"
        if wakes and not self.entity.idle:
            yield f"redis.call('PUBLISH', {self.entity.rung_by(self.layout)}, '0 ' .. {self.key})"
        yield "end"

    def _stores(self) -> Iterator[str]:
        kept = self.entity.kept
        written = [quoted(kept.sequence), "'1'"]
        for name, value in self.after.items():
            if value.is_set and not value.maybe:
                written += [quoted(name), value.text]
        if self.entity.parted:
            written += [quoted(self.entity.signature_field), self.now(self.entity.signature_field).text]
        yield "local sequence = '1'"
        if not self.entity.packed:
            yield f"redis.call('HSET', hash, {', '.join(written)}, unpack(cjson.decode(fields)))"
        else:
            yield f"redis.call('HSET', hash, {', '.join(written)}, {quoted(GIVEN)}, fields)"
            if not self.plain:
                apart = self.layout.each_argument("apart")
                yield f"if {apart} ~= '' then redis.call('HSET', hash, unpack(cjson.decode({apart}))) end"
        for name in self.decided:
            yield f"if {name}_if_set then redis.call('HSET', hash, {quoted(name)}, {name}_if_set) end"

    def _tells(self, target: str) -> Iterator[str]:
        outbox, entity = self.entity.kept.outbox, self.entity
        if outbox is None:
            return
        stream = self.layout.key("outbox", outbox.stream)
        told = [
            *("'entity'", quoted(entity.name), "'key'", self.key, "'sequence'", "sequence"),
            *("'to'", entity.state(target), "'at'", "stamp", "'actor'", self.layout.argument("actor")),
        ]
        if entity.kept.trace:
            told += ["'trace'", self.now(entity.kept.trace).text]
        yield f"redis.call('XADD', {stream}, '*', {', '.join(told)})"

    def _takes_away(self) -> Iterator[str]:
        yield from ()


def decided_fields(entity: RedisEntity) -> list[str]:
    """Fields that decide whether a new entity is in an index."""
    inside = [index for index in entity.kept.indexes.values() if entity.row.initial in index.in_]
    named = [name for index in inside for name in (index.only_if, index.only_unless) if name]
    return [*dict.fromkeys(named)]


def _ends_with_time(entity: RedisEntity, name: str) -> bool:
    """Whether the clock clears a field at the time that it says; one from the past is none, then."""
    return any(
        shift.due and shift.due.at == name and not shift.due.after and name in shift.clears
        for shift in entity.row.shifts.values()
        if entity.row.initial in shift.in_
    )
