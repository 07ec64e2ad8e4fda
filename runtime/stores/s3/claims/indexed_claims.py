"""Claims by an index: its listings give candidates, and each is read before it is claimed."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Generic

from runtime.stores.contract import Record
from runtime.stores.s3.claims.claim_request import ClaimRequest, LeaseOut
from runtime.stores.s3.claims.index_search import Candidate, IndexSearch
from runtime.stores.s3.codec import Snapshot, Unreadable
from runtime.stores.s3.context import BucketContext

_LOOKS = 64
"""Most listings and tries of one claim, since the settlements of the same exchange await their response."""
_UNREADABLE_FOR = timedelta(seconds=60)
_ABANDONED_FOR = timedelta(seconds=60)
"""Interval of further looks at an entity with an expired lease that no clock has ended."""
_FRESH = timedelta(seconds=2)
"""Grace in which the process that claimed an entity removes its index entry itself."""


class IndexedClaims(Generic[Record]):
    """The claims of one process in some shards, for owners with the same capabilities."""

    def __init__(
        self, context: BucketContext[Record], shards: Collection[str] | None, lease_out: LeaseOut
    ) -> None:
        self._context = context
        self._rules = context.rules
        self._lease_out = lease_out
        self._search: IndexSearch[Record] = IndexSearch(context, shards)
        self.may_find = True
        """Whether another claim may succeed at once."""

    async def claim(self, request: ClaimRequest, most: int) -> list[Snapshot[Record]]:
        """Lease at most so many entities, those of the oldest minutes first."""
        claimed: list[Snapshot[Record]] = []
        tried: set[str] = set()
        self.may_find = False
        for _ in range(_LOOKS):
            some = self._search.take(most - len(claimed), tried)
            if some:
                found, failure = _split_results(
                    await asyncio.gather(*[self._try(each, request) for each in some], return_exceptions=True)
                )
                claimed += found
                if failure is not None and not claimed:
                    raise failure
                # The claimed entities have to run; the next claim meets the failure again.
                if failure is not None or len(claimed) >= most:
                    break
            elif claimed or not await self._search.search(tried):
                break
        else:
            self.may_find = True
        self.may_find = self.may_find or bool(claimed)
        return claimed

    @property
    def is_behind(self) -> bool:
        """Whether there are objects that no claim has read yet."""
        return self._search.is_behind

    def next_after(self, now: datetime) -> datetime | None:
        """Return when the next of the seen entities becomes free."""
        return self._search.next_after(now)

    def note_settled(self, key: str, settled: Snapshot[Record]) -> None:
        """Skip a settled entity, unless it is free again."""
        if not self._is_waiting(settled.record):
            self._search.skipped.note(self._context.keys.path_of(key), settled.etag)

    def _is_waiting(self, record: Record) -> bool:
        entering = self._rules.entering
        return entering is not None and self._rules.state(record) == entering.source

    async def _try(self, candidate: Candidate, request: ClaimRequest) -> Snapshot[Record] | None:
        was_claimed = False
        path = self._context.keys.path_of(candidate.key)
        try:
            found = await self._context.objects.get(path)
            if found is None:
                self._drop(candidate)
                return None
            snapshot = self._context.writes.snapshot(candidate.key, found)
            was_claimed = candidate.is_hint and not self._is_waiting(snapshot.record)
            if not self._is_worth_it(candidate, snapshot, request):
                return None
            return await self._claim(candidate, snapshot, request)
        except Unreadable as error:
            self._search.skipped.add(candidate.line, self._context.now() + _UNREADABLE_FOR)
            self._context.log_unreadable(request.call, path, error)
            return None
        finally:
            self._search.finish(candidate, was_claimed_by_others=was_claimed)

    def _is_worth_it(self, candidate: Candidate, snapshot: Snapshot[Record], request: ClaimRequest) -> bool:
        """Whether an entity is claimable by an owner; if not, repair or skip its line."""
        context, record, now = self._context, snapshot.record, self._context.now()
        if not self._is_waiting(record):
            self._skip_other(candidate, snapshot, now)
            return False
        lease = self._rules.lease
        if lease is not None and lease.only and not request.is_able(self._rules, record):
            # The capabilities that an entity needs never change.
            self._search.skipped.add(candidate.line)
            self._skip_object(snapshot, candidate)
            return False
        if not context.is_claimable(record, context.moment()):
            polls = context.layout.polls
            assert polls is not None
            entry = context.keys.entry(polls.index, candidate.key, record)
            if candidate.is_hint and entry is not None and entry != candidate.line.key:
                # It was postponed.
                context.indexes.replace(candidate.key, record, candidate.line.key, candidate.line.etag)
            else:
                self._search.skipped.add(candidate.line, context.free_at(record))
            self._skip_object(snapshot, candidate, context.free_at(record))
            return False
        return request.fits(self._rules, record)

    def _skip_other(self, candidate: Candidate, snapshot: Snapshot[Record], now: datetime) -> None:
        """Skip an entity that is not free, and replace its stale entry by those that it should have.

        The owner of a fresh lease does that itself. If it has died since, its stale entry is still there, and
        this is how the lease gets its own entry.
        """
        context, indexes, record = self._context, self._context.indexes, snapshot.record
        key, line, skipped = candidate.key, candidate.line, self._search.skipped
        abandoned_at = context.abandoned_at(record)
        if not candidate.is_hint and abandoned_at is not None and abandoned_at <= now:
            # The sweep of its clock searches the index only, and should have found it by now.
            for entry in indexes.entries(record).values():
                indexes.write(key, entry, record)
            abandoned_at = now + _ABANDONED_FOR
        skipped.note(context.keys.path_of(key), snapshot.etag, abandoned_at, wakes=False)
        written_at = context.written_at(record)
        if not candidate.is_hint:
            return
        if candidate.listed_at - written_at > _FRESH or line.changed > written_at:
            indexes.replace(key, record, line.key, line.etag)
        else:
            skipped.note(line.key, line.etag, written_at + _FRESH, wakes=False)

    def _skip_object(
        self, snapshot: Snapshot[Record], candidate: Candidate, until: datetime | None = None
    ) -> None:
        """Skip the object of an entity that was read through the index."""
        self._search.skipped.note(self._context.keys.path_of(candidate.key), snapshot.etag, until)

    async def _claim(
        self, candidate: Candidate, snapshot: Snapshot[Record], request: ClaimRequest
    ) -> Snapshot[Record] | None:
        context, key, skipped = self._context, candidate.key, self._search.skipped
        if not candidate.is_hint and self._search.uses_index:
            await self._add_entry(key, snapshot.record)
        leased: Snapshot[Record] | None = await self._lease_out(key, snapshot, request)
        if leased is None:
            return None
        ends = context.abandoned_at(leased.record)
        skipped.note(context.keys.path_of(key), leased.etag, ends, wakes=False)
        if candidate.is_hint:
            skipped.add(candidate.line)
            context.indexes.remove_with_lease(key, candidate.line.key, candidate.line.etag)
        else:
            self._search.note_missing_entry(candidate)
        return leased

    async def _add_entry(self, key: str, record: Record) -> None:
        """Write the missing entry of a free entity before its claim, for the case that this process dies."""
        context, polls = self._context, self._context.layout.polls
        assert polls is not None
        if (entry := context.keys.entry(polls.index, key, record)) is not None:
            context.indexes.write(key, entry, record)
            await context.indexes.wait_written(key)

    def _drop(self, candidate: Candidate) -> None:
        if candidate.is_hint:
            self._context.indexes.remove(candidate.key, candidate.line.key, candidate.line.etag)


def _split_results(
    found: Sequence[Snapshot[Record] | BaseException | None],
) -> tuple[list[Snapshot[Record]], BaseException | None]:
    """Split the results of some tries into the claimed entities and the first failure."""
    failure = next((each for each in found if isinstance(each, BaseException)), None)
    return [each for each in found if isinstance(each, Snapshot)], failure
