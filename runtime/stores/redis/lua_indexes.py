"""The indexes of a lifecycle as Lua functions: from a record to its keys and scores in them."""

from __future__ import annotations

from typing import Any

from runtime.model.lifecycles import Ceiling, Index, Lease
from runtime.stores.redis.codec import SIGNATURE, TURN, HashCodec
from runtime.stores.redis.layout import KeyLayout
from runtime.stores.redis.lua_text import concatenate, to_lua
from runtime.stores.semantics.rules import Clock


class LuaIndexes:
    """Renders the indexes of one lifecycle."""

    def __init__(self, layout: KeyLayout, codec: HashCodec[Any]) -> None:
        self._layout, self._rules, self._codec = layout, layout.rules, codec
        self._lifecycle = layout.lifecycle
        self._places: list[str] = []
        self.news_place: int | None = None
        """The place of the index by which those who wait find something."""
        self.functions = self._render()
        """The functions, which stand after semantics.lua."""
        self.count = len(self._places)

    def _render(self) -> str:
        rules, lifecycle, layout = self._rules, self._lifecycle, self._layout
        functions = []
        for name, index in layout.declared.items():
            if name != layout.free:
                self._add(self._condition(index), self._index_key(index), self._score(index.score))
        if layout.listed is None:
            listed_by = lifecycle.listed_by
            score = self._time(listed_by) if listed_by else "'0'"
            self._add("true", f"L.listed[r[{to_lua(lifecycle.status)}]]", score)
        if rules.lease is not None:
            functions.append(self._add_free())
            if layout.has_needs:
                functions.append(self._add_part())
            if not (layout.kept and rules.lease.holder):
                self._add_held(rules.lease)
        for clock in rules.clocks:
            if clock.due.at is not None and layout.due_keys(clock) is None:
                self._add_due(clock)
        if lifecycle.ceiling is not None:
            functions.append(self._add_ceiling(lifecycle.ceiling))
        return "\n".join((*functions, self._find_places()))

    def _find_places(self) -> str:
        """Render where an entity is in each index: the key, and the score where it is ordered."""
        room = ", ".join(["nil, nil"] * len(self._places))
        places = (f"  {each}" for each in self._places)
        return "\n".join(
            ("function M.find_places(r)", f"  local p = {{{room}}}", *places, "  return p", "end")
        )

    def _next_place(self) -> int:
        return 2 * len(self._places) + 1

    def _add(self, condition: str, key: str, score: str | None) -> None:
        n = self._next_place()
        place = f"p[{n}], p[{n + 1}] = {key}, {score}" if score else f"p[{n}] = {key}"
        self._places.append(place if condition == "true" else f"if {condition} then {place} end")

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

    def _add_free(self) -> str:
        """Add the index of those that can be claimed; return the function for a place in it."""
        n = self.news_place = self._next_place()
        self._places.append(f"p[{n}], p[{n + 1}] = M.free_place(r)")
        rules, layout = self._rules, self._layout
        lease, entering = rules.lease, rules.entering
        assert lease is not None
        if entering is None:
            return "function M.free_place(r)\nend"
        age = self._time(lease.oldest_by)
        if layout.has_turns:
            age = f"M.text((M.moment_at(r, {to_lua(lease.oldest_by)}) or 0) + (r[{to_lua(TURN)}] or 0))"
        found = [self._is_in(entering.source)]
        if rules.leased_index is not None and (more := self._condition(rules.leased_index)) != "true":
            found.append(more)
        if entering.when or entering.where:
            found.append(f"M.fits(M.change_of({to_lua(entering.name)}), r)")
        if rules.rank_field is None or not lease.claim_order:
            places = [f"    return {to_lua(layout.ranks[0].key)}, {age}"]
        else:
            word = self._text(rules.rank_field)
            places = [
                f"    if {word} == {to_lua(each.word)} then return {to_lua(each.key)}, {age} end"
                for each in layout.ranks
            ]
        start = ("function M.free_place(r)", f"  if {' and '.join(found)} then")
        return "\n".join((*start, *places, "  end", "end"))

    def _add_part(self) -> str:
        """Add the parts by needs; return the function for a record's signature, and its needs as a list."""
        free = self.news_place
        assert free is not None
        n = self.news_place = self._next_place()
        parts = []
        for rank in self._layout.ranks:
            head, tail = rank.part
            key = concatenate(to_lua(head), "(M.part_of(r))", to_lua(tail) if tail else "")
            is_ranked = f"p[{free}] == {to_lua(rank.key)}"
            parts.append(f"if {is_ranked} then p[{n}], p[{n + 1}] = {key}, p[{free + 1}] end")
        self._places.append("\n  ".join(parts))
        lease = self._rules.lease
        assert lease is not None
        if lease.holder is not None:
            needs = self._text(lease.holder.needs)
            return f"function M.part_of(r)\n  return r[{to_lua(SIGNATURE)}], {needs}\nend"
        only = f"({self._text(lease.only or '')} or '')"
        return f"function M.part_of(r)\n  return redis.sha1hex({only}), cjson.encode({{{only}}})\nend"

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

    def _add_ceiling(self, ceiling: Ceiling) -> str:
        """Add the index that has a ceiling, if it is not there; return the function for a place in it."""
        layout = self._layout
        if layout.ceiling_keys is not None:
            index = layout.declared[ceiling.index]
            if ceiling.index == layout.free:
                return "function M.ceiling_place(r)\n  return (M.free_place(r))\nend"
            condition, key = self._condition(index), self._index_key(index)
        else:
            condition = self._condition(self._rules.indexes[ceiling.index])
            key = to_lua(layout.own(f"{self._lifecycle.entity}:in:{ceiling.index}"))
            self._add(condition, key, None)
        return f"function M.ceiling_place(r)\n  if {condition} then return {key} end\nend"
