"""The indexes of a lifecycle as Lua functions: from a record to the key of its index, and its score there."""

from __future__ import annotations

from typing import Any

from runtime.model.lifecycles import Index, Lease
from runtime.stores.redis.codec import SIGNATURE, TURN, HashCodec
from runtime.stores.redis.layout import KeyLayout
from runtime.stores.redis.lua_text import concatenate, to_lua
from runtime.stores.semantics.rules import Clock


class LuaIndexes:
    """Renders the indexes of one lifecycle."""

    def __init__(self, layout: KeyLayout, codec: HashCodec[Any]) -> None:
        self._layout, self._rules, self._codec = layout, layout.rules, codec
        self._lifecycle = layout.lifecycle
        self._indexes: list[str] = []
        self._free_keys = ""
        self.free_place: int | None = None
        """The number of the index of those that can be claimed."""
        self.ceiling_place: int | None = None
        """The number of the index that has a ceiling."""

    def render(self) -> str:
        """Return the functions, which stand after semantics.lua."""
        rules, lifecycle, layout = self._rules, self._lifecycle, self._layout
        for name, index in layout.declared.items():
            if name != layout.free:
                self._add(self._condition(index), self._index_key(index), self._score(index.score))
        if layout.listed is None:
            listed_by = lifecycle.listed_by
            score = self._time(listed_by) if listed_by else "'0'"
            self._add("true", f"L.listed[r[{to_lua(lifecycle.status)}]]", score)
        free = part = None
        if rules.lease is not None:
            free = self.free_place = self._add_free()
            if layout.has_needs:
                part = self._add_part(free)
            if not (layout.kept and rules.lease.holder):
                self._add_held(rules.lease)
        for clock in rules.clocks:
            if clock.due.at is not None and layout.due_keys(clock) is None:
                self._add_due(clock)
        self.ceiling_place = self._add_ceiling()
        indexes = ",\n".join(f"  function(r) {each} end" for each in self._indexes)
        return (
            f"L.indexes = {{\n{indexes}\n}}\n"
            f"L.free_index, L.news_index = {to_lua(free)}, {to_lua(part or free)}\n"
            f"{self._part_of()}"
        )

    def _add(self, condition: str, key: str, score: str | None) -> int:
        answer = f"return {key}, {score}" if score else f"return {key}"
        self._indexes.append(answer if condition == "true" else f"if {condition} then {answer} end")
        return len(self._indexes)

    def _condition(self, index: Index) -> str:
        """Render whether a record is in an index."""
        found = []
        if not index.states >= set(self._lifecycle.states):
            found.append("(" + " or ".join(self._is_in(each) for each in sorted(index.states)) + ")")
        found += [self._is_set(index.only_if)] if index.only_if else []
        found += [f"not ({self._is_set(index.only_unless)})"] if index.only_unless else []
        return " and ".join(found) or "true"

    def _is_in(self, state: int) -> str:
        """Render whether a record is in a state."""
        status = self._lifecycle.status
        return f"r[{to_lua(status)}] == {to_lua(self._codec.word(status, state))}"

    def _is_set(self, name: str) -> str:
        # One that can never be unset has its default where it is not there.
        return f"r[{to_lua(name)}] ~= nil" if self._default(name) is None else "true"

    def _default(self, name: str) -> str | None:
        return self._codec.encode(name, self._rules.unset(name))

    def _text(self, name: str) -> str:
        """Render the text of a field; the name that is not in the hash has its default."""
        default = self._default(name)
        return f"r[{to_lua(name)}]" if default is None else f"(r[{to_lua(name)}] or {to_lua(default)})"

    def _time(self, name: str) -> str:
        """Render a time as the score of an index."""
        if name in self._rules.instants:
            return f"(r[{to_lua(name)}] or {to_lua(self._default(name) or '0')})"
        return f"M.text(M.moment_at(r, {to_lua(name)}) or 0)"

    def _index_key(self, index: Index) -> str:
        field = index.key.partition("{")[2].partition("}")[0]
        if not field:
            return to_lua(self._layout.key(index.key))
        head, tail = self._layout.pattern(index.key)
        return concatenate(to_lua(head), f"({self._text(field)} or '')", to_lua(tail) if tail else "")

    def _score(self, name: str | None) -> str | None:
        return None if name is None else self._time(name)

    def _add_free(self) -> int:
        rules, layout = self._rules, self._layout
        lease, entering = rules.lease, rules.entering
        assert lease is not None
        age = self._time(lease.oldest_by)
        if layout.has_turns:
            age = f"M.text((M.moment_at(r, {to_lua(lease.oldest_by)}) or 0) + (r[{to_lua(TURN)}] or 0))"
        if entering is None:
            return self._add("false", "nil", "nil")
        found = [self._is_in(entering.source)]
        if rules.leased_index is not None and (more := self._condition(rules.leased_index)) != "true":
            found.append(more)
        if entering.when or entering.where:
            found.append(f"M.fits(M.change_of({to_lua(entering.name)}), r)")
        if rules.rank_field is None or not lease.claim_order:
            return self._add(" and ".join(found), to_lua(layout.ranks[0].key), age)
        by_word = to_lua({each.word: each.key for each in layout.ranks})
        self._free_keys = f"L.free_keys = {by_word}\n"
        key = f"L.free_keys[{self._text(rules.rank_field)}]"
        return self._add(" and ".join(found), key, age)

    def _add_part(self, free: int) -> int:
        self._indexes.append(
            f"local key, score = L.indexes[{free}](r) "
            "if key then local part = L.parts[key] return part[1] .. L.part_of(r) .. part[2], score end"
        )
        return len(self._indexes)

    def _add_held(self, lease: Lease) -> None:
        head, tail = self._layout.held
        status = self._is_in(lease.state)
        owner = f"({self._text(lease.owner)} or '')"
        self._add(status, concatenate(to_lua(head), owner, to_lua(tail) if tail else ""), None)

    def _add_due(self, clock: Clock) -> None:
        assert clock.due.at is not None
        at = f"M.moment_at(r, {to_lua(clock.due.at)})"
        applies = f"L.deletable[r[{to_lua(self._lifecycle.status)}]]"
        if clock.change is not None:
            applies = f"M.applies(M.change_of({to_lua(clock.change.name)}), r)"
        self._add(f"{applies} and {at}", to_lua(self._layout.due_key(clock)), f"M.text({at})")

    def _add_ceiling(self) -> int | None:
        ceiling, layout = self._lifecycle.ceiling, self._layout
        if ceiling is None:
            return None
        if layout.ceiling_keys is not None:
            if ceiling.index == layout.free:
                return self.free_place
            return [name for name in layout.declared if name != layout.free].index(ceiling.index) + 1
        own = to_lua(layout.own(f"{self._lifecycle.entity}:in:{ceiling.index}"))
        return self._add(self._condition(self._rules.indexes[ceiling.index]), own, None)

    def _part_of(self) -> str:
        """Render the function for the signature of a record's needs, and the needs as a list."""
        lease, layout = self._rules.lease, self._layout
        text = self._free_keys
        if lease is None or not layout.has_needs:
            return text
        if lease.holder is not None:
            needs = self._text(lease.holder.needs)
            return f"{text}function L.part_of(r) return r[{to_lua(SIGNATURE)}], {needs} end\n"
        only = f"({self._text(lease.only or '')} or '')"
        return f"{text}function L.part_of(r) return redis.sha1hex({only}), cjson.encode({{{only}}}) end\n"
