"""Leases: claimed in order, renewed, and settled with what came of them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from runtime.call.conditions import Failure
from runtime.call.context import Call
from runtime.model.lifecycles import Transition
from runtime.stores.contract import NOTHING, Backlog, ExchangeResult, LeaseSettlement, Record
from runtime.stores.postgres.claims.claim_cursor import EVER, ClaimCursor
from runtime.stores.postgres.claims.renewals import PostgresRenewals
from runtime.stores.postgres.claims.settlements import Lost
from runtime.stores.postgres.context import Connection, moment_of
from runtime.stores.postgres.database import PostgresUnavailable
from runtime.stores.postgres.steps import StepOutcome
from runtime.stores.semantics.leases import offers, room
from runtime.stores.semantics.rules import revised
from runtime.stores.store import Busy, GuardBreach, Unstorable

_PATIENT = 3
"""How many results wait for another transaction at a time: the connections are for the others too."""
_ON_ACCESS = 100
"""How many due entities a claim changes first."""
_Outcomes = list[int | Exception]
_Groups = dict[str, list[int]]
"""The places of those that are settled, by the name of the edge that each takes."""


class PostgresLeases(PostgresRenewals[Record]):
    """The leases of one kind of entity."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        lease = self._rules.lease
        self._patience = asyncio.Semaphore(_PATIENT)
        claim = self._statements.get("claim")
        self._cursor = ClaimCursor(lease.oldest_by if lease else "")
        self._has_cursor = claim is not None and "from" in claim.takes

    # Claiming.

    async def claim(
        self,
        owner: str,
        count: int,
        call: Call,
        *,
        where: Mapping[str, object] = NOTHING,
        capabilities: Collection[str] | None = None,
    ) -> list[Record]:
        edge = self._admit_claim(call)
        narrowed = self._narrow(where)
        narrowed["offered"] = None if capabilities is None else [*capabilities]
        if not self._is_plain:
            return await self._claim_in_order(edge, owner, count, call, narrowed, capabilities)
        rows = await self._answer(self._look_on(None, owner, count, self._start(narrowed), call, narrowed))
        return self._claimed(edge, rows, call)

    async def exchange(
        self,
        owner: str,
        settlements: Sequence[LeaseSettlement],
        free: int,
        call: Call,
        *,
        where: Mapping[str, object] = NOTHING,
        capabilities: Collection[str] | None = None,
    ) -> ExchangeResult[Record]:
        edge = self._admit_claim(call)
        narrowed = self._narrow(where)
        if not self._is_plain:
            outcomes = [*await self.settle_many(settlements, call)]
            wanted = free + _settled(outcomes)
            claimed = await self.claim(owner, wanted, call, where=where, capabilities=capabilities)
            return ExchangeResult(claimed, outcomes)
        narrowed["offered"] = None if capabilities is None else [*capabilities]
        outcomes, along, places = await self._settle_most(settlements, call)
        start = self._start(narrowed)
        rows: Sequence[Any] | None = None
        if along is not None:
            claiming = {"owner": owner, "free": free + _settled(outcomes), "from": start, **narrowed}
            asked = [settlements[place] for place in places]
            written = await self._exchange_group(along, call, asked, **claiming)
            rows = written.claimed
            for place, outcome in zip(places, written.outcomes, strict=True):
                outcomes[place] = outcome
        if not any(isinstance(each, PostgresUnavailable) for each in outcomes):
            wanted = free + _settled(outcomes)
            try:
                rows = await self._look_on(rows, owner, wanted, start, call, narrowed)
            except PostgresUnavailable:
                if not settlements:
                    raise self._unavailable() from None
        answers = self._answers(settlements, outcomes, call)
        return ExchangeResult(self._claimed(edge, rows or (), call), answers)

    def _start(self, narrowed: Mapping[str, Any]) -> Any:
        """Where a claim begins to look: at the very beginning, unless age alone decides."""
        if not self._has_cursor or any(value is not None for value in narrowed.values()):
            return EVER
        return self._cursor.start()

    async def _look_on(
        self,
        rows: Sequence[Any] | None,
        owner: str,
        wanted: int,
        start: Any,
        call: Call,
        narrowed: Mapping[str, Any],
    ) -> Sequence[Any]:
        """Claim what a look did not get, at last from the very beginning.

        After a step that has settled something another look follows soon, so that one looks back only if
        there is a reason to.
        """
        found = rows if rows is not None else await self._look(owner, wanted, start, call, narrowed)
        if len(found) < wanted and start is not EVER and (rows is None or self._cursor.owes_back):
            try:
                back = self._cursor.back()
                found = [*found, *await self._look(owner, wanted - len(found), back, call, narrowed)]
                start = back
            except PostgresUnavailable:
                if not found:
                    raise  # What has been claimed is not to be forgotten for that.
        if self._has_cursor and all(value is None for value in narrowed.values()):
            self._cursor.ended(start, found)
        elif not found:
            self._cursor.looked()
        return found

    async def _look(
        self, owner: str, free: int, start: Any, call: Call, narrowed: Mapping[str, Any]
    ) -> Sequence[Any]:
        if free <= 0:
            return ()
        given = {"owner": owner, "free": free, "from": start, **narrowed}
        return await self._run("claim", actor=call.caller, **given)

    async def _claim_in_order(
        self,
        edge: Transition,
        owner: str,
        count: int,
        call: Call,
        narrowed: dict[str, Any],
        capabilities: Collection[str] | None,
    ) -> list[Record]:
        """Claim in a transaction: after what is due, and as far as the holder has room."""
        await self._forget()
        for clock in self._rules.on_access:
            await self._run_clock(clock, call, _ON_ACCESS)
        self._cursor.looked()
        taken: list[StepOutcome] = []
        async with self._transaction() as connection:
            holder, held = await self._find_holder(connection, owner)
            free = room(self._rules, holder, "state", held, count)
            offered = offers(self._rules, holder, capabilities)
            narrowed["offered"] = None if offered is None else [*offered]
            given = {"owner": owner, "free": free, "from": EVER, **narrowed}
            if free <= 0:
                rows: Sequence[Any] = ()
            elif "claim" in self._statements:
                rows = await self._run_in(connection, "claim", actor=call.caller, **given)
            else:
                rows = await self._run_in(connection, "choose", **given)
                for row in self._in_order(rows):
                    begun = StepOutcome(self._codec.decode(row), ())
                    taken.append(self._take(begun, edge, moment_of(row), owner, is_final=False))
                await self._write(connection, call.caller, taken, call)
        if not taken:
            return self._claimed(edge, rows, call)
        for each in taken:
            self._audit_taken(each, call)
        return [revised(self._rules, each.old, each.record) for each in taken]

    async def _find_holder(self, connection: Connection, owner: str) -> tuple[Any | None, int]:
        """Return the holder of a lease, as far as claims go by it, and how many it has."""
        lease = self._rules.lease
        if lease is None or lease.holder is None or "holder" not in self._statements:
            return None, 0
        rows = await self._run_in(connection, "holder", owner=owner)
        if not rows:
            return None, 0
        (row,) = rows
        words = {lease.holder.capacity: row["capacity"], lease.holder.offers: row["offers"]}
        return SimpleNamespace(state=row["state"], **words), row["held"]

    def _narrow(self, where: Mapping[str, object]) -> dict[str, Any]:
        """Return what narrows a claim or a listing, as statements take it."""
        self._require_fields(where)
        columns = self._statements["columns"].takes
        narrowed: dict[str, Any] = {}
        for name, value in where.items():
            if value is None:
                narrowed["absent"] = [*narrowed.get("absent", ()), name]
            elif columns[name] not in ("text", "integer", "bigint", "boolean", "uuid"):
                raise GuardBreach(f"{name} of a {self._entity} narrows nothing in PostgreSQL")
            else:
                narrowed[f"record_{name}"] = value
        return narrowed

    def _claimed(self, edge: Transition, rows: Sequence[Any], call: Call) -> list[Record]:
        lease = self._rules.lease
        assert lease is not None
        claimed = [self._codec.decode(row) for row in self._in_order(rows)]
        if claimed:
            self._measures.waited_all(row["_waited"] for row in rows)
            key, owner, fence = self._key_field, lease.owner, lease.fence
            held = [(getattr(each, key), getattr(each, owner), getattr(each, fence)) for each in claimed]
            self._audit_leases(edge, held, call)
        return claimed

    def _in_order(self, rows: Sequence[Any]) -> Sequence[Any]:
        """Return rows in claim order; those of one statement may come in any."""
        if len(rows) < 2:
            return rows
        key = self._key_field
        return sorted(
            rows, key=lambda row: (row["_rank"], row["_age"] is not None, row["_age"], str(row[key]))
        )

    # Settling.

    async def settle(self, settlement: LeaseSettlement, call: Call) -> int:
        """Settle one; where another transaction has the row, it is waited for."""
        edge = self._admit_settlement(settlement, call)
        (answer,) = await self._settle_at_once([settlement], call)
        if isinstance(answer, Busy):
            async with self._patience:
                outcomes = await self._settle_group(edge, call, [settlement], is_patient=True)
            (answer,) = self._answers([settlement], [*outcomes], call)
        if isinstance(answer, Busy):
            raise self._unavailable()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def settle_many(
        self, settlements: Sequence[LeaseSettlement], call: Call
    ) -> Sequence[int | Exception]:
        outcomes = await self._settle_at_once(settlements, call)
        if self._is_plain:
            return outcomes
        pairs = zip(settlements, outcomes, strict=True)
        return [await self._wait_out(each, outcome, call) for each, outcome in pairs]

    async def _wait_out(
        self, settlement: LeaseSettlement, outcome: int | Exception, call: Call
    ) -> int | Exception:
        """Settle what another transaction had: a claim that came too late for it has it until its end."""
        if not isinstance(outcome, Busy):
            return outcome
        try:
            return await self.settle(settlement, call)
        except (Failure, GuardBreach, Unstorable) as error:
            return error

    async def _settle_at_once(
        self, settlements: Sequence[LeaseSettlement], call: Call
    ) -> Sequence[int | Exception]:
        outcomes, along, places = await self._settle_most(settlements, call)
        if along is not None:
            await self._settle_places(along, settlements, places, outcomes, call)
        return self._answers(settlements, outcomes, call)

    async def _settle_most(
        self, settlements: Sequence[LeaseSettlement], call: Call
    ) -> tuple[_Outcomes, Transition | None, list[int]]:
        """Settle all but the largest group of one compiled edge, which is left for the step of a claim."""
        outcomes: _Outcomes = [Lost()] * len(settlements)
        edges: dict[str, Transition] = {}
        rounds: list[_Groups] = [{}]
        keys: set[str] = set()
        for place, each in enumerate(settlements):
            try:
                edges[each.edge] = self._admit_settlement(each, call)
            except (Failure, GuardBreach) as error:
                outcomes[place] = error
                continue
            key = self._codec.as_key(each.key)
            if not self._codec.is_key(key):
                outcomes[place] = Lost("lost")
                continue
            try:
                await self._access(key, call)
            except (Failure, GuardBreach, Unstorable) as error:
                outcomes[place] = error
                continue
            if key in keys:  # A second settlement of one entity comes after the first.
                rounds.append({})
                keys.clear()
            keys.add(key)
            rounds[-1].setdefault(each.edge, []).append(place)
        last = rounds[-1]
        plain = [name for name in last if f"exchange_{name}" in self._statements]
        along = max(plain, key=lambda name: len(last[name]), default=None)
        for groups in rounds:
            for name, places in groups.items():
                if groups is not last or name != along:
                    await self._settle_places(edges[name], settlements, places, outcomes, call)
        return (outcomes, edges[along], last[along]) if along is not None else (outcomes, None, [])

    async def _settle_places(
        self,
        edge: Transition,
        settlements: Sequence[LeaseSettlement],
        places: Sequence[int],
        outcomes: _Outcomes,
        call: Call,
    ) -> None:
        written = await self._settle_group(edge, call, [settlements[place] for place in places])
        for place, outcome in zip(places, written, strict=True):
            outcomes[place] = outcome

    def _answers(
        self, settlements: Sequence[LeaseSettlement], outcomes: _Outcomes, call: Call
    ) -> Sequence[int | Exception]:
        """Return the outcomes as callers get them, and audit those that were written."""
        applied: dict[str, list[tuple[str, str, int]]] = {}
        for place, each in enumerate(settlements):
            outcome = outcomes[place] = self._to_answer(each, outcomes[place])
            if not isinstance(outcome, Exception):
                for edge in self._path(self._rules.edges[each.edge], outcome):
                    applied.setdefault(edge.name, []).append((each.key, *each.lease))
        for name, held in applied.items():
            self._audit_leases(self._rules.edges[name], held, call)
        return outcomes

    def _path(self, edge: Transition, end: int) -> tuple[Transition, ...]:
        """Return the edges that led out of the lease: one, or two where it was the last try."""
        if end == edge.target or edge.dead_letter is None:
            return (edge,)
        last = self._rules.edges[edge.dead_letter.transition]
        return (last,) if last.source == edge.source else (edge, last)

    # Pausing.

    async def pause(self, value: int) -> None:
        self._require_pausable()
        await self._answer(self._run("pause", value=value))

    async def resume(self, value: int) -> None:
        self._require_pausable()
        await self._answer(self._run("resume", value=value))

    async def paused(self) -> frozenset[int]:
        if "paused" not in self._statements:
            return frozenset()
        return frozenset(row[0] for row in await self._answer(self._run("paused")))

    def _require_pausable(self) -> None:
        if self._rules.rank_field is None:
            raise GuardBreach(f"claims of a {self._entity} are in no order that could be paused")

    async def backlog(self) -> dict[int, Backlog]:
        lease = self._rules.lease
        if lease is None:
            raise GuardBreach(f"a {self._entity} has no lease")
        values = lease.claim_order or (0,)
        await self._forget()
        if "backlog" not in self._statements:
            return dict.fromkeys(values, Backlog(0, 0.0))
        rows = await self._answer(self._run("backlog"))
        return {values[row["rank"]]: Backlog(row["entities"], row["oldest"]) for row in rows}


def _settled(outcomes: _Outcomes) -> int:
    return sum(not isinstance(each, Exception) for each in outcomes)
