"""Leases in a bucket: claim, renew, settle, wait and pause."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson

from runtime.call.context import Call
from runtime.model.json_text import NotJson, decode_json
from runtime.model.lifecycles import Transition
from runtime.stores.contract import NOTHING, Backlog, ExchangeResult, LeaseProof, LeaseSettlement, Record
from runtime.stores.s3.changes import Plan, S3Changes
from runtime.stores.s3.claims.claim_request import ClaimRequest
from runtime.stores.s3.claims.indexed_claims import IndexedClaims
from runtime.stores.s3.claims.table_claims import TableClaims
from runtime.stores.s3.client.errors import Away, NotMatched, ObjectError
from runtime.stores.s3.client.objects import Found
from runtime.stores.s3.codec import Snapshot, Unreadable
from runtime.stores.s3.conditional_writes import Changed
from runtime.stores.s3.context import run_together
from runtime.stores.semantics.edges import applies, take_edge
from runtime.stores.semantics.leases import LOST, after_renewal, lease_problem, offers, room
from runtime.stores.semantics.rules import Change
from runtime.stores.store import GuardBreach

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_AT_ONCE = 32
_KINDS = 64
"""Cached searches, one for each set of shards and capabilities."""
_TRIES = 8


class S3Leases(S3Changes[Record]):
    """The leases of one kind of entity."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._claims: OrderedDict[object, IndexedClaims[Record]] = OrderedDict()
        self._table: TableClaims[Record] = TableClaims(self._context, self._scan, self._lease_out)
        self._claiming = asyncio.Lock()
        self._pause_s = _FIRST_PAUSE_S

    async def claim(
        self,
        owner: str,
        count: int,
        call: Call,
        *,
        where: Mapping[str, object] = NOTHING,
        capabilities: Collection[str] | None = None,
    ) -> list[Record]:
        with self._context.outages():
            return await self._claim(owner, count, call, where, capabilities)

    async def renew(
        self, held: Sequence[tuple[str, LeaseProof]], *, seconds: float | None = None
    ) -> list[Record | None]:
        lease = self._rules.lease
        if lease is None:
            raise GuardBreach(f"a {self._entity} has no lease")

        async def renew(each: tuple[str, LeaseProof]) -> Any:
            # One failed renewal is no lost lease, and does not affect the others.
            try:
                return await self._renew(*each, seconds)
            except Unreadable:
                return None
            except ObjectError as error:
                return self._context.explain(error)

        return list(await run_together(held, renew, at_once=_AT_ONCE))

    async def settle(self, settlement: LeaseSettlement, call: Call) -> int:
        with self._context.outages():
            return await self._settle(settlement, call)

    async def settle_many(
        self, settlements: Sequence[LeaseSettlement], call: Call
    ) -> Sequence[int | Exception]:
        async def settle(each: LeaseSettlement) -> int | Exception:
            try:
                return await self.settle(each, call)
            except Exception as error:
                return error

        # Settlements of one entity are serialized by OwnWrites.
        return await run_together(settlements, settle, at_once=_AT_ONCE)

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
        self._admit_claim(call)
        self._require_fields(where)
        outcomes = await self.settle_many(settlements, call)
        wanted = free + sum(not isinstance(each, Exception) for each in outcomes)
        try:
            claimed = await self.claim(owner, wanted, call, where=where, capabilities=capabilities)
        except Exception:
            if not settlements:
                raise
            claimed = []  # The settlements have to be answered; the next exchange meets the failure again.
        return ExchangeResult(claimed, outcomes)

    async def wait(self, timeout_s: float, *, key: str | None = None) -> bool:
        with self._context.outages():
            if key is not None:
                return await self._wait_for(key, timeout_s)
            if self._layout.polls is None:
                return await self._table.wait(timeout_s)
            return await self._wait_by_index(timeout_s)

    async def pause(self, value: int) -> None:
        self._require_pausable()
        with self._context.failures():
            await self._write_paused(lambda paused: paused | {value})

    async def resume(self, value: int) -> None:
        self._require_pausable()
        with self._context.failures():
            await self._write_paused(lambda paused: paused - {value})

    async def paused(self) -> frozenset[int]:
        with self._context.failures():
            return _parse_paused(await self._context.objects.get(self._layout.paused))

    async def backlog(self) -> dict[int, Backlog]:
        if self._rules.lease is None:
            raise GuardBreach(f"a {self._entity} has no lease")
        with self._context.failures():
            return await self._table.backlog()

    # Claiming.

    async def _claim(
        self,
        owner: str,
        count: int,
        call: Call,
        where: Mapping[str, object],
        capabilities: Collection[str] | None,
    ) -> list[Record]:
        self._admit_claim(call)
        self._require_fields(where)
        if await self._context.is_clock_off(call):
            return []
        await self._run_on_access(self._now(), call)
        lease, rules = self._rules.lease, self._rules
        if lease is None or lease.holder is None:
            return await self._claim_for(owner, count, call, where, offers(rules, None, capabilities))
        # The leases of an owner are counted before it gets more (its capacity).
        async with self._claiming:
            holder, status = await self._holder(owner)
            free = room(rules, holder, status, await self._count_leases(owner), count)
            return await self._claim_for(owner, free, call, where, offers(rules, holder, capabilities))

    async def _claim_for(
        self,
        owner: str,
        count: int,
        call: Call,
        where: Mapping[str, object],
        offered: frozenset[str] | None,
    ) -> list[Record]:
        if count <= 0:
            return []
        paused = await self.paused() if self._rules.rank_field is not None else frozenset[int]()
        request = ClaimRequest(owner, offered, where, paused, call)
        claims = self._table if self._layout.polls is None else self._claims_for(request)
        claimed = await claims.claim(request, count)
        if claimed or getattr(claims, "is_behind", False):
            self._pause_s = _FIRST_PAUSE_S
        return [await self._writes.large.load(each.record) for each in claimed]

    def _claims_for(self, request: ClaimRequest) -> IndexedClaims[Record]:
        """Return the search for a request's shards and capabilities; each has a skip cache of its own."""
        shard = self._layout.shard
        named = request.where.get(shard.field) if shard is not None else None
        kind = (named, request.offered)
        claims = self._claims.get(kind)
        if claims is None:
            shards = None if named is None else (str(named),)
            claims = self._claims[kind] = IndexedClaims(self._context, shards, self._lease_out)
            while len(self._claims) > _KINDS:
                self._claims.popitem(last=False)
        return claims

    async def _lease_out(
        self, key: str, found: Snapshot[Record], request: ClaimRequest
    ) -> Snapshot[Record] | None:
        """Lease an entity that was just read; None where another owner was first."""
        rules, edge, now = self._rules, self._rules.entering, self._now()
        assert edge is not None
        token = rules.lease.token if rules.lease else None
        # An entity with an unreadable value must not be claimed.
        await self._writes.large.load(found.record)

        def decide(record: Record) -> Plan | None:
            # After a lost race the entity is for the next claim.
            if record is not found.record:
                return None
            new, edges = take_edge(rules, edge, record, NOTHING, now, self._world, owner=request.owner)
            return Plan(new, edges)

        def is_mine(wanted: Record, other: Record) -> bool:
            return token is not None and getattr(wanted, token) == getattr(other, token) is not None

        result = await self._apply(key, decide, request.call, now, known=found, once=True, is_mine=is_mine)
        if not isinstance(result, Changed):
            return None
        self._own.keep(key, result.after)
        return result.after

    # Renewing and settling.

    async def _renew(self, key: str, proof: LeaseProof, seconds: float | None) -> Record | None:
        rules, lease, now = self._rules, self._rules.lease, self._now()
        assert lease is not None
        if not self._is_timeless and await self._find(key, now) is None:
            return None

        def decide(record: Record) -> Plan | None:
            if lease_problem(rules, record, *proof, now):
                return None
            return Plan(after_renewal(rules, lease, record, now, seconds), ())

        if not self._lifecycle.is_key(key):
            return None
        result = await self._apply(key, decide, None, now, is_own=True)
        return result.after.record if isinstance(result, Changed) else None

    async def _settle(self, settlement: LeaseSettlement, call: Call) -> int:
        rules, now, key = self._rules, self._now(), settlement.key
        edge = self._admit(settlement.edge, call, has_proof=True)
        if not isinstance(edge, Transition) or rules.lease is None or rules.lease.state not in edge.sources:
            raise GuardBreach(f"{settlement.edge} does not leave the lease of a {self._entity}")
        if settlement.is_final:
            self._require_ending(edge)
        if not self._lifecycle.is_key(key) or (
            not self._is_timeless and await self._find(key, now, call) is None
        ):
            raise self._lease_lost(key, settlement.lease.owner, LOST)

        def decide(record: Record) -> Plan:
            problem = lease_problem(rules, record, *settlement.lease, now)
            if problem is None and not applies(rules, edge, record):
                problem = LOST
            if problem is not None:
                raise self._lease_lost(key, settlement.lease.owner, problem)
            return self._plan(edge, record, settlement.given, now, is_final=settlement.is_final)

        try:
            result = await self._apply(key, decide, call, now, is_own=True)
        except Unreadable as error:
            # Another writer has overwritten the entity and its lease; only this settlement fails.
            self._context.log_unreadable(call, self._context.keys.path_of(key), error)
            raise self._lease_lost(key, settlement.lease.owner, LOST) from None
        self._own.forget(key)
        if not isinstance(result, Changed):
            raise self._lease_lost(key, settlement.lease.owner, LOST)
        for claims in self._claims.values():
            claims.note_settled(key, result.after)
        state: int = rules.state(result.after.record)
        return state

    def _require_ending(self, edge: Change) -> None:
        if not isinstance(edge, Transition) or edge.dead_letter is None:
            raise GuardBreach(f"{edge.name} is never the last try of a {self._entity}")

    # Waiting.

    async def _wait_by_index(self, timeout_s: float) -> bool:
        """Wait with backoff, but at most until the next known entity is free."""
        claims = [*self._claims.values()]
        if not claims or any(each.may_find for each in claims):
            for each in claims:
                each.may_find = False
            return True
        pause_s, self._pause_s = min(self._pause_s, timeout_s), min(2 * self._pause_s, _LONGEST_PAUSE_S)
        now = self._context.now()
        times = [due for each in claims if (due := each.next_after(now)) is not None]
        if times:
            pause_s = max(_FIRST_PAUSE_S / 2, min(pause_s, (min(times) - now).total_seconds()))
        await self._world.sleep(pause_s)
        return True

    async def _wait_for(self, key: str, timeout_s: float) -> bool:
        """Wait until an entity changes."""
        loop, path, pause_s = asyncio.get_running_loop(), self._context.keys.path_of(key), _FIRST_PAUSE_S / 2
        ends, first = loop.time() + timeout_s, await self._context.objects.get(path)
        while (remaining_s := ends - loop.time()) > 0:
            await asyncio.sleep(min(pause_s, remaining_s))
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            found = await self._context.objects.get(path)
            if (found and found.etag) != (first and first.etag):
                return True
        return False

    # Pausing.

    async def _write_paused(self, change: Any) -> None:
        objects, path = self._context.objects, self._layout.paused
        for _ in range(_TRIES):
            found = await objects.get(path)
            body = orjson.dumps(sorted(change(_parse_paused(found))))
            try:
                if found is None:
                    await objects.create(path, body)
                elif found.body != body:
                    await objects.replace(path, body, found.etag)
            except NotMatched:
                continue
            return
        raise Away("too many concurrent changes of the paused values")

    def _require_pausable(self) -> None:
        if self._rules.rank_field is None:
            raise GuardBreach(f"claims of a {self._entity} are in no order that could be paused")


def _parse_paused(found: Found | None) -> frozenset[int]:
    try:
        return frozenset(int(each) for each in decode_json(found.body)) if found is not None else frozenset()
    except (NotJson, TypeError, ValueError):
        return frozenset()
