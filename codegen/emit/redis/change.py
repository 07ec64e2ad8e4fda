"""What a change writes: fields of the hash, the indexes it leaves and enters, what it counts and tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from codegen.emit.redis.field_values import UNSET, Get, Reading, Value
from codegen.emit.redis.lua_metrics import counted
from codegen.emit.redis.outbox import counts, taken_away, written_down
from codegen.emit.redis.redis_entity import SETTLED, IndexKey, RedisEntity, member, needed, owned
from codegen.emit.redis.script_arguments import Layout, quoted
from codegen.language.lifecycle import Shift, Take, Transition
from codegen.language.persistence import Index


@dataclass
class Change:
    """One transition or shift of an entity, written into a script."""

    entity: RedisEntity
    layout: Layout
    was: Reading
    name: str
    edge: Transition | Shift
    key: str = "key"
    own_part: bool = False
    """Whether the caller names the one part that the entity is in, rather than all it could be in."""
    one_owner: bool = False
    """Whether all entities of a call have the same holder."""
    only_held: bool = False
    """Whether nobody but the holder of the lease makes the change."""
    whole: bool = False
    """Whether the script has read all fields, into `was`."""
    at_once: bool = False
    """Whether indexes are written on the spot, as a script for one entity does."""
    is_new: bool = False
    is_gone: bool = False
    prelude: list[str] = field(default_factory=list)
    after: dict[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        edge, entity = self.edge, self.entity
        self.sources: tuple[str, ...] = (edge.from_,) if isinstance(edge, Transition) else edge.in_
        self.target = edge.to if isinstance(edge, Transition) else None
        if self.target is not None:
            self.after[entity.status] = Value(entity.state(self.target))
        if isinstance(edge, Transition):
            self._lease_values()
            self._computed(edge)
        for name in edge.stamps:
            self.after[name] = Value("stamp")
        for name, value in edge.sets.items():
            self.after[name] = Value(entity.literal(name, value))
        for name in edge.clears:
            self.after[name] = UNSET
        for name, take in edge.takes.items():
            self.after[name] = self._taken(name, take)

    def lines(self, answer: Sequence[str] = ()) -> Iterator[str]:
        """All that is done to one entity, and the answer about it."""
        yield from self.prelude
        for name in self.entity.kept.indexes:
            yield from self._moves_between(name)
        yield from self._stores()
        if self.target is not None:
            yield from self._tells(self.target)
        for counting in counted(self.entity.spec, self.entity.name, self.name):
            yield from counts(self, counting)
        yield from self._takes_away()
        state = self.now(self.entity.status).text
        yield f"answers[n] = {{{', '.join(['DONE', state, *answer])}}}"

    def before(self, name: str) -> Value:
        """A field as it was before the change."""
        if name == self.entity.status and len(self.sources) == 1:
            return Value(self.entity.state(self.sources[0]))
        if isinstance(self.edge, Shift) and name in self.edge.where:
            return Value(self.entity.literal(name, self.edge.where[name]))
        return self.was.value(name)

    def now(self, name: str) -> Value:
        """A field as it is after the change."""
        return self.after.get(name) or self.before(name)

    # Fields.

    def _lease_values(self) -> None:
        lease, entity = self.entity.lease, self.entity
        if lease is None:
            return
        if self.target == lease.state:
            if lease.seconds.isupper():
                seconds = self.layout.argument(lease.seconds)
            else:
                seconds = f"({self.was(lease.seconds)} or 0)"
            self.prelude.append(f"local ends = text(now + {seconds} * 1000000)")
            self.prelude.append(f"local fence = text({self.was(lease.fence)} + 1)")
            self.after[lease.owner] = Value("owner")
            self.after[lease.expires] = Value("ends")
            self.after[lease.fence] = Value("fence")
        elif lease.state in self.sources:
            self.after[lease.expires] = UNSET
            if not (lease.keeps_owner and self.target in entity.ended):
                self.after[lease.owner] = UNSET

    def _computed(self, edge: Transition) -> None:
        for name, other in edge.copies.items():
            self.after[name] = self.was.value(other)
        if edge.counts:
            self._compute(edge.counts, f"text(({self.was(edge.counts)} or 0) + 1)")
        for name, growth in edge.grows.items():
            most = self.layout.argument(growth.most)
            grown = f"math.ceil(({self.was(name)} or 0) * {growth.times:g})"
            self._compute(name, f"text(math.min({grown}, {most}))")
        if waits := edge.waits:
            failures = f"({self.was(waits.count)} or 0)"
            if edge.counts != waits.count:
                failures = f"math.max({failures} - 1, 0)"
            base, most = self.layout.argument(waits.base), self.layout.argument(waits.max)
            local = f"new_{waits.until}"
            self.prelude += [
                f"local wait = math.min({most}, {base} * 2 ^ math.min({failures}, 60))",
                f"local {local} = wait > 0 and text(now + wait * 1000000) or nil",
            ]
            self.after[waits.until] = Value(local, maybe=True)

    def _compute(self, name: str, expression: str) -> None:
        self.prelude.append(f"local new_{name} = {expression}")
        self.after[name] = Value(f"new_{name}")

    def _taken(self, name: str, take: Take) -> Value:
        given = self.given(take.from_)
        row = self.entity.fields[name]
        if row.rules.cut is not None:
            self.layout.cuts[f"take.{take.from_}"] = self.entity.spec.limit(row.rules.cut)
        local = f"new_{name}"
        expression = f"{given} ~= '' and {given} or {quoted(take.default) if take.default else 'nil'}"
        if not row.optional and not take.default:
            empty = {"bool": "false", "json": "null"}.get(row.type, "" if row.type == "string" else "0")
            expression = f"{given} ~= '' and {given} or {quoted(empty)}"
        if take.keep_first:
            expression = f"{self.was(name)} or ({expression})"
        self.prelude.append(f"local {local} = {expression}")
        return Value(local, maybe=row.optional and not take.default)

    def given(self, name: str) -> str:
        """What the change is given from outside."""
        return self.layout.each_argument(f"take.{name}")

    def _stores(self) -> Iterator[str]:
        if self.is_gone:
            yield "redis.call('DEL', hash)"
            return
        sequence = self.entity.kept.sequence
        written, unset, maybe = list[str](), list[str](), dict[str, str]()
        if self.target is not None:
            yield f"local sequence = text(({self.was(sequence)} or 0) + 1)"
            written += [quoted(sequence), "sequence"]
        for name, value in self.after.items():
            if value.maybe:
                maybe[name] = value.text
            elif value.is_set:
                written += [quoted(name), value.text]
            else:
                unset.append(quoted(name))
        if self.is_held:
            written += [quoted(SETTLED), "mark"]
        yield from self._written(written, unset, maybe)
        expires = self.entity.kept.expires
        if expires and self.target in self.entity.row.terminal:
            yield f"redis.call('PEXPIRE', hash, text(math.ceil({self.layout.argument(expires)} * 1000)))"

    def _written(self, written: list[str], unset: list[str], maybe: dict[str, str]) -> Iterator[str]:
        if maybe or (unset and self.whole):
            # Looking for a field that is not there takes as long as for one that is.
            known = [] if self.whole else unset
            yield f"local fields, gone = {{{', '.join(written)}}}, {{{', '.join(known)}}}"
            for name in unset if self.whole else ():
                yield f"if was[{name}] then gone[#gone + 1] = {name} end"
            for name, text in maybe.items():
                there = f", was[{quoted(name)}]" if self.whole else ", true"
                yield f"keep(fields, gone, {quoted(name)}, {text}{there})"
            yield "if #gone > 0 then redis.call('HDEL', hash, unpack(gone)) end"
            yield "if #fields > 0 then redis.call('HSET', hash, unpack(fields)) end"
        else:
            if unset:
                yield f"redis.call('HDEL', hash, {', '.join(unset)})"
            if written:
                yield f"redis.call('HSET', hash, {', '.join(written)})"

    @property
    def is_held(self) -> bool:
        """Whether the holder of the lease can be the one who makes the change, and leaves it by that."""
        lease, claim = self.entity.lease, self.entity.claim
        if not (lease and claim and isinstance(self.edge, Transition)):
            return False
        return self.edge.from_ == lease.state and not set(claim[1].by).isdisjoint(self.edge.by)

    # Indexes.

    def _moves_between(self, name: str) -> Iterator[str]:
        index, key = self.entity.kept.indexes[name], self.entity.key_of_index(name)
        handed, read = self.layout.copy(), dict(self.was.names)
        before = None if self.is_new else self._condition(index, self.sources, self.before)
        targets = (self.target,) if self.target else self.sources
        after = None if self.is_gone else self._condition(index, targets, self.now)
        old = "" if before is None else self._place(key, self.before)
        new = "" if after is None else self._place(key, self.now)
        if (before, old) == (after, new) and index.score not in self.after:
            # Nothing changes here, so the script need not know of it.
            self.layout.restore(handed)
            self.was.names = read
            return
        if before is not None and (before, old) != (after, new):
            yield from _when(before, self._put("zrem" if index.score else "srem", old))
            if index.parts:
                part = self._place(self.entity.part_of_index(name), self.before)
                yield from _when(before, self._put("zrem", part))
        if after is not None:
            score = f"{self.now(index.score).text}, " if index.score else ""
            yield from _when(after, self._put("zadd" if index.score else "sadd", new, score))
            yield from self._wakes(name, after, new, score)

    def _put(self, command: str, place: str, score: str = "") -> str:
        """Enters or leaves an index, or a part of one."""
        if self.at_once:
            return f"redis.call({quoted(command.upper())}, {place}, {score}{self.key})"
        return f"put({command}, {place}, {score}{self.key})"

    def _wakes(self, name: str, after: str, new: str, score: str) -> Iterator[str]:
        """Enters the part too; a part, or an index, that was empty may be news for somebody who waits."""
        index, kept = self.entity.kept.indexes[name], self.entity.kept
        if index.parts:
            part = self._place(self.entity.part_of_index(name), self.now)
            texts = f"{self.now(self.entity.signature_field).text}, {self.now(index.parts.by).text}"
            yield from _when(after, self._put("zadd", part, score))
            yield from _when(after, f"parts[{part}] = {{{texts}, key = {self.key}}}")
            self.layout.key("known", index.parts.known)
            self.layout.key("version", f"{index.parts.known}:version")
        elif self.entity.leased_index is index and kept.wakes:
            yield from _when(after, f"parts[{new}] = {{key = {self.key}}}")
        if self.entity.leased_index is index and kept.wakes:
            self.entity.rung_by(self.layout)

    def _condition(self, index: Index, states: Sequence[str], get: Get) -> str | None:
        """When an entity in one of some states is in an index; empty for always, None for never."""
        inside = [state for state in states if state in index.in_]
        if not inside:
            return None
        parts: list[str] = []
        if len(inside) < len(states):
            status = self.was(self.entity.status)
            parts.append(" or ".join(f"{status} == {self.entity.state(state)}" for state in inside))
            if len(inside) > 1:
                parts[-1] = f"({parts[-1]})"
        for name, wanted in ((index.only_if, True), (index.only_unless, False)):
            if name is None:
                continue
            found = get(name)
            if found.maybe:
                parts.append(found.text if wanted else f"not {found.text}")
            elif found.is_set is not wanted:
                return None
        return " and ".join(parts)

    def _place(self, key: IndexKey, get: Get) -> str:
        """The key of an index, or of a part of one, for the values of an entity."""
        layout, name = self.layout, key.name
        if key.enum is None:
            if key.text is None:
                return layout.key(name, key.pattern)
            if self.one_owner:
                return layout.key(name, owned(key.pattern))
            self.believed(key.text)
            return layout.each_key(name, key.pattern)
        chosen = get(key.enum)
        if key.text is None:
            return member(layout.key_table(name, needed(key.by_word, chosen.text)), chosen.text)
        if self.own_part:
            return layout.each_key(name, key.pattern)
        self.believed(key.text)
        return f"KEYS[k + {member(layout.each_key_table(name, key.by_word), chosen.text)}]"

    def believed(self, name: str) -> str:
        """What the caller believes a field of the hash to be, by which it has chosen keys."""
        return self.layout.each_argument(f"believed.{name}")

    # The outbox, the counts, and what the holder is told.
    def _tells(self, target: str) -> Iterator[str]:
        yield from written_down(self, target)

    def _takes_away(self) -> Iterator[str]:
        yield from taken_away(self)


def _when(condition: str | None, line: str) -> Iterator[str]:
    yield f"if {condition} then {line} end" if condition else line
