"""Leases: taken oldest first, made longer, and given back with what came of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Generic

from runtime.call.conditions import Condition
from runtime.call.context import Call
from runtime.call.guard import require_edge
from runtime.model.lifecycles import Lease, Transition
from runtime.stores.postgres.claims.looking import EVER, Looking
from runtime.stores.postgres.claims.settling import Lost, Settlement, columns
from runtime.stores.postgres.database import Unavailable
from runtime.stores.postgres.rows import WAITED, as_key, is_key
from runtime.stores.postgres.table import Table
from runtime.stores.store import Busy, Exchanged, GuardBreach, Held, Record, Settling

_PATIENT = 3
"""How many results wait for another transaction at a time: the connections are for the others too."""
_Outcomes = list[int | Exception]
_Groups = dict[str, list[int]]
"""The places of those that are settled, by the name of the edge that each takes."""


class Leases(Generic[Record]):
    """The leases of one kind of entity."""

    def __init__(self, table: Table[Record], lease: Lease) -> None:
        self._table = table
        self._lease = lease
        self._entering = next(edge for edge in table.lifecycle.edges.values() if edge.target == lease.state)
        lifecycle = table.lifecycle
        self._edges = {edge.name: edge for edge in (*lifecycle.edges.values(), *lifecycle.by_name)}
        self._holder = sorted(self._entering.actors)[0]
        self._settlement = Settlement(table, lease.fence)
        self._patience = asyncio.Semaphore(_PATIENT)
        self._turn = asyncio.Lock()
        self.looking = Looking(lease.oldest_by)

    async def acquire(self, owner: str, call: Call) -> Record | None:
        async with self._turn:  # Many who ask at once need no more than one connection.
            taken, _ = await self.exchange(owner, (), 1, call)
        return taken[0] if taken else None

    async def exchange(
        self, owner: str, settling: Sequence[Settling], free: int, call: Call
    ) -> Exchanged[Record]:
        self._require(self._entering.source, self._entering.target, call)
        outcomes: _Outcomes = [Lost()] * len(settling)
        groups = self._groups(settling, call)
        along = self._goes_along(groups)
        for name, places in groups.items():
            if name != along:
                await self._write(name, settling, places, outcomes, call)
        start = self.looking.start()
        rows: Sequence[Any] | None = None
        if along is not None:
            taking = {"owner": owner, "free": free + _settled(outcomes), "from": start}
            asked = [settling[place] for place in groups[along]]
            written = await self._settlement.trade(self._edges[along], call.caller, asked, **taking)
            rows = written.taken
            for place, outcome in zip(groups[along], written.outcomes, strict=True):
                outcomes[place] = outcome
        if not any(isinstance(each, Unavailable) for each in outcomes):
            wanted = free + _settled(outcomes)
            try:
                rows = await self._look_on(rows, owner, wanted, start, call)
            except Unavailable:
                if not settling:
                    raise self._table.unavailable() from None
        answers = self._answers(settling, groups, outcomes, call)
        return Exchanged(self._taken(rows or (), call), answers)

    async def settle_all(self, settling: Sequence[Settling], call: Call) -> Sequence[int | Exception]:
        outcomes: _Outcomes = [Lost()] * len(settling)
        groups = self._groups(settling, call)
        for name, places in groups.items():
            await self._write(name, settling, places, outcomes, call)
        return self._answers(settling, groups, outcomes, call)

    async def settle(
        self,
        key: str,
        target: int,
        held: Held,
        call: Call,
        final: bool = False,
        edge: str = "",
        /,
        **given: str | None,
    ) -> int:
        """Together with nobody; where somebody else has the row, it is waited for."""
        asked = [Settling(key, held, target, given, final, edge)]
        taken = self._require(self._lease.state, target, call, edge).name
        if not is_key(key):
            self._table.measures.lease_lost()
            raise self._lost(asked[0])
        (answer,) = await self.settle_all(asked, call)
        if isinstance(answer, Busy):
            outcomes: _Outcomes = [answer]
            async with self._patience:
                await self._write(taken, asked, [0], outcomes, call, alone=True)
            (answer,) = self._answers(asked, {taken: [0]}, outcomes, call)
        if isinstance(answer, Busy):
            raise self._table.unavailable()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def renew(self, key: str, held: Held) -> bool:
        if not is_key(key):
            return False
        (renewed,) = await self.renew_all([(key, held)])
        if isinstance(renewed, Exception):
            raise self._table.unavailable()
        return renewed

    async def renew_all(self, held: Sequence[tuple[str, Held]]) -> Sequence[bool | Exception]:
        known = {(as_key(key), each.fence): each for key, each in held}
        given = columns((key, each) for (key, _), each in known.items())
        run = self._table.run
        found = await self._table.answer(run("renew", actor=self._holder, **given))
        renewed = {(str(row[0]), row[1]) for row in found}
        goes_on: set[tuple[str, str, int]] = set()
        if left := [key for key, fence in known if (key, fence) not in renewed]:
            rows = await self._table.answer(run("holds", keys=left))
            goes_on = {(str(row[0]), row[2], row[3]) for row in rows if row[4]}
        outcomes: list[bool | Exception] = []
        for key, each in held:
            if (as_key(key), each.fence) in renewed:
                outcomes.append(True)
            elif (as_key(key), *each) in goes_on:
                outcomes.append(Busy("it is locked"))
            else:
                self._table.measures.lease_lost()
                outcomes.append(False)
        return outcomes

    # Settling.

    def _groups(self, settling: Sequence[Settling], call: Call) -> _Groups:
        """The places of those that take the same edge."""
        groups: _Groups = {}
        known: dict[tuple[int, str], Transition] = {}
        for place, each in enumerate(settling):
            edge = known.get((each.target, each.edge))
            if edge is None:
                edge = self._require(self._lease.state, each.target, call, each.edge)
                known[each.target, each.edge] = edge
            if each.final and edge.gives_up is None:
                raise GuardBreach(f"{edge.name} is never the last try of a {self._table.lifecycle.entity}")
            groups.setdefault(edge.name, []).append(place)
        return groups

    def _goes_along(self, groups: _Groups) -> str | None:
        """The edge that most take of those that can be settled in one statement with the taking of others."""
        plain = [name for name in groups if self._edges[name].gives_up is None]
        return max(plain, key=lambda name: len(groups[name]), default=None)

    async def _write(
        self,
        name: str,
        settling: Sequence[Settling],
        places: Sequence[int],
        outcomes: _Outcomes,
        call: Call,
        *,
        alone: bool = False,
    ) -> None:
        asked = [settling[place] for place in places]
        written = await self._settlement.write(self._edges[name], call.caller, asked, alone=alone)
        for place, outcome in zip(places, written, strict=True):
            outcomes[place] = outcome

    def _answers(
        self, settling: Sequence[Settling], groups: _Groups, outcomes: _Outcomes, call: Call
    ) -> _Outcomes:
        """What whoever asked is told; the log and the metrics are told too."""
        table, applied = self._table, dict[str, tuple[Transition, list[tuple[str, Held]]]]()
        for name, places in groups.items():
            for place in places:
                each, outcome = settling[place], outcomes[place]
                if isinstance(outcome, Lost):
                    table.measures.lease_lost()
                    outcomes[place] = self._lost(each)
                elif isinstance(outcome, Unavailable):
                    outcomes[place] = table.unavailable()
                elif not isinstance(outcome, Exception):
                    for edge in self._way(self._edges[name], outcome):
                        applied.setdefault(edge.name, (edge, []))[1].append((each.key, each.held))
        for edge, held in applied.values():
            self._tell(edge, held, call)
        return outcomes

    def _way(self, edge: Transition, end: int) -> tuple[Transition, ...]:
        """The edges that led out of the lease: one, or two where it was the last try."""
        if end == edge.target or edge.gives_up is None:
            return (edge,)
        return edge, self._table.lifecycle.transition(edge.gives_up.transition)

    # Taking.

    async def _look_on(
        self, rows: Sequence[Any] | None, owner: str, wanted: int, start: datetime, call: Call
    ) -> Sequence[Any]:
        """Takes what a look did not get, at last from the very beginning.

        After a step that has settled something another look follows soon, so that one looks back only if
        there is a reason to.
        """
        found = rows if rows is not None else await self._take(owner, wanted, start, call)
        if len(found) < wanted and start is not EVER and (rows is None or self.looking.owes_back):
            try:
                back = self.looking.back()
                found = [*found, *await self._take(owner, wanted - len(found), back, call)]
                start = back
            except Unavailable:
                if not found:
                    raise  # What has been taken is not to be forgotten for that.
        self.looking.ended(start, found)
        return found

    async def _take(self, owner: str, free: int, start: datetime, call: Call) -> Sequence[Any]:
        if not free:
            return ()
        return await self._table.run("acquire", actor=call.caller, owner=owner, free=free, **{"from": start})

    def _taken(self, rows: Sequence[Any], call: Call) -> list[Record]:
        table, owner, fence = self._table, self._lease.owner, self._lease.fence
        taken = [table.rows.read(row) for row in rows]
        if taken:
            table.measures.waited_all(row[WAITED] for row in rows)
            known = [
                (getattr(each, table.lifecycle.key), Held(getattr(each, owner), getattr(each, fence)))
                for each in taken
            ]
            self._tell(self._entering, known, call)
        return taken

    def _tell(self, edge: Transition, held: Sequence[tuple[str, Held]], call: Call) -> None:
        """Counts and tells transitions, with their leases by the names that the record has for them.

        What ties the lines of an entity is its key, as there is no call that all of them belong to.
        """
        name, owner, fence = self._table.lifecycle.key, self._lease.owner, self._lease.fence
        self._table.applied_all(
            call,
            edge,
            [{"request_id": key, name: key, owner: each.owner, fence: each.fence} for key, each in held],
        )

    def _require(self, source: int, target: int, call: Call, name: str = "") -> Transition:
        table = self._table
        return require_edge(table.roles, table.lifecycle, call.caller, call.method, source, target, name)

    def _lost(self, asked: Settling) -> Condition:
        make: Callable[..., Condition] = self._table.roles["lease_lost"]
        return make(holder=asked.held.owner, key=asked.key)


def _settled(outcomes: _Outcomes) -> int:
    return sum(not isinstance(each, Exception) for each in outcomes)
