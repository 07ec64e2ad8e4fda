"""Claims: acquire leases in claim order, renew them, and exchange settlements for new claims."""

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
"""Most due entities that a claim changes first."""
BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
_REWIND_S = 1.0
"""Longest interval of claims from the beginning, which find entities older than the cursor."""


class PostgresClaims(PostgresSettlements[Record]):
    """The claims of one kind of entity."""

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
        start = self._start(narrowed)
        rows = await self._answer(self._claim_remaining(None, owner, count, start, call, narrowed))
        return self._decode_claimed(edge, rows, call)

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
        outcomes, combined, positions = await self._settle_most(settlements, call)
        start = self._start(narrowed)
        rows: Sequence[Any] | None = None
        if combined is not None:
            claiming = {"owner": owner, "free": free + count_settled(outcomes), "from": start, **narrowed}
            group = [settlements[position] for position in positions]
            written = await self._exchange_group(combined, call, group, **claiming)
            rows = written.claimed
            for position, outcome in zip(positions, written.outcomes, strict=True):
                outcomes[position] = outcome
        if not any(isinstance(each, PostgresUnavailable) for each in outcomes):
            wanted = free + count_settled(outcomes)
            try:
                rows = await self._claim_remaining(rows, owner, wanted, start, call, narrowed)
            except PostgresUnavailable:
                if not settlements:
                    raise self._unavailable() from None
        results = self._to_results(settlements, outcomes, call)
        return ExchangeResult(self._decode_claimed(edge, rows or (), call), results)

    def _start(self, narrowed: Mapping[str, Any]) -> Any:
        """Return where a claim begins: at the cursor if age alone decides, else at the beginning."""
        if not self._has_cursor or any(value is not None for value in narrowed.values()):
            return BEGINNING
        return self._cursor.start()

    async def _claim_remaining(
        self,
        rows: Sequence[Any] | None,
        owner: str,
        wanted: int,
        start: Any,
        call: Call,
        narrowed: Mapping[str, Any],
    ) -> Sequence[Any]:
        """Claim up to the wanted number: from the cursor, then from the beginning.

        After an exchange the next claim follows soon, so it rewinds only if there is a reason to.
        """
        found = rows if rows is not None else await self._fetch_claims(owner, wanted, start, call, narrowed)
        if len(found) < wanted and start is not BEGINNING and (rows is None or self._cursor.must_rewind):
            try:
                back = self._cursor.rewind()
                found = [*found, *await self._fetch_claims(owner, wanted - len(found), back, call, narrowed)]
                start = back
            except PostgresUnavailable:
                if not found:
                    raise  # Otherwise the claimed entities would be lost.
        if self._has_cursor and all(value is None for value in narrowed.values()):
            self._cursor.note_result(start, found)
        elif not found:
            self._cursor.note_claim()
        return found

    async def _fetch_claims(
        self, owner: str, free: int, start: Any, call: Call, narrowed: Mapping[str, Any]
    ) -> Sequence[Any]:
        if free <= 0:
            return ()
        arguments = {"owner": owner, "free": free, "from": start, **narrowed}
        return await self._run("claim", actor=call.caller, **arguments)

    async def _claim_in_order(
        self,
        edge: Transition,
        owner: str,
        count: int,
        call: Call,
        narrowed: dict[str, Any],
        capabilities: Collection[str] | None,
    ) -> list[Record]:
        """Claim in a transaction: after the due transitions, up to the capacity of the holder."""
        await self._forget()
        for clock in self._rules.on_access:
            await self._run_clock(clock, call, _ON_ACCESS)
        self._cursor.note_claim()
        leased: list[StepOutcome] = []
        async with self._transaction() as connection:
            holder, held = await self._find_holder(connection, owner)
            free = room(self._rules, holder, "state", held, count)
            offered = offers(self._rules, holder, capabilities)
            narrowed["offered"] = None if offered is None else [*offered]
            arguments = {"owner": owner, "free": free, "from": BEGINNING, **narrowed}
            if free <= 0:
                rows: Sequence[Any] = ()
            elif "claim" in self._statements:
                rows = await self._run_in(connection, "claim", actor=call.caller, **arguments)
            else:
                rows = await self._run_in(connection, "choose", **arguments)
                for row in self._in_order(rows):
                    begun = StepOutcome(self._codec.decode(row), ())
                    leased.append(self._apply(begun, edge, moment_of(row), owner, is_final=False))
                await self._write(connection, call.caller, leased, call)
        if not leased:
            return self._decode_claimed(edge, rows, call)
        for each in leased:
            self._audit_outcome(each, call)
        return [revised(self._rules, each.old, each.record) for each in leased]

    async def _find_holder(self, connection: Connection, owner: str) -> tuple[Any | None, int]:
        """Read the holder of leases with its state, capacity and offers, and the number of its leases."""
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
        """Return the filters of a claim or a listing as arguments of statements."""
        self._require_fields(where)
        columns = self._statements["columns"].takes
        narrowed: dict[str, Any] = {}
        for name, value in where.items():
            if value is None:
                narrowed["absent"] = [*narrowed.get("absent", ()), name]
            elif columns[name] not in ("text", "integer", "bigint", "boolean", "uuid"):
                raise GuardBreach(f"{name} of a {self._entity} cannot be a filter in PostgreSQL")
            else:
                narrowed[f"record_{name}"] = value
        return narrowed

    def _decode_claimed(self, edge: Transition, rows: Sequence[Any], call: Call) -> list[Record]:
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
        """Sort rows in claim order; a statement returns them in any."""
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
        arguments = self._lease_columns(known) | {"actor": actor, "seconds": seconds}
        rows = await self._answer(self._run("renew", **arguments)) if known else ()
        renewed = self._by_key(rows)
        remaining = {codec.as_key(key) for key, _ in known} - renewed.keys()
        if remaining and not self._is_plain:
            renewed |= await self._renew_locked(remaining, arguments)
            remaining -= renewed.keys()
        unrenewed: dict[str, Any] = {}
        if remaining:
            rows = await self._answer(self._run("holds", keys=[*remaining]))
            unrenewed = {str(row[self._key_field]): row for row in rows}
        return [self._renewal_result(key, lease, renewed, unrenewed) for key, lease in held]

    async def _renew_locked(self, keys: Collection[str], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Renew leases after waiting for the locks of their rows."""
        async with self._transaction() as connection:
            if not await self._run_in(connection, "lock", keys=[*keys]):
                return {}
            return self._by_key(await self._run_in(connection, "renew", **arguments))

    def _by_key(self, rows: Sequence[Any]) -> dict[str, Any]:
        return {str(row[self._key_field]): self._codec.decode(row) for row in rows}

    def _renewal_result(
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
    """The cursor of claims: they continue at the age of the last claim, and now and then from the beginning.

    Claimed entities leave dead tuples in the index until it is vacuumed, which a forgotten transaction can
    delay for hours. A scan over all of them in every claim would get slower and slower. Without a wake-up one
    claim from the beginning is enough.
    """

    def __init__(self, oldest_by: str) -> None:
        self._oldest_by = oldest_by
        self._oldest, self._rewound_at, self._has_found = BEGINNING, 0.0, False
        self.must_rewind = True
        """Whether an entity older than the cursor may have become claimable since the last rewind."""
        self.note_claim: Callable[[], bool] = lambda: True
        """Called at the beginning of a claim; returns whether there was a wake-up since the last one."""

    def start(self) -> datetime:
        """Begin a claim; return its start."""
        now, is_woken = asyncio.get_running_loop().time(), self.note_claim()
        self.must_rewind |= is_woken
        if now - self._rewound_at > _REWIND_S or not (is_woken or self._has_found):
            return self.rewind()
        return self._oldest

    def rewind(self) -> datetime:
        """Begin a claim at the beginning; return that."""
        self._rewound_at, self.must_rewind = asyncio.get_running_loop().time(), False
        return BEGINNING

    def note_result(self, start: datetime, found: Sequence[Any]) -> None:
        """Move the cursor after a claim that began at a start.

        Claims may be concurrent: one that rewound and found something sets the cursor, others advance it.
        """
        self._has_found = bool(found)
        if found:
            last: datetime = max(row[self._oldest_by] for row in found)
            if start is BEGINNING:
                self._oldest = last
            elif self._oldest >= start:
                self._oldest = max(self._oldest, last)
