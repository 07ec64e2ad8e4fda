"""Changes that the clock drives: some entities at a time, by any number of processes at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Generic

from runtime.call.context import Call
from runtime.call.guard import require_edge
from runtime.model.lifecycles import Due, Index, Lifecycle, Shift, Transition
from runtime.observe import log as events
from runtime.stores.redis.entities import Entities
from runtime.stores.redis.moving import Asked, Moving
from runtime.stores.store import GuardBreach, Record

MOST = 500
"""How many entities one script changes, where the spec does not say."""
_PAGE = 1000
"""How many holders are looked at together."""


class Sweeping(Generic[Record]):
    """Drives the due changes of one kind of entity."""

    def __init__(self, entities: Entities[Record], moving: Moving[Record]) -> None:
        self._entities = entities
        self._moving = moving

    async def sweep(self, change: Transition | Shift | None, due: Due, call: Call) -> int:
        """One bounded batch; how many were changed."""
        self._require(change, due, call)
        script = "delete" if change is None else f"{_kind(change)}_{change.name}"
        if due.holder_in is not None:
            return await self._entities.answer(self._sweep_holders(script, change, due, call))
        return await self._entities.answer(self._sweep(script, change, due, call))

    def _require(self, change: Transition | Shift | None, due: Due, call: Call) -> None:
        entities, lifecycle = self._entities, self._entities.lifecycle
        if isinstance(change, Transition):
            known = due in (change.due, change.also_due)
            require_edge(entities.roles, lifecycle, call.caller, call.method, change.source, change.target)
        elif isinstance(change, Shift):
            known = due == change.due
        else:
            known = due == lifecycle.deletion_due
        if not known:
            raise GuardBreach(f"this is no clock of a {lifecycle.entity}")
        if call.caller != due.by:
            raise entities.denied(call, f"only {due.by} does so by the clock")

    async def _sweep(self, script: str, change: Transition | Shift | None, due: Due, call: Call) -> int:
        entities, most = self._entities, self._most(due)
        after = float(entities.variables[due.after]) if due.after else 0.0
        for index in self._indexes(change, due):
            offset = 0
            while True:
                once = {
                    "index": index.removeprefix(entities.prefix),
                    "after": after,
                    "offset": offset,
                    "most": most,
                }
                (found,) = await entities.server.evaluate(
                    [entities.calling("due", once, [])], repeatable=True
                )
                answers = await self._change(script, found, due, "due", call) if found else []
                done = self._tell(change, found, answers, call)
                gone = [key for key, answer in zip(found, answers, strict=True) if answer[0] == "none"]
                if gone:
                    await self._forget(index, gone, call)
                if done or gone:
                    return done + len(gone)
                if len(found) < most:
                    break
                # All of these are in another state, and stand before those that are meant.
                offset += most
        return 0

    async def _sweep_holders(
        self, script: str, change: Transition | Shift | None, due: Due, call: Call
    ) -> int:
        """Changes what is leased to holders that are in a state; the script looks at the holder again."""
        entities, lease = self._entities, self._entities.lifecycle.lease
        if lease is None or lease.holder is None or due.holder_in is None:
            raise GuardBreach(f"no {entities.lifecycle.entity} is leased to anybody")
        booked = entities.kept.indexes[lease.holder.booked].key
        for holders in self._pages(entities.system.lifecycles[lease.holder.entity], due.holder_in):
            start = 0
            while True:
                (found,) = await entities.server.ask(("ZRANGE", holders, start, start + _PAGE - 1))
                keys = [entities.key(booked, **{lease.owner: each}) for each in found]
                sets = (
                    await entities.server.ask(*(("SRANDMEMBER", key, self._most(due)) for key in keys))
                    if keys
                    else []
                )
                for key, members in zip(keys, sets, strict=True):
                    if members:
                        answers = await self._change(script, members, due, "holder", call)
                        done = self._tell(change, members, answers, call)
                        gone = [
                            each for each, answer in zip(members, answers, strict=True) if answer[0] == "none"
                        ]
                        if gone:
                            await entities.server.ask(("SREM", key, *gone))
                            done += len(gone)
                        if done:
                            return done
                if len(found) < _PAGE:
                    break
                start += _PAGE
        return 0

    async def _change(
        self, script: str, keys: Sequence[str], due: Due, way: str, call: Call
    ) -> list[list[Any]]:
        given: Mapping[str, str | None] = due.gives
        return await self._moving.all(script, [Asked(key, given) for key in keys], way, call.caller)

    async def _forget(self, index: str, keys: Sequence[str], call: Call) -> None:
        """Takes keys out of an index whose entities are gone, and says so."""
        entities = self._entities
        once = {"index": index.removeprefix(entities.prefix)}
        await entities.server.evaluate([entities.calling("forget", once, [{"key": key} for key in keys])])
        for key in keys:
            entities.measures.forgotten()
            known: dict[str, object] = {entities.lifecycle.key: key}
            call.tell(events.FORGOTTEN, f"{index} had a {entities.lifecycle.entity} that is gone", **known)

    def _tell(
        self,
        change: Transition | Shift | None,
        keys: Sequence[str],
        answers: Sequence[Sequence[Any]],
        call: Call,
    ) -> int:
        entities, lease = self._entities, self._entities.lifecycle.lease
        done = [place for place, answer in enumerate(answers) if answer[0] == "done"]
        if isinstance(change, Transition):
            if lease is not None and change.source == lease.state:
                for _ in done:
                    entities.measures.lease_expired()
            self._moving.tell_moved(call, change, [keys[at] for at in done], [answers[at] for at in done])
            return len(done)
        if isinstance(change, Shift):
            for at in done:
                age_s, known = int(answers[at][-1]) / 1e6, self._moving.known(answers[at][2:])
                entities.shifted(call, change, keys[at], age_seconds=round(age_s, 3), **known)
            return len(done)
        entities.metrics.count_transition(entities.lifecycle.entity, "delete", call.caller, len(done))
        trace = entities.kept.trace

        def traced(place: int) -> dict[str, object]:
            found = answers[done[place]][2]
            return {trace: found} if trace and found else {}

        entities.tell(call, "delete", None, None, [keys[at] for at in done], traced)
        return len(done)

    def _most(self, due: Due) -> int:
        return int(self._entities.variables[due.batch]) if due.batch else MOST

    def _indexes(self, change: Transition | Shift | None, due: Due) -> Iterator[str]:
        """The keys of the index by whose score a change is due."""
        entities, lifecycle = self._entities, self._entities.lifecycle
        states: Collection[int]
        if isinstance(change, Transition):
            states, where = (change.source,), {}
        elif isinstance(change, Shift):
            states, where = change.states, dict(change.where)
        else:
            states, where = lifecycle.deletable, {}
        for index in entities.kept.indexes.values():
            if index.score == due.at and not index.states.isdisjoint(states):
                yield from self._keys(index, states, where)
                return
        raise GuardBreach(f"no index of a {lifecycle.entity} goes by {due.at}")

    def _keys(self, index: Index, states: Collection[int], where: Mapping[str, int]) -> Iterator[str]:
        entities = self._entities
        enum, keys = entities.enum_in(index), entities.index_keys(index)
        for value, key in keys.items():
            if enum == entities.lifecycle.status and value not in states:
                continue
            if enum in where and value != where[enum or ""]:
                continue
            yield key

    def _pages(self, holder: Lifecycle, state: int) -> Iterator[str]:
        """The keys of an index of the holders that are in a state."""
        kept = holder.in_redis
        assert kept is not None
        word = kept.words[holder.status][state]
        for index in kept.indexes.values():
            if index.score is not None and state in index.states:
                named = f"{{{holder.status}}}" in index.key
                if named or index.states == frozenset((state,)):
                    yield self._entities.key(index.key, **{holder.status: word})
                    return
        raise GuardBreach(f"no index has the {holder.entity}s that are {holder.states[state]}")


def _kind(change: Transition | Shift) -> str:
    return "move" if isinstance(change, Transition) else "shift"
