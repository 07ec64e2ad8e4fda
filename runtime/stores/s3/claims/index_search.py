"""The search for what can be claimed: in the index, in the objects, or in one and then in the other.

What a listing has shown is used up before the next one is asked for, and every listing goes on where the last
one of its shard stopped: nothing waits for ever behind what cannot be claimed.
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
"""Parts that are listed together while nothing is found."""
_UNSEEN_A_ROUND = 32
"""Objects that a look beside the index reads at most, however many there are that it has never seen."""
_SCANS = 4
"""Listings of objects in a look beside the index."""
_BESIDE = 6
"""One in so many looks lists some objects, where a repair has lately looked at all of them."""
_APART_ROUNDS = 10
"""For so many rounds parts are listed one by one after all together were more than a page."""
_SLOW_S, _APART_ROUNDS_IF_SLOW = 0.25, 60
"""A listing of all parts that takes longer is not asked for again in so many rounds."""
_MISSES = 3
"""So many of a listing that were taken by others, one after the other, make it an old one."""


class Candidate(NamedTuple):
    """An entity that may be free, and the line of a listing that says so."""

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
        # Workers that start together shall not all look at the same place.
        self._first = int(context.world.uniform(0, len(self._shards) - 0.001)) if self._shards else 0
        self._found: deque[Candidate] = deque()
        self._trying: set[str] = set()
        self._serves_all = len(self._shards) == len(known) > 1
        self._most_scans = _SCANS if self._mode != LOG_SCAN else len(self._shards)
        self._apart_for = 0
        self._round: deque[tuple[str | None, bool]] = deque()
        """Parts that are still to be listed, None for all at once; and whether it is their objects."""
        self._is_beside_left = False
        """Whether it is still to be found out which objects are to be listed after the index."""
        self._besides = _BESIDE * self._first
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
        """Whether only what is later than the last repair is read in this round."""
        self.skipped = SkipCache()

    def take(self, most: int, tried: set[str]) -> list[Candidate]:
        """Some of what was listed, for the caller alone until it says that it is done with them."""
        taken: list[Candidate] = []
        while self._found and len(taken) < most:
            each = self._found.popleft()
            if each.key not in self._trying and each.key not in tried:
                self._trying.add(each.key)
                tried.add(each.key)
                taken.append(each)
        return taken

    def finish(self, candidate: Candidate, *, was_claimed_by_others: bool = False) -> None:
        """A candidate was tried."""
        self._trying.discard(candidate.key)
        self._misses = self._misses + 1 if was_claimed_by_others else 0
        if self._misses >= _MISSES and self._found:
            # What was listed some time ago is with others by now; a new list costs less than a look at each.
            self._misses, self._searched = 0, ()
            self._found.clear()

    def lacked_hint(self, candidate: Candidate) -> None:
        """One was free, and it was its object that told."""
        self._checkpoint.lacked_entry(candidate.line)

    async def look(self, tried: Collection[str]) -> bool:
        """Lists until there is something else to try; False when all there is has been listed once.

        The same `tried` stands for the same search, which is over after a round of its own.
        """
        asked = self._rounds
        async with self._turn:
            if self._found:
                return True
            if self._rounds != asked:
                return False  # Another one has just listed all of it.
            while True:
                while self._round or self._is_beside_left:
                    await (self._list_next() if self._round else self._look_beside())
                    if any(each.key not in tried for each in self._found):
                        return True
                # What was left of an earlier round says nothing of the parts that it began with.
                if self._searched is tried:
                    break
                self._begin_round()
                self._searched = tried
            self._rounds += 1
            return False

    @property
    def uses_index(self) -> bool:
        """Whether the index is looked at."""
        return self._mode != LOG_SCAN

    @property
    def is_behind(self) -> bool:
        """Whether a scan of all objects, which is all that there is, has not yet seen all of them."""
        return self._mode == LOG_SCAN and bool(self._unscanned)

    def _begin_round(self) -> None:
        count = len(self._shards)
        self._later, self._unseen, self._scans = None, 0, 0
        self._first = (self._first + 1) % count if count else 0
        if self._mode != LOG_SCAN:
            # A queue that is not long is seen with one listing of all parts.
            is_together = self._serves_all and not self._apart_for
            self._apart_for = max(0, self._apart_for - 1)
            self._round.extend((shard, False) for shard in ((None,) if is_together else self._order()))
        if self._mode == LOG_SCAN:
            self._scan_all()
        self._is_beside_left = self._mode == HYBRID
        if not self._unscanned:
            self._unscanned = set(self._shards)

    def _scan_all(self) -> None:
        self._round.extend((shard, True) for shard in ((None,) if self._serves_all else self._order()))

    async def _look_beside(self) -> None:
        """Finds out whether the index can be trusted. If so a page of objects now and then will do."""
        self._is_beside_left = False
        turn, self._besides = self._besides % _BESIDE, self._besides + 1
        if turn == 0 and await self._checkpoint.look():
            self._cursors = ScanCursors()  # What was repaired may be of any minute.
        self._covered = self._checkpoint.is_fresh()
        if not self._covered:
            self._scan_all()
        elif turn == 0 and self._shards:
            shard = self._shards[self._besides // _BESIDE % len(self._shards)]
            self._round.append((None if self._serves_all else shard, True))

    def _order(self) -> tuple[str, ...]:
        return self._shards[self._first :] + self._shards[: self._first]

    async def _list_next(self) -> None:
        begun = [self._round.popleft()]
        while self._round and len(begun) < self._width and self._round[0][1] == begun[0][1]:
            begun.append(self._round.popleft())
        before = len(self._found)
        await asyncio.gather(
            *[self._scan(shard) if is_scan else self._hints(shard) for shard, is_scan in begun]
        )
        self._width = 1 if len(self._found) > before else _WIDE

    async def _hints(self, shard: str | None) -> None:
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
            # The store steps over much that was removed. Parts can be listed from where something is left.
            self._apart_for = _APART_ROUNDS_IF_SLOW
        if shard is None and page.token is not None:
            # All workers would take what this page shows; each begins at another shard instead.
            self._apart_for = max(self._apart_for, _APART_ROUNDS)
            self._round.extendleft((each, False) for each in reversed(self._order()))
            return
        found: list[tuple[str, float, Candidate]] = []
        is_over = page.token is None
        for line in page.entries:
            hinted = keys.hinted(self._index, line.key)
            if hinted is None:
                continue
            key, at = hinted
            if at > latest:
                self._later = min(self._later or at, at)
                if shard is None:
                    continue  # The next shard may have earlier ones.
                is_over = True
                break
            if shard is not None:
                self._cursors.met(shard, at)
            if not self.skipped.has(line, now):
                found.append((at, self._context.world.uniform(0, 1), Candidate(key, line, True, now)))
        # The oldest minute first; within it by chance, or all workers would try the same one.
        self._found.extend(each for _, _, each in sorted(found, key=lambda each: each[:2]))
        if not is_over:
            self._tokens[shard] = page.token
            self._round.appendleft((shard, False))
        elif shard is not None:
            self._cursors.over(shard, now)

    def next_after(self, now: datetime) -> datetime | None:
        """When something that has been seen is going to be worth a look."""
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
