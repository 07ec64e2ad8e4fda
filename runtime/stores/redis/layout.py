"""The layout of entities in Redis: their keys, by the names of the spec or by default.

Names by default begin with the system, as many systems may share a server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

from runtime.model.lifecycles import Index, Lifecycle, Transition, Update
from runtime.model.system import System
from runtime.stores.layouts.redis import KeptInRedis
from runtime.stores.semantics.placement import index_fields
from runtime.stores.semantics.rules import Clock, Rules

Pattern = tuple[str, str]
"""The text before and behind what a key is about."""


class Rank(Struct, frozen=True):
    """What is claimed before all of later ranks: its index, its value, and the parts of it by needs."""

    key: str
    word: str
    value: int
    part: Pattern


class KeyLayout:
    """The keys of one kind of entity. A name of the spec has no prefix; what is asked for here has it."""

    def __init__(self, rules: Rules, prefix: str, system: System) -> None:
        self.rules, self.lifecycle = rules, rules.lifecycle
        self.prefix = prefix
        self._system, self._lifecycles = system.name, system.lifecycles
        self.kept = _named(self.lifecycle)
        entity = self.lifecycle.entity
        self.clock, self.trimming = self.own(f"clock:{entity}"), self.own(f"trim:{entity}")
        self.hash = self.pattern(self._hash_name(self.lifecycle))
        self.known = self.key(self._parts.known) if self._parts else self.own(f"{entity}:needs")
        named = self.kept.paused if self.kept else None
        self.paused = self.key(named) if named else self.own(f"{entity}:paused")
        self.wake_up = (
            self.key(self.kept.wake_up) if self.kept and self.kept.wake_up else self.own(f"{entity}:wake")
        )
        self.history = self.own(f"{entity}:history:")
        self.ended, self.ending = self.own(f"{entity}:ended"), self.own(f"{entity}:ending")

    def key(self, name: str) -> str:
        """Return a key under the prefix."""
        return self.prefix + name

    def own(self, name: str) -> str:
        """Return a key that the spec does not name."""
        return self.key(self._scope(self.lifecycle) + name)

    def _scope(self, lifecycle: Lifecycle) -> str:
        """Return what names by default begin with; beside names of a spec they need nothing."""
        return "" if _named(lifecycle) else f"{self._system}:"

    def pattern(self, name: str) -> Pattern:
        """Split a key at what it is about."""
        head, _, rest = name.partition("{")
        return self.key(head), rest.partition("}")[2]

    def word(self, field: str, value: int) -> str:
        """Return a value of a field as Redis has it."""
        return words_of(self.lifecycle).get(field, {}).get(value, str(value))

    @property
    def states(self) -> dict[int, str]:
        """The states as Redis has them."""
        return {state: self.word(self.lifecycle.status, state) for state in self.lifecycle.states}

    # Indexes by what they are for.

    @cached_property
    def declared(self) -> dict[str, Index]:
        """The indexes of the spec that are kept under its names."""
        return dict(self.kept.indexes) if self.kept else {}

    @cached_property
    def listed(self) -> str | None:
        """The index of the spec that lists all entities by their state."""
        lifecycle = self.lifecycle
        for name, index in self.declared.items():
            is_by_state = f"{{{lifecycle.status}}}" in index.key and index.score == lifecycle.listed_by
            if is_by_state and index.states >= set(lifecycle.states):
                return name
        return None

    def listed_key(self, state: int) -> str:
        """Return the key of the listing of a state."""
        word = self.word(self.lifecycle.status, state)
        if self.listed is None:
            return self.own(f"{self.lifecycle.entity}:state:{word}")
        return self.key(self.declared[self.listed].key.replace(f"{{{self.lifecycle.status}}}", word))

    @cached_property
    def free(self) -> str | None:
        """The index of the spec that has exactly what can be claimed."""
        rules, lease = self.rules, self.rules.lease
        if lease is None or lease.index not in self.declared or rules.entering is None or rules.not_before:
            return None
        index, entering = self.declared[lease.index], rules.entering
        is_exact = index.states == {entering.source} and not entering.when and not entering.where
        return lease.index if is_exact and index.score == lease.oldest_by and lease.claim_order else None

    @property
    def has_needs(self) -> bool:
        """Whether claims go by what an owner is able to do."""
        lease = self.rules.lease
        return lease is not None and bool(lease.holder or lease.only)

    @cached_property
    def ranks(self) -> list[Rank]:
        """The indexes of what can be claimed, in claim order."""
        lease, field = self.rules.lease, self.rules.rank_field
        if lease is None:
            return []
        if not lease.claim_order or field is None:
            key = self.own(f"{self.lifecycle.entity}:free")
            return [Rank(key, "", 0, (f"{key}:", ""))]
        found = []
        for value in lease.claim_order:
            word = self.word(field, value)
            if self.free is None:
                key = self.own(f"{self.lifecycle.entity}:free:{word}")
                found.append(Rank(key, word, value, (f"{key}:", "")))
            else:
                key = self.key(self.declared[self.free].key.replace(f"{{{field}}}", word))
                part = (f"{key}:", "")
                if self._parts is not None:
                    part = self.pattern(self._parts.key.replace(f"{{{field}}}", word))
                found.append(Rank(key, word, value, part))
        return found

    @property
    def has_turns(self) -> bool:
        """Whether times in milliseconds need more to tell which of two entities came first."""
        rules, lease = self.rules, self.rules.lease
        is_coarse = (
            lease is not None and lease.oldest_by in {*self.lifecycle.creation_stamps} - rules.instants
        )
        return is_coarse and self.kept is None and not rules.not_before

    @property
    def held(self) -> Pattern:
        """The sets of what each owner has."""
        return self._held_pattern(self.lifecycle)

    @cached_property
    def held_by_it(self) -> Pattern | None:
        """The sets of what an entity of this kind has of another kind, where that forbids its deletion."""
        other = self.lifecycle.unless_holding
        if other is None:
            return None
        if other in self._lifecycles:
            return self._held_pattern(self._lifecycles[other])
        return self.pattern(f"{self._scope(self.lifecycle)}{other}:held:{{owner}}")

    @cached_property
    def holder(self) -> Lifecycle | None:
        """The lifecycle of those who have leases, where they are entities."""
        lease = self.rules.lease
        return self._lifecycles.get(lease.holder.entity) if lease and lease.holder else None

    def holder_hash(self, holder: Lifecycle) -> Pattern:
        """Return the keys of the hashes of those."""
        return self.pattern(self._hash_name(holder))

    def _hash_name(self, lifecycle: Lifecycle) -> str:
        kept = _named(lifecycle)
        return kept.hash if kept else f"{self._scope(lifecycle)}{lifecycle.entity}:record:{{key}}"

    def _held_pattern(self, lifecycle: Lifecycle) -> Pattern:
        kept, lease = _named(lifecycle), lifecycle.lease
        if kept is not None and lease is not None and lease.holder is not None and lease.holder.booked:
            return self.pattern(kept.indexes[lease.holder.booked].key)
        return self.pattern(f"{self._scope(lifecycle)}{lifecycle.entity}:held:{{owner}}")

    @property
    def is_packed(self) -> bool:
        """Whether most of what it was created with is one text. Those who have leases are read by others."""
        leases = [each.lease for each in self._lifecycles.values() if each.lease]
        holders = {lease.holder.entity for lease in leases if lease.holder}
        return self.lifecycle.entity not in holders

    @property
    def does_hash_expire(self) -> bool:
        """Whether Redis itself forgets what has ended: the listing tells when that was."""
        return self.listed is not None

    def due_key(self, clock: Clock) -> str:
        """Return the key of the index that the engine keeps for a clock."""
        return self.own(f"{self.lifecycle.entity}:due:{clock.number}")

    def due_keys(self, clock: Clock) -> list[str] | None:
        """Return the keys of an index of the spec by whose score a change is due; None without one."""
        due = clock.due
        states = _states_of(self.lifecycle, clock)
        for index in self.declared.values():
            if index.score == due.at and index.states >= states:
                return [*self._index_keys(index, states, _where_of(clock))]
        return None

    @cached_property
    def ceiling_keys(self) -> list[str] | None:
        """The keys of the index that has a ceiling, where the spec names it."""
        ceiling = self.lifecycle.ceiling
        if ceiling is None or ceiling.index not in self.declared:
            return None
        return [*self._index_keys(self.declared[ceiling.index], set(self.lifecycle.states), {})]

    def unique_pattern(self, name: str) -> Pattern:
        """Return the keys under which the values of a unique field are."""
        if self.kept and name in self.kept.unique:
            return self.pattern(self.kept.unique[name].key)
        return self.pattern(f"{self._scope(self.lifecycle)}{self.lifecycle.entity}:unique:{name}:{{value}}")

    @property
    def _parts(self) -> Any:
        lease = self.rules.lease
        index = self.kept.indexes.get(lease.index or "") if self.kept and lease else None
        return index.parts if index else None

    def _index_keys(self, index: Index, states: set[int], where: Mapping[str, int]) -> Iterator[str]:
        fields, words = index_fields(index), words_of(self.lifecycle)
        if not fields:
            yield self.key(index.key)
            return
        (field,) = fields
        for value, word in words[field].items():
            is_state = field == self.lifecycle.status
            if value and (not is_state or value in states) and where.get(field, value) == value:
                yield self.key(index.key.replace(f"{{{field}}}", word))


def words_of(lifecycle: Lifecycle) -> Mapping[str, Mapping[int, str]]:
    """Return what the values of enum fields are in Redis; decimal numbers where nothing is said."""
    kept = lifecycle.stored_as(KeptInRedis)
    return kept.words if kept else {}


def _named(lifecycle: Lifecycle) -> KeptInRedis | None:
    """Return the part of the spec with the names of keys; None where names go unsaid."""
    kept = lifecycle.stored_as(KeptInRedis)
    return kept if kept is not None and kept.hash else None


def _states_of(lifecycle: Lifecycle, clock: Clock) -> set[int]:
    change = clock.change
    if isinstance(change, Transition):
        return {*change.sources}
    return {*change.states} if isinstance(change, Update) else {*lifecycle.deletable}


def _where_of(clock: Clock) -> Mapping[str, int]:
    return clock.change.where if clock.change is not None else {}
