"""The search for claimable entities: in the index, in the objects, or in both.

The candidates of one listing are used up before the next one is requested, and every listing continues where
the last one of its shard stopped, so that no entity starves behind those that cannot be claimed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Generic, NamedTuple

from runtime.stores.contract import Record
from runtime.stores.s3.claims.scan_cursors import ScanCursors
from runtime.stores.s3.claims.skip_cache import SkipCache
from runtime.stores.s3.client.listings import ListedObject
from runtime.stores.s3.context import BucketContext
from runtime.stores.s3.indexes.repair_checkpoint import CheckpointReader
from runtime.stores.s3.keys import minute, moment_of

INDEX_ONLY, HYBRID, LOG_SCAN = "index-only", "hybrid", "log-scan"
_WIDE = 4
"""Shards that are listed concurrently while nothing is found."""
_UNSEEN_A_ROUND = 32
"""Most unknown objects that one round reads beside the index."""
_SCANS = 4
"""Listings of objects in one round beside the index."""
_OBJECT_TURN = 6
"""One in so many rounds lists some objects, while the checkpoint of the repair is fresh."""
_APART_ROUNDS = 10
"""Rounds that list shard by shard, after all shards together exceeded a page."""
_SLOW_S, _APART_ROUNDS_IF_SLOW = 0.25, 60
"""After a slower listing of all shards, so many rounds list shard by shard."""
_MISSES = 3
"""After so many consecutive candidates that other owners have claimed, a listing is stale."""


class Candidate(NamedTuple):
    """An entity that may be free, and the line of a listing that hints at it."""

    key: str
    line: ListedObject
    is_hint: bool
    """Whether the line is of the index, not of the entity itself."""
    listed_at: datetime


class IndexSearch(Generic[Record]):
    """The search of one process, in some shards or in all of them."""

    def __init__(self, context: BucketContext[Record], shards: Collection[str] | None) -> None:
        polls = context.layout.polls
        assert polls is not None
        values: Mapping[str, Any] = context.values
        self._context = context
        self._index = polls.index
        self._mode = str(values[polls.mode])
        self._page, self._scan_page = int(values[polls.page]), int(values[polls.scan_page])
        known = context.keys.shards
        self._shards = tuple(shard for shard in known if shards is None or shard in shards)
        # Start at a random shard, so that workers that start together do not contend for the same entities.
        self._first = int(context.world.uniform(0, len(self._shards) - 0.001)) if self._shards else 0
        self._found: deque[Candidate] = deque()
        self._trying: set[str] = set()
        self._serves_all = len(self._shards) == len(known) > 1
        self._most_scans = _SCANS if self._mode != LOG_SCAN else len(self._shards)
        self._apart_for = 0
        self._round: deque[tuple[str | None, bool]] = deque()
        """Shards still to be listed, None for all at once; and whether it is their objects."""
        self._must_plan_scan = False
        """Whether the objects to list after the index are still to be chosen."""
        self._object_turns = _OBJECT_TURN * self._first
        self._tokens: dict[str | None, str | None] = {}
        self._scanned: dict[str | None, str | None] = {}
        self._unseen = self._scans = 0
        self._searched: Collection[str] = ()
        self._unscanned: set[str] = set(self._shards)
        self._misses = 0
        self._rounds = 0
        self._later: str | None = None
        self._turn = asyncio.Lock()
        self._width = 1
        self._cursors = ScanCursors()
        self._checkpoint = CheckpointReader(context, self._shards)
        self._covered = False
        """Whether this round reads only objects that changed after the checkpoint."""
        self.skipped = SkipCache()

    def take(self, most: int, tried: set[str]) -> list[Candidate]:
        """Reserve some candidates for the caller until it calls `finish` for each."""
        reserved: list[Candidate] = []
        while self._found and len(reserved) < most:
            each = self._found.popleft()
            if each.key not in self._trying and each.key not in tried:
                self._trying.add(each.key)
                tried.add(each.key)
                reserved.append(each)
        return reserved

    def finish(self, candidate: Candidate, *, was_claimed_by_others: bool = False) -> None:
        """Release a candidate after its try; too many misses in a row discard the listing."""
        self._trying.discard(candidate.key)
        self._misses = self._misses + 1 if was_claimed_by_others else 0
        if self._misses >= _MISSES and self._found:
            # The listing is stale: a new one costs less than a read of each candidate.
            self._misses, self._searched = 0, ()
            self._found.clear()

    def note_missing_entry(self, candidate: Candidate) -> None:
        """Note a free entity that had no index entry and was found by its object."""
        self._checkpoint.note_missing_entry(candidate.line)

    async def search(self, tried: Collection[str]) -> bool:
        """List until there is an untried candidate; False after a full round without one.

        The same `tried` identifies the same search, which ends after one round of its own.
        """
        round_before = self._rounds
        async with self._turn:
            if self._found:
                return True
            if self._rounds != round_before:
                return False  # A concurrent search has just completed the round.
            while True:
                while self._round or self._must_plan_scan:
                    await (self._list_next() if self._round else self._plan_object_scan())
                    if any(each.key not in tried for each in self._found):
                        return True
                # The rest of an earlier round does not cover the shards that it began with.
                if self._searched is tried:
                    break
                self._begin_round()
                self._searched = tried
            self._rounds += 1
            return False

    @property
    def uses_index(self) -> bool:
        """Whether the index is listed."""
        return self._mode != LOG_SCAN

    @property
    def is_behind(self) -> bool:
        """Whether the scan of a search without an index has not yet covered all objects."""
        return self._mode == LOG_SCAN and bool(self._unscanned)

    def _begin_round(self) -> None:
        count = len(self._shards)
        self._later, self._unseen, self._scans = None, 0, 0
        self._first = (self._first + 1) % count if count else 0
        if self._mode != LOG_SCAN:
            # One listing of all shards covers a short queue.
            is_together = self._serves_all and not self._apart_for
            self._apart_for = max(0, self._apart_for - 1)
            self._round.extend((shard, False) for shard in ((None,) if is_together else self._order()))
        if self._mode == LOG_SCAN:
            self._scan_all()
        self._must_plan_scan = self._mode == HYBRID
        if not self._unscanned:
            self._unscanned = set(self._shards)

    def _scan_all(self) -> None:
        self._round.extend((shard, True) for shard in ((None,) if self._serves_all else self._order()))

    async def _plan_object_scan(self) -> None:
        """Plan the scan beside the index: all objects, or a page now and then while the index is reliable."""
        self._must_plan_scan = False
        turn, self._object_turns = self._object_turns % _OBJECT_TURN, self._object_turns + 1
        if turn == 0 and await self._checkpoint.refresh():
            self._cursors = ScanCursors()  # Repaired entries may be of any minute.
        self._covered = self._checkpoint.is_fresh()
        if not self._covered:
            self._scan_all()
        elif turn == 0 and self._shards:
            shard = self._shards[self._object_turns // _OBJECT_TURN % len(self._shards)]
            self._round.append((None if self._serves_all else shard, True))

    def _order(self) -> tuple[str, ...]:
        return self._shards[self._first :] + self._shards[: self._first]

    async def _list_next(self) -> None:
        begun = [self._round.popleft()]
        while self._round and len(begun) < self._width and self._round[0][1] == begun[0][1]:
            begun.append(self._round.popleft())
        before = len(self._found)
        await asyncio.gather(
            *[self._scan(shard) if is_scan else self._list_index(shard) for shard, is_scan in begun]
        )
        self._width = 1 if len(self._found) > before else _WIDE

    async def _list_index(self, shard: str | None) -> None:
        keys, now = self._context.keys, self._context.now()
        latest = minute(now)
        prefix = keys.index_prefix(self._index, shard)
        token = self._tokens.pop(shard, None)
        cursor = self._cursors.begin(shard, now) if shard is not None and token is None else None
        began = self._context.world.monotonic()
        page = await self._context.objects.page(
            prefix, token=token, after=f"{prefix}{cursor}" if cursor else None, most=self._page
        )
        if shard is None and self._context.world.monotonic() - began > _SLOW_S:
            # The store skips many delete markers. Shards can be listed from a cursor.
            self._apart_for = _APART_ROUNDS_IF_SLOW
        if shard is None and page.token is not None:
            # All workers would contend for this page; each begins at another shard instead.
            self._apart_for = max(self._apart_for, _APART_ROUNDS)
            self._round.extendleft((each, False) for each in reversed(self._order()))
            return
        found: list[tuple[str, float, Candidate]] = []
        is_over = page.token is None
        for line in page.entries:
            parsed = keys.parse_entry(self._index, line.key)
            if parsed is None:
                continue
            key, at = parsed
            if at > latest:
                self._later = min(self._later or at, at)
                if shard is None:
                    continue  # The next shard may have earlier ones.
                is_over = True
                break
            if shard is not None:
                self._cursors.note_entry(shard, at)
            if not self.skipped.has(line, now):
                found.append((at, self._context.world.uniform(0, 1), Candidate(key, line, True, now)))
        # The oldest minute first; within it at random, so that workers do not contend for the same one.
        self._found.extend(each for _, _, each in sorted(found, key=lambda each: each[:2]))
        if not is_over:
            self._tokens[shard] = page.token
            self._round.appendleft((shard, False))
        elif shard is not None:
            self._cursors.finish(shard, now)

    def next_after(self, now: datetime) -> datetime | None:
        """Return when the next of the seen entities may become claimable."""
        times = [self.skipped.next_after(now), moment_of(self._later) if self._later else None]
        return min((each for each in times if each is not None and each > now), default=None)

    async def _scan(self, shard: str | None) -> None:
        keys, now = self._context.keys, self._context.now()
        if self._mode != LOG_SCAN and self._unseen >= _UNSEEN_A_ROUND:
            return
        after = self._scanned.get(shard)
        page = await self._context.objects.page(keys.prefix(shard), after=after, most=self._scan_page)
        for line in page.entries:
            key = keys.key_of(line.key)
            is_covered = self._covered and self._checkpoint.covers(line)
            if key is not None and not is_covered and not self.skipped.has(line, now):
                if self._mode != LOG_SCAN and self._unseen >= _UNSEEN_A_ROUND:
                    return
                self._unseen += 1
                self._found.append(Candidate(key, line, False, now))
            self._scanned[shard] = line.key
        self._scans += 1
        if page.token is None:
            self._scanned[shard] = None
            self._unscanned -= {*self._shards} if shard is None else {shard}
        elif shard is None and not self._covered and self._scans < self._most_scans:
            self._round.appendleft((None, True))
