"""Leases: taken oldest first, made longer, and given back with what came of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Generic

from runtime.call import Call
from runtime.conditions import Condition
from runtime.guard import require_edge
from runtime.lifecycles import Lease, Transition
from runtime.postgres.database import Unavailable
from runtime.postgres.looking import EVER, Looking
from runtime.postgres.rows import as_key, is_key
from runtime.postgres.settling import Lost, Settlement, columns
from runtime.postgres.table import Table
from runtime.store import Busy, Exchanged, GuardBreach, Held, Record, Settling

_PATIENT = 3
"""How many results wait for another transaction at a time: the connections are for the others too."""
_Outcomes = list[int | Exception]


class Leases(Generic[Record]):
    """The leases of one kind of entity."""

    def __init__(self, table: Table[Record], lease: Lease) -> None:
        self._table = table
        self._lease = lease
        self._entering = next(edge for edge in table.lifecycle.edges.values() if edge.target == lease.state)
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
        for target, places in groups.items():
            if target != along:
                await self._write(target, settling, places, outcomes, call)
        start = self.looking.start()
        rows: Sequence[Any] | None = None
        if along is not None:
            taking = {"owner": owner, "free": free + _settled(outcomes), "from": start}
            asked = [settling[place] for place in groups[along]]
            written = await self._settlement.trade(self._edge(along), call.caller, asked, **taking)
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
        answers = self._answers(settling, outcomes, call)
        return Exchanged(self._taken(rows or (), call), answers)

    async def settle_all(self, settling: Sequence[Settling], call: Call) -> Sequence[int | Exception]:
        outcomes: _Outcomes = [Lost()] * len(settling)
        for target, places in self._groups(settling, call).items():
            await self._write(target, settling, places, outcomes, call)
        return self._answers(settling, outcomes, call)

    async def settle(
        self, key: str, target: int, held: Held, call: Call, *, final: bool = False, **given: str | None
    ) -> int:
        """Together with nobody; where somebody else has the row, it is waited for."""
        asked = [Settling(key, held, target, given, final)]
        if not is_key(key):
            self._require(self._lease.state, target, call)
            self._table.measures.lease_lost()
            raise self._lost(asked[0])
        (answer,) = await self.settle_all(asked, call)
        if isinstance(answer, Busy):
            outcomes: _Outcomes = [answer]
            async with self._patience:
                await self._write(target, asked, [0], outcomes, call, alone=True)
            (answer,) = self._answers(asked, outcomes, call)
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

    def _groups(self, settling: Sequence[Settling], call: Call) -> dict[int, list[int]]:
        """The places of those that go to the same target."""
        groups: dict[int, list[int]] = {}
        for place, each in enumerate(settling):
            places = groups.get(each.target)
            if places is None:
                self._require(self._lease.state, each.target, call)
                places = groups[each.target] = []
            if each.final and self._edge(each.target).gives_up is None:
                name, entity = self._edge(each.target).name, self._table.lifecycle.entity
                raise GuardBreach(f"{name} is never the last try of a {entity}")
            places.append(place)
        return groups

    def _goes_along(self, groups: dict[int, list[int]]) -> int | None:
        """Where most go that can be settled in one statement with the taking of others."""
        plain = [target for target in groups if self._edge(target).gives_up is None]
        return max(plain, key=lambda target: len(groups[target]), default=None)

    async def _write(
        self,
        target: int,
        settling: Sequence[Settling],
        places: Sequence[int],
        outcomes: _Outcomes,
        call: Call,
        *,
        alone: bool = False,
    ) -> None:
        asked = [settling[place] for place in places]
        written = await self._settlement.write(self._edge(target), call.caller, asked, alone=alone)
        for place, outcome in zip(places, written, strict=True):
            outcomes[place] = outcome

    def _answers(self, settling: Sequence[Settling], outcomes: _Outcomes, call: Call) -> _Outcomes:
        """What whoever asked is told; the log and the metrics are told too."""
        table, applied = self._table, dict[str, tuple[Transition, list[tuple[str, Held]]]]()
        for place, (each, outcome) in enumerate(zip(settling, outcomes, strict=True)):
            if isinstance(outcome, Lost):
                table.measures.lease_lost()
                outcomes[place] = self._lost(each)
            elif isinstance(outcome, Unavailable):
                outcomes[place] = table.unavailable()
            elif not isinstance(outcome, Exception):
                for edge in self._way(each.target, outcome):
                    applied.setdefault(edge.name, (edge, []))[1].append((each.key, each.held))
        for edge, held in applied.values():
            self._tell(edge, held, call)
        return outcomes

    def _way(self, target: int, end: int) -> tuple[Transition, ...]:
        """The edges that led out of the lease: one, or two where it was the last try."""
        edge = self._edge(target)
        if end == target or edge.gives_up is None:
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
            table.measures.waited_all(row[-1] for row in rows)
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

    def _edge(self, target: int) -> Transition:
        return self._table.lifecycle.edges[self._lease.state, target]

    def _require(self, source: int, target: int, call: Call) -> None:
        require_edge(self._table.roles, self._table.lifecycle, call.caller, call.method, source, target)

    def _lost(self, asked: Settling) -> Condition:
        make: Callable[..., Condition] = self._table.roles["lease_lost"]
        return make(holder=asked.held.owner, key=asked.key)


def _settled(outcomes: _Outcomes) -> int:
    return sum(not isinstance(each, Exception) for each in outcomes)
