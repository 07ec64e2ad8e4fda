"""The constants of a lifecycle, which the functions that all lifecycles share have under the name `L`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from runtime.model.lifecycles import Amount, Backoff, DeadLetter, Due, Lease, Take, Transition, Update
from runtime.model.measuring import WINDOW_SLOTS, Counts, Measured
from runtime.stores.layouts.redis import KeptInRedis
from runtime.stores.redis.codec import HashCodec
from runtime.stores.redis.layout import KeyLayout
from runtime.stores.redis.lua_indexes import LuaIndexes
from runtime.stores.redis.lua_text import Code, render_choice, to_lua
from runtime.stores.semantics.clocks import delay
from runtime.stores.semantics.edges import LONGEST_WAIT_S, sources
from runtime.stores.semantics.rules import Change, Clock

_ON_ACCESS = 100
"""How many due entities a claim changes first."""
_MOST_HISTORY = 1000
"""Entries of the history of one entity, where Redis keeps it."""


class LuaTable:
    """The constants of one lifecycle, and the functions that only it has."""

    def __init__(
        self,
        layout: KeyLayout,
        codec: HashCodec[Any],
        measured: Sequence[Measured] = (),
        max_terminal: int = 0,
        packed: Sequence[str] = (),
        *,
        is_virtual: bool = False,
    ) -> None:
        self._layout, self._rules, self._codec = layout, layout.rules, codec
        self._lifecycle = layout.lifecycle
        self._measured = [each for each in measured if each.entity == self._lifecycle.entity]
        self._max_terminal = max_terminal
        self._packed = packed
        self._is_virtual = is_virtual
        self._variables: set[str] = set()
        self._indexes = LuaIndexes(layout, codec)
        self.functions = self._functions()
        """The functions that only it has, which stand behind those that all lifecycles share."""
        self._known = self._constants()
        # A component has the variables that it reads; what it does not drive needs no others.
        known = sorted(self._variables & self._rules.values.keys())
        self._known["values"] = {name: self._number(name) for name in known}

    def constants_of(self, *, is_creation: bool) -> Mapping[str, Any]:
        """Return the constants of a script: one for creations in which no edge is taken, or another."""
        known = self._known
        has_edges = not is_creation or bool(known["ending"])
        return {
            **known,
            "takes_edges": not is_creation,
            "changes_hashes": has_edges,
            "has_history": has_edges or not known["outbox"],
            "has_metrics": known["counts_creation"] or (has_edges and known["has_metrics"]),
        }

    def _functions(self) -> str:
        rules = self._rules
        changes = {each.name: self._change(each) for each in rules.changes.values()}
        clocks = {each.number + 1: self._clock(each) for each in rules.clocks}
        return "\n".join(
            (
                render_choice("make_change", changes),
                render_choice("make_metrics", self._counts()),
                render_choice("make_clock", clocks),
                self._add_record(),
                self._indexes.functions,
            )
        )

    def _number(self, name: str) -> float:
        number = float(self._rules.values[name])
        return int(number) if number.is_integer() else number

    # What is said of the entity as a whole.

    def _constants(self) -> dict[str, Any]:
        layout, rules, lifecycle = self._layout, self._rules, self._lifecycle
        counts = self._counts()
        kept, outbox = layout.kept, layout.kept.outbox if layout.kept else None
        state = self._state
        return {
            "name": lifecycle.entity,
            "status": lifecycle.status,
            "initial": state(lifecycle.initial),
            "begins": self._set_of_states(lifecycle.begins),
            "has_begins": bool(lifecycle.begins),
            "terminal": self._set_of_states(lifecycle.terminal),
            "deletable": self._set_of_states(lifecycle.deletable),
            "hash_head": layout.hash[0],
            "hash_tail": layout.hash[1],
            "clock": layout.clock,
            "sequence": kept.sequence if kept and kept.sequence else ".changes",
            "revision": lifecycle.revision,
            "trace": rules.trace,
            "is_packed": dict.fromkeys(self._packed, True),
            "defaults": {
                name: text
                for name in rules.names
                if (text := self._codec.encode(name, rules.unset(name))) is not None
            },
            "in_ms": dict.fromkeys((name for name in self._times() if name not in rules.instants), True),
            "has_milliseconds": not self._times() <= {*rules.instants},
            "has_instants": not rules.instants.isdisjoint(rules.stamps),
            "stamps": rules.stamps,
            "creation_stamps": lifecycle.creation_stamps,
            "waits": {until: state(target) for until, target in rules.waits.items()},
            "has_waits": bool(rules.waits),
            "is_held_back": rules.held_back_by in rules.waits,
            "not_before": rules.not_before,
            "held_back_by": rules.held_back_by,
            "longest_wait_s": LONGEST_WAIT_S,
            "overrides": self._overrides(),
            "has_overrides": lifecycle.overrides is not None,
            "kinds": self._kinds(),
            "lease": self._lease(rules.lease) if rules.lease else None,
            "lease_seconds": self._path(rules.lease.seconds) if rules.lease else None,
            "has_lease": rules.lease is not None,
            "is_virtual": self._is_virtual,
            "has_turns": layout.has_turns,
            "keeps_clock": layout.has_turns or not self._is_virtual,
            "has_on_access": bool(rules.on_access),
            "last_place": 2 * self._indexes.count,
            "news_place": self._indexes.news_place,
            "rank_field": rules.rank_field,
            "ranks": [{"key": each.key, "word": each.word, "part": each.part} for each in layout.ranks],
            "known": layout.known if layout.has_needs else None,
            "paused": layout.paused if rules.rank_field else None,
            "held": layout.held if rules.lease else None,
            "holder": self._holder(),
            "has_holder": rules.lease is not None and rules.lease.holder is not None,
            "held_by_it": layout.held_by_it,
            "is_holder": layout.held_by_it is not None,
            "wake_up": layout.wake_up,
            "listed": {state(each): layout.listed_key(each) for each in lifecycle.states},
            "unique": {name: self._unique(name) for name in rules.unique},
            "unique_names": [*rules.unique],
            "ceiling": self._ceiling(),
            "ceiling_most": rules.values.get(lifecycle.ceiling.max) or None if lifecycle.ceiling else None,
            "retained_s": self._variable_name(self._retained()),
            "ending": layout.ending if self._retained() and not layout.does_hash_expire else None,
            "does_hash_expire": bool(self._retained()) and layout.does_hash_expire,
            "ended": layout.ended,
            "most_terminal": self._max_terminal or None,
            "most_on_access": _ON_ACCESS,
            "history": None if outbox else layout.history,
            "most_history": _MOST_HISTORY,
            "outbox": layout.key(outbox.stream) if outbox else None,
            "archived": self._set_of_states(self._archived()),
            "metrics": layout.key(kept.metrics) if kept and kept.metrics else None,
            "counts_creation": "create" in counts,
            "has_metrics": bool(counts),
            "window_slots": WINDOW_SLOTS,
        }

    def _add_record(self) -> str:
        """Render the function that adds a record to the answer: the values of its fields, in their order."""
        values = (
            f"  reply[n + {place}] = r[{to_lua(name)}] or false"
            for place, name in enumerate(self._rules.names, 1)
        )
        return "\n".join(("function M.add_record(r)", "  local n = #reply", *values, "end"))

    def _state(self, state: int) -> str:
        return self._codec.word(self._lifecycle.status, state)

    def _set_of_states(self, states: Any) -> dict[str, bool]:
        return {self._state(each): True for each in sorted(states)}

    def _times(self) -> set[str]:
        """The fields that are read or written as times."""
        rules, lease = self._rules, self._rules.lease
        found = {*rules.stamps, *rules.waits, *self._lifecycle.creation_stamps}
        found |= {each for each in (self._lifecycle.listed_by,) if each}
        found |= {clock.due.at for clock in rules.clocks if clock.due.at}
        for change in rules.changes.values():
            found |= {*change.stamps}
        if lease is not None:
            found |= {each for each in (lease.expires, lease.renewed, lease.oldest_by) if each}
        return found

    def _overrides(self) -> dict[str, Any] | None:
        overrides = self._lifecycle.overrides
        if overrides is None:
            return None
        return {"by": overrides.by, "values": {key: dict(each) for key, each in overrides.values.items()}}

    def _kinds(self) -> dict[str, Any]:
        """By field that edges take: how a text becomes its value."""
        found: dict[str, Any] = {}
        for change in self._rules.changes.values():
            for name in change.from_request:
                types = self._rules.types_of(name)
                if name in self._codec.words:
                    found[name] = {str(number): word for number, word in self._codec.words[name].items()}
                elif str not in types:
                    kinds = (("bool", bool), ("int", int), ("float", float))
                    found[name] = next((kind for kind, each in kinds if each in types), None)
        return found

    def _unique(self, name: str) -> dict[str, Any]:
        seconds = self._rules.unique[name]
        return {"key": self._layout.unique_pattern(name), "seconds": self._variable_name(seconds)}

    def _retained(self) -> str | None:
        kept = self._lifecycle.stored_as(KeptInRedis)
        return kept.expires if kept else None

    def _archived(self) -> set[int]:
        """The states in which an entity has ended, whether or not it may be given another life."""
        edges = self._rules.edges
        ends = [(edge, edges[edge.dead_letter.transition]) for edge in edges.values() if edge.dead_letter]
        return {*self._lifecycle.terminal, *(end.target for edge, end in ends if edge.sources & end.sources)}

    # Leases.

    def _lease(self, lease: Lease) -> dict[str, Any]:
        entering = self._rules.entering
        return {
            "state": self._state(lease.state),
            "free": self._state(entering.source) if entering else None,
            "entering": entering.name if entering else None,
            "owner": lease.owner,
            "expires": lease.expires or None,
            "renewed": lease.renewed,
            "fence": lease.fence,
            "token": lease.token,
            "keeps_owner": lease.keeps_owner,
        }

    def _holder(self) -> dict[str, Any] | None:
        lease, holder = self._rules.lease, self._layout.holder
        if lease is None or lease.holder is None:
            return None
        if holder is None:  # Nothing is known of those who could have a lease.
            return {"head": "", "tail": "", "status": "", "states": {}, "capacity": "", "offers": ""}
        words = self._layout_words(holder)
        head, tail = self._layout.holder_hash(holder)
        return {
            "head": head,
            "tail": tail,
            "status": holder.status,
            "states": {words.get(each, str(each)): True for each in sorted(lease.holder.states)},
            "capacity": lease.holder.capacity,
            "offers": lease.holder.offers,
        }

    @staticmethod
    def _layout_words(holder: Any) -> Mapping[int, str]:
        kept = holder.stored_as(KeptInRedis)
        words: Mapping[int, str] = kept.words.get(holder.status, {}) if kept else {}
        return words

    # Changes.

    def _change(self, change: Change) -> dict[str, Any]:
        words: dict[str, Any] = {
            "name": change.name,
            "sources": self._set_of_states(sources(change)),
            "where": {name: self._codec.encode(name, each) for name, each in change.where.items()} or None,
            "stamps": change.stamps or None,
            "sets": {name: self._codec.encode(name, each) for name, each in change.sets.items()} or None,
            "from_request": {name: self._take(each) for name, each in change.from_request.items()} or None,
            "clear": change.clear or None,
        }
        if isinstance(change, Update):
            return {**words, "is_update": True}
        words |= {
            "source": self._state(change.source),
            "has_others": True if change.others else None,
            "target": self._state(change.target),
            "when": change.when or None,
            "copy": dict(change.copy) or None,
            "multiply": {
                name: {"times": growth.times, "max": self._path(growth.max)}
                for name, growth in change.multiply.items()
            }
            or None,
            "increment": change.increment,
            "backoff": self._backoff(change.backoff) if change.backoff else None,
            "dead_letter": self._give_up(change.dead_letter) if change.dead_letter else None,
            "reason": change.reason,
            "columns": self._columns(change),
        }
        return words

    def _take(self, take: Take) -> dict[str, Any]:
        return {
            "source": take.source,
            "default": take.default or None,
            "keep_first": take.keep_first or None,
        }

    def _backoff(self, backoff: Backoff) -> dict[str, Any]:
        return {
            "until_": backoff.until,
            "kind": backoff.kind if backoff.kind != "exponential" else None,
            "count": backoff.count,
            "base": self._path(backoff.base),
            "max": None if backoff.max is None else self._path(backoff.max),
            "times": None if backoff.times is None else self._path(backoff.times),
            "jitter": self._path(backoff.jitter) if backoff.jitter else None,
        }

    def _give_up(self, ending: DeadLetter) -> dict[str, Any]:
        return {
            "name": ending.transition,
            "count": self._path(ending.count),
            "count_name": ending.count,
            "less": self._path(ending.less) if ending.less else None,
            "limit": self._path(ending.limit),
        }

    def _columns(self, edge: Transition) -> str | None:
        """The names of what the outbox has of each change by an edge."""
        if not (self._layout.kept and self._layout.kept.outbox):
            return None
        names = ["key", "sequence"]
        if self._rules.lease is not None:
            names += ["owner", "fence"]
        names += [name for name, has_it in (("reason", edge.reason), ("trace", self._rules.trace)) if has_it]
        if edge.target in self._archived():
            names.append("record")
        return json.dumps(names, separators=(",", ":"))

    def _path(self, path: Amount) -> dict[str, Amount]:
        if not isinstance(path, str):
            return {"number": path}
        if not path.islower():
            self._variables.add(path)
            return {"variable": path}
        field, _, member = path.partition(".")
        return {"field": field, "member": member} if member else {"field": field}

    def _variable_name(self, name: str | None) -> str | None:
        if name is not None:
            self._variables.add(name)
        return name

    def _clock(self, clock: Clock) -> dict[str, Any]:
        due: Due = clock.due
        indexes = [] if due.at is None else self._layout.due_keys(clock) or [self._layout.due_key(clock)]
        return {
            "change": clock.change.name if clock.change else None,
            "by": due.by,
            "at": due.at,
            "delay": delay(self._rules, due)
            if due.after is None or due.after in self._rules.values
            else None,
            "holder_in": None if due.holder_in is None else self._holder_state(due.holder_in),
            "values": dict(due.values),
            "indexes": indexes,
        }

    def _holder_state(self, state: int) -> str:
        holder = self._layout.holder
        return self._layout_words(holder).get(state, str(state)) if holder else str(state)

    def _ceiling(self) -> dict[str, Any] | None:
        ceiling = self._lifecycle.ceiling
        if ceiling is None:
            return None
        keys = self._layout.ceiling_keys
        own = self._layout.own(f"{self._lifecycle.entity}:in:{ceiling.index}")
        return {
            "keys": keys or [own],
            "command": "ZCARD" if keys and self._layout.declared[ceiling.index].score else "SCARD",
        }

    # Metrics.

    def _counts(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for metric in self._measured:
            source = metric.source
            if not isinstance(source, Counts):
                continue
            for happening, labels in source.on.items():
                counted = {
                    "name": metric.name,
                    "labels": [_label(each) for each in labels],
                    "since": source.since,
                    "is_recent": True if source.seconds else None,
                    "bounds": [Code(each) for each in source.bounds] or None,
                }
                found.setdefault(happening, []).append(counted)
        return found


def _label(text: str) -> dict[str, str]:
    """Parse a label: a word, `{field}` of the record, or `<name>` of what the change was given."""
    if text.startswith("{"):
        return {"field": text[1:-1]}
    return {"given": text[1:-1]} if text.startswith("<") else {"word": text}
