"""Transitions and shifts: one script for many entities, each checked against its hash at that moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple

from runtime.call.conditions import Failure
from runtime.call.context import Call
from runtime.call.guard import require_edge
from runtime.model.lifecycles import Shift, Transition
from runtime.stores.batch import Batch
from runtime.stores.redis.connection.server import Unavailable
from runtime.stores.redis.entities import Entities
from runtime.stores.redis.rows import storable
from runtime.stores.redis.scripts import Script, ScriptCall
from runtime.stores.store import GuardBreach, Held, Moved, Record, Settlement

AT_ONCE = 500
_LOOKS = 5
"""How often an entity is looked at again that somebody else changed between the look and the change."""


class Asked(NamedTuple):
    """A change of one entity."""

    key: str
    given: Mapping[str, str | None]
    held: Held | None = None
    final: bool = False


class Moving(Generic[Record]):
    """Changes the entities of one kind."""

    def __init__(self, entities: Entities[Record]) -> None:
        self._entities = entities
        self._batches: dict[tuple[str, str, str], Batch[Asked, list[Any]]] = {}
        lease = entities.lifecycle.lease
        self._believed_owner = f"believed.{lease.owner if lease else None}"
        self._fence = lease.fence if lease else ""
        self._names = (*((lease.owner, lease.fence) if lease else ()), entities.kept.trace or "")

    async def one(self, script: str, asked: Asked, way: str, actor: str) -> list[Any]:
        """What a script answers about one entity; those who ask at the same moment share it."""
        batch = self._batches.get((script, way, actor))
        if batch is None:

            async def send(all_asked: Sequence[Asked]) -> list[list[Any]]:
                return await self.all(script, all_asked, way, actor)

            run = partial(self._entities.apart, send)
            batch = self._batches[script, way, actor] = Batch(run, concurrency=2, eager=True)
        return await batch(asked)

    async def all(self, script: str, asked: Sequence[Asked], way: str, actor: str) -> list[list[Any]]:
        """The same for many; whatever somebody else has changed meanwhile is looked at again."""
        answers: dict[int, list[Any]] = {}
        left = list(range(len(asked)))
        for _ in range(_LOOKS):
            believed = await self.believed(script, [asked[place] for place in left], way)
            calls = [
                self.calling(
                    script, [asked[at] for at in left[start : start + AT_ONCE]], believed[start:], way, actor
                )
                for start in range(0, len(left), AT_ONCE)
            ]
            # A holder's change that was made already is known by its mark, so that it may be sent again.
            sent = await self._entities.server.evaluate(calls, repeatable=way == "held")
            for place, answer in zip(left, [each for part in sent for each in part], strict=True):
                answers[place] = answer
            left = [place for place in left if answers[place][0] == "again"]
            if not left:
                return [answers[place] for place in range(len(asked))]
        raise Unavailable("others change it all the time")

    def calling(
        self,
        name: str,
        asked: Sequence[Asked | Settlement],
        believed: Sequence[Mapping[str, str]],
        way: str,
        actor: str,
    ) -> ScriptCall:
        """A call of a script for some entities."""
        script = self._entities.scripts[name]
        each = [self._handed(script, ask, belief) for ask, belief in zip(asked, believed, strict=False)]
        return self._entities.calling(name, {"actor": actor, "way": way}, each)

    async def believed(
        self, name: str, asked: Sequence[Asked | Settlement], way: str
    ) -> list[dict[str, str]]:
        """What the keys of a script go by, read from the hashes unless the caller knows it."""
        script = self._entities.scripts[name]
        wanted = [each for each in script.each_arguments if each.startswith("believed.")]
        if way == "held":
            wanted = [each for each in wanted if each != self._believed_owner]
        if not wanted:
            return [{} for _ in asked]
        fields = [each.removeprefix("believed.") for each in wanted]
        rows = await self._entities.server.ask(
            *(("HMGET", self._entities.hash(each.key), *fields) for each in asked)
        )
        return [{name: text or "" for name, text in zip(wanted, row, strict=True)} for row in rows]

    def _handed(
        self, script: Script, asked: Asked | Settlement, believed: Mapping[str, str]
    ) -> dict[str, Any]:
        handed: dict[str, Any] = {
            "key": asked.key,
            "fence": "",
            "final": "1" if asked.final else "",
            **believed,
        }
        if asked.held is not None:
            handed[self._believed_owner], handed["fence"] = asked.held
        for name, given, most in script.taken:
            text = asked.given.get(given)
            handed[name] = "" if text is None else storable(text, most)
        return handed

    # Moves that a caller asks for.

    def require(self, edge: Transition, call: Call) -> None:
        """Raises unless the caller may take an edge of its own accord."""
        lifecycle, entities = self._entities.lifecycle, self._entities
        ends = edge.source, edge.target
        require_edge(entities.roles, lifecycle, call.caller, call.method, *ends, edge.name)
        if self.way_of(edge, call) != "plain":
            raise GuardBreach(
                f"{edge.name} goes with the lease or the clock of a {lifecycle.entity}, not by itself"
            )

    def way_of(self, edge: Transition, call: Call) -> str:
        """How a caller would drive an edge: of its own accord, by the clock, or as the holder of a lease."""
        lifecycle = self._entities.lifecycle
        lease = lifecycle.lease
        if lease is not None and lease.state in (edge.source, edge.target) and call.caller in self.holders():
            return "held"
        clocks = {due.by for due in (edge.due, edge.also_due) if due is not None}
        return "due" if call.caller in clocks else "plain"

    def holders(self) -> frozenset[str]:
        """Who takes leases."""
        lifecycle = self._entities.lifecycle
        lease = lifecycle.lease
        entering = [edge for edge in lifecycle.edges.values() if lease and edge.target == lease.state]
        return entering[0].actors if entering else frozenset()

    async def move(self, edge: Transition, key: str, call: Call, given: Mapping[str, str]) -> Moved | None:
        """Takes an edge; None if there is no such entity."""
        work = self.one(f"move_{edge.name}", Asked(key, given), "plain", call.caller)
        answer = await self._entities.answer(work)
        if answer[0] == "none":
            return None
        if answer[0] == "way":
            raise GuardBreach(f"{edge.name} of a {self._entities.lifecycle.entity} is not driven so")
        state = self._entities.state_numbers[answer[1]]
        if answer[0] != "done":
            return Moved(False, state)
        self.tell_moved(call, edge, [key], [answer])
        return Moved(True, state)

    def tell_moved(
        self, call: Call, edge: Transition, keys: Sequence[str], answers: Sequence[Sequence[Any]]
    ) -> None:
        """Counts and tells what a script has done to some, which may be the edge that ends it instead."""
        entities = self._entities
        target = entities.state_words[edge.target]
        usual = [place for place, answer in enumerate(answers) if answer[1] == target]
        if usual:
            told = [answers[place] for place in usual]
            entities.applied(
                call, edge, [keys[place] for place in usual], lambda place: self.known(told[place][2:])
            )
        if len(usual) < len(answers) and edge.gives_up is not None:
            end = entities.lifecycle.transition(edge.gives_up.transition)
            over = [place for place, answer in enumerate(answers) if answer[1] != target]
            for _ in over:
                entities.measures.given_up()
            entities.applied(
                call, end, [keys[place] for place in over], lambda place: self.known(answers[over[place]][2:])
            )

    def known(self, told: Sequence[Any]) -> dict[str, object]:
        """What a script tells of an entity for the log, by the names that the record has for it."""
        known: dict[str, object] = dict(zip(self._names, told, strict=False))
        if "" in known or not all(told):
            known = {name: text for name, text in known.items() if name and text}
        if self._fence in known:
            known[self._fence] = int(told[1])
        return known

    # Leases that are given back.

    async def settlements(
        self, asked: Sequence[Settlement], call: Call
    ) -> tuple[list[ScriptCall], list[list[int]], list[Failure | None]]:
        """The calls that give leases back, which of those asked for each has, and what is refused at once."""
        entities = self._entities
        lease = entities.lifecycle.lease
        if lease is None:
            raise GuardBreach(f"a {entities.lifecycle.entity} has no lease")
        groups: dict[tuple[int, str], list[int]] = {}
        edges: dict[tuple[int, str], Transition] = {}
        refused: list[Failure | None] = [None] * len(asked)
        for place, each in enumerate(asked):
            if not entities.lifecycle.is_key(each.key):
                refused[place] = entities.lost(each.key, each.held.owner)
                continue
            way = each.target, each.edge
            if way not in groups:
                try:
                    edges[way] = self._edge(each, call)
                except Failure as failure:
                    refused[place] = failure
                    continue
            groups.setdefault(way, []).append(place)
        calls: list[ScriptCall] = []
        for way, places in groups.items():
            edge = edges[way]
            changes = [asked[at] for at in places]
            if edge.gives_up is None and any(each.final for each in changes):
                raise GuardBreach(f"{edge.name} is never the last try of a {entities.lifecycle.entity}")
            script = f"move_{edge.name}"
            believed = await self.believed(script, changes, "held")
            calls.append(self.calling(script, changes, believed, "held", call.caller))
        return calls, [*groups.values()], refused

    def settled(
        self,
        asked: Sequence[Settlement],
        places: Sequence[Sequence[int]],
        answers: Sequence[Sequence[list[Any]]],
        refused: Sequence[Failure | None],
        call: Call,
    ) -> list[int | Failure]:
        """What came of each."""
        entities = self._entities
        told: list[int | Failure | None] = list(refused)
        for group, part in zip(places, answers, strict=True):
            done = list[int]()
            for at, (place, answer) in enumerate(zip(group, part, strict=True)):
                if answer[0] == "done":
                    told[place] = entities.state_numbers[answer[1]]
                    done.append(at)
                elif answer[0] == "same":
                    told[place] = entities.state_numbers[answer[1]]
                else:
                    told[place] = entities.lost(asked[place].key, asked[place].held.owner)
            if done:
                edge = self._edge(asked[group[0]], call)
                keys = [asked[group[at]].key for at in done]
                self.tell_moved(call, edge, keys, [part[at] for at in done])
        return [each if each is not None else entities.unavailable() for each in told]

    def _edge(self, asked: Settlement, call: Call) -> Transition:
        """The edge by which a lease is left; raises unless the caller may take it."""
        entities, lease = self._entities, self._entities.lifecycle.lease
        assert lease is not None
        return require_edge(
            entities.roles,
            entities.lifecycle,
            call.caller,
            call.method,
            lease.state,
            asked.target,
            asked.edge,
        )

    # Changes that leave the state.

    async def shift(
        self, shift: Shift, key: str, call: Call, held: Held | None, given: Mapping[str, str]
    ) -> list[Any]:
        """What the script of a shift answers about one entity."""
        entities = self._entities
        if call.caller not in shift.actors:
            allowed = " or ".join(sorted(shift.actors))
            raise entities.denied(call, f"only {allowed} may {shift.name} a {entities.lifecycle.entity}")
        if shift.fenced and held is None:
            raise GuardBreach(f"{shift.name} of a {entities.lifecycle.entity} needs the proof of its lease")
        way = "held" if shift.fenced else "plain"
        work = self.one(f"shift_{shift.name}", Asked(key, given, held), way, call.caller)
        answer = await entities.answer(work)
        if answer[0] == "way":
            raise GuardBreach(f"{shift.name} of a {entities.lifecycle.entity} is driven by the clock")
        if answer[0] == "done":
            entities.shifted(call, shift, key)
        return answer
