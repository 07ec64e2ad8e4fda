"""Claims without an index: all objects are read, in the claim order of the semantics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic

from runtime.stores.contract import Backlog, Record
from runtime.stores.s3.claims.claim_request import ClaimRequest, LeaseOut
from runtime.stores.s3.codec import Snapshot
from runtime.stores.s3.context import BucketContext, run_together
from runtime.stores.semantics.leases import claim_age, claim_rank, free_at, is_free

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 5.0
Scan = Callable[[int], Awaitable[list[tuple[str, Snapshot[Any]]]]]
_Fingerprint = frozenset[tuple[str, str]]


class TableClaims(Generic[Record]):
    """The claims of one process."""

    def __init__(self, context: BucketContext[Record], scan: Scan, lease_out: LeaseOut) -> None:
        self._context = context
        self._rules = context.rules
        self._scan = scan
        self._lease_out = lease_out
        self._last_empty: tuple[_Fingerprint, int] | None = None
        """Fingerprint and time of the last claim that found nothing."""

    async def claim(self, request: ClaimRequest, most: int) -> list[Snapshot[Record]]:
        """Lease at most so many entities in claim order."""
        now = self._context.moment()
        table = await self._scan(now)
        claimable = [
            (key, each)
            for key, each in table
            if self._context.is_claimable(each.record, now) and request.fits(self._rules, each.record)
        ]
        claimable.sort(key=lambda each: self._order(*each))
        claimed: list[Snapshot[Record]] = []
        while claimable and len(claimed) < most:
            count = most - len(claimed)
            some, claimable = claimable[:count], claimable[count:]
            leased = await run_together(some, lambda each: self._lease_out(*each, request))
            claimed += [each for each in leased if each is not None]
        self._last_empty = None if claimed else (_fingerprint(table), now)
        return claimed

    async def backlog(self) -> dict[int, Backlog]:
        """Count what can be claimed now, by each value of `claim_order`."""
        rules, now, ages = self._rules, self._context.moment(), dict[int, list[int]]()
        for _, each in await self._scan(now):
            if self._context.is_claimable(each.record, now):
                ages.setdefault(claim_rank(rules, each.record) or 0, []).append(claim_age(rules, each.record))
        values = (rules.lease.claim_order if rules.lease else ()) or (0,)
        found = [ages.get(rank, []) for rank in range(len(values))]
        return {
            value: Backlog(len(some), max(0, now - min(some, default=now)) / 1e6)
            for value, some in zip(values, found, strict=True)
        }

    async def wait(self, timeout_s: float) -> bool:
        """Wait until an entity is claimable that the last claim has not seen."""
        loop, pause_s = asyncio.get_running_loop(), _FIRST_PAUSE_S
        began = loop.time()
        while True:
            has_news, free_in_s = await self._look()
            remaining_s = min(timeout_s, free_in_s) - (loop.time() - began)
            if has_news or remaining_s <= 0:
                return has_news or free_in_s <= timeout_s
            await asyncio.sleep(min(pause_s, remaining_s))
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _look(self) -> tuple[bool, float]:
        """Return whether there is a new claimable entity, and the seconds until the next one is free."""
        rules, now = self._rules, self._context.moment()
        table = await self._scan(now)
        times = [free_at(rules, each.record) for _, each in table if is_free(rules, each.record)]
        later = min((each for each in times if each > now), default=None)
        free_in_s = float("inf") if later is None else (later - now) / 1e6
        is_any = any(each <= now for each in times)
        if self._last_empty is None or not is_any:
            return is_any, free_in_s
        known, at = self._last_empty
        return known != _fingerprint(table) or any(at < each <= now for each in times), free_in_s

    def _order(self, key: str, found: Snapshot[Record]) -> tuple[int, int, str]:
        rank = claim_rank(self._rules, found.record)
        return rank or 0, claim_age(self._rules, found.record), key


def _fingerprint(table: list[tuple[str, Snapshot[Any]]]) -> _Fingerprint:
    return frozenset((key, each.etag) for key, each in table)
