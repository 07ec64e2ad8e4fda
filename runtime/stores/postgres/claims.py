"""Claims: take leases in order, renew them, and settle some while claiming others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from runtime.call.context import Call
from runtime.model.lifecycles import Transition
from runtime.stores.contract import NOTHING, Backlog, ExchangeResult, LeaseProof, LeaseSettlement, Record
from runtime.stores.postgres.context import Connection, moment_of
from runtime.stores.postgres.database import PostgresUnavailable
from runtime.stores.postgres.settlements import PostgresSettlements, count_settled
from runtime.stores.postgres.steps import StepOutcome
from runtime.stores.semantics.leases import lease_problem, offers, room
from runtime.stores.semantics.rules import revised
from runtime.stores.store import Busy, GuardBreach

_ON_ACCESS = 100
"""How many due entities a claim changes first."""
EVER = datetime(1, 1, 1, tzinfo=UTC)
_LOOK_BACK_S = 1.0
"""How often at least those are looked for that are older than the last one taken."""


class PostgresClaims(PostgresSettlements[Record]):
    """Claims the entities of one kind."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        lease = self._rules.lease
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
            wanted = free + count_settled(outcomes)
            claimed = await self.claim(owner, wanted, call, where=where, capabilities=capabilities)
            return ExchangeResult(claimed, outcomes)
        narrowed["offered"] = None if capabilities is None else [*capabilities]
        outcomes, along, places = await self._settle_most(settlements, call)
        start = self._start(narrowed)
        rows: Sequence[Any] | None = None
        if along is not None:
            claiming = {"owner": owner, "free": free + count_settled(outcomes), "from": start, **narrowed}
            asked = [settlements[place] for place in places]
            written = await self._exchange_group(along, call, asked, **claiming)
            rows = written.claimed
            for place, outcome in zip(places, written.outcomes, strict=True):
                outcomes[place] = outcome
        if not any(isinstance(each, PostgresUnavailable) for each in outcomes):
            wanted = free + count_settled(outcomes)
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

    # Renewing.

    async def renew(
        self, held: Sequence[tuple[str, LeaseProof]], *, seconds: float | None = None
    ) -> list[Any]:
        if self._rules.lease is None:
            raise GuardBreach(f"a {self._entity} has no lease")
        codec = self._codec
        known = [(key, lease) for key, lease in held if codec.is_key(key)]
        for key, _ in () if self._is_timeless else known:
            await self._access(codec.as_key(key))
        actor = sorted(self._rules.entering.actors)[0] if self._rules.entering else ""
        given = self._lease_columns(known) | {"actor": actor, "seconds": seconds}
        rows = await self._answer(self._run("renew", **given)) if known else ()
        renewed = self._by_key(rows)
        left = {codec.as_key(key) for key, _ in known} - renewed.keys()
        if left and not self._is_plain:
            renewed |= await self._renew_locked(left, given)
            left -= renewed.keys()
        goes_on: dict[str, Any] = {}
        if left:
            rows = await self._answer(self._run("holds", keys=[*left]))
            goes_on = {str(row[self._key_field]): row for row in rows}
        return [self._renewed(key, lease, renewed, goes_on) for key, lease in held]

    async def _renew_locked(self, left: Collection[str], given: Mapping[str, Any]) -> dict[str, Any]:
        """Renew leases once more, after whoever has their rows."""
        async with self._transaction() as connection:
            if not await self._run_in(connection, "lock", keys=[*left]):
                return {}
            return self._by_key(await self._run_in(connection, "renew", **given))

    def _by_key(self, rows: Sequence[Any]) -> dict[str, Any]:
        return {str(row[self._key_field]): self._codec.decode(row) for row in rows}

    def _renewed(
        self, key: str, proof: LeaseProof, renewed: Mapping[str, Any], others: Mapping[str, Any]
    ) -> Any:
        own, lease = self._codec.as_key(key), self._rules.lease
        assert lease is not None
        record = renewed.get(own)
        if record is not None and self._is_proven(record, proof):
            return record
        row = others.get(own)
        if row is not None:
            record = self._codec.decode(row)
            if lease_problem(self._rules, record, *proof, moment_of(row)) is None:
                return Busy("another transaction has it")
        self._measures.lease_lost()
        return None

    def _is_proven(self, record: Any, proof: LeaseProof) -> bool:
        lease = self._rules.lease
        assert lease is not None
        is_owner = not proof.owner or getattr(record, lease.owner) == proof.owner
        return is_owner and (not proof.fence or getattr(record, lease.fence) == proof.fence)

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


class ClaimCursor:
    """Looks go on from where the last were taken, and every so often from the very beginning.

    What was taken leaves its traces in the index until it is vacuumed, which a forgotten transaction can
    hold up for hours. Passing all of them on every look would take longer and longer. Where nothing is
    expected, one look at all of it is enough.
    """

    def __init__(self, oldest_by: str) -> None:
        self._oldest_by = oldest_by
        self._oldest, self._looked_back, self._has_found = EVER, 0.0, False
        self.owes_back = True
        """Whether something may have come back since the last look at all there is."""
        self.looked: Callable[[], bool] = lambda: True
        """Called whenever a look begins; whether there was news since the last."""

    def start(self) -> datetime:
        """Begins a look: from here on."""
        now, is_news = asyncio.get_running_loop().time(), self.looked()
        self.owes_back |= is_news
        if now - self._looked_back > _LOOK_BACK_S or not (is_news or self._has_found):
            return self.back()
        return self._oldest

    def back(self) -> datetime:
        """Begins a look at all there is."""
        self._looked_back, self.owes_back = asyncio.get_running_loop().time(), False
        return EVER

    def ended(self, start: datetime, found: Sequence[Any]) -> None:
        """Remembers what a look has found that began there.

        Another look may have ended meanwhile. If it went back and found something, the next goes on from
        there, else from the last of all.
        """
        self._has_found = bool(found)
        if found:
            last: datetime = max(row[self._oldest_by] for row in found)
            if start is EVER:
                self._oldest = last
            elif self._oldest >= start:
                self._oldest = max(self._oldest, last)
