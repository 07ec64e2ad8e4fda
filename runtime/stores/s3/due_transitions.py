"""Due transitions by an index, whose entries are ordered by the minute at which they are due."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Generic

from runtime.call.context import Call
from runtime.stores.contract import Record
from runtime.stores.s3.claims.scan_cursors import ScanCursors
from runtime.stores.s3.claims.skip_cache import SkipCache
from runtime.stores.s3.client.listings import ListedObject
from runtime.stores.s3.codec import Snapshot, Unreadable
from runtime.stores.s3.context import BucketContext, run_together, to_time
from runtime.stores.s3.keys import minute
from runtime.stores.semantics.clocks import applies_by_clock, due_at
from runtime.stores.semantics.edges import sources
from runtime.stores.semantics.rules import Clock, to_microseconds

_PAGE = 1000
_SLOW_S, _APART_LOOKS = 0.25, 60
"""After a slower listing of all shards, so many searches list shard by shard."""
Drive = Callable[[str, Snapshot[Record], Call], Awaitable[bool]]
"""Applies the due change to an entity; returns whether it did."""


class DueSearch(Generic[Record]):
    """The search of one process for the due transitions of one clock. Any number of processes may search."""

    def __init__(
        self, context: BucketContext[Record], clock: Clock, index: str, drive: Drive[Record]
    ) -> None:
        self._context = context
        self._clock = clock
        self._index = index
        self._drive = drive
        self._queue: deque[tuple[str | None, str | None]] = deque()
        """Listings still to do: a shard, or None for all of them, and the continuation token."""
        self._skipped = SkipCache()
        self._cursors = ScanCursors()
        self._apart_for = 0

    async def step(self, call: Call) -> int:
        """Apply the change to some due entities; return how many. After the last shard it begins anew."""
        if await self._context.is_clock_off(call):
            return 0
        if not self._queue and self._apart_for:
            self._apart_for -= 1
            self._queue_shards()
        elif not self._queue:
            self._queue.append((None, None))
        changed = 0
        while self._queue and not changed:
            changed = await self._page(call)
        return changed

    def _queue_shards(self) -> None:
        """Queue the listings of all shards, beginning with a random one."""
        shards = self._context.keys.shards
        # Spread the sweepers of many processes.
        first = int(self._context.world.uniform(0, len(shards) - 0.001))
        self._queue.extend((shard, None) for shard in (*shards[first:], *shards[:first]))

    async def _page(self, call: Call) -> int:
        shard, token = self._queue[0]
        context, now = self._context, self._context.now()
        prefix = context.keys.index_prefix(self._index, shard)
        cursor = self._cursors.begin(shard, now) if shard is not None and token is None else None
        began = context.world.monotonic()
        page = await context.objects.page(
            prefix, token=token, after=f"{prefix}{cursor}" if cursor else None, most=_PAGE
        )
        if shard is None and context.world.monotonic() - began > _SLOW_S:
            # The store skips many delete markers. Shards can be listed from a cursor.
            self._apart_for = _APART_LOOKS
        if shard is None and page.token is not None and len(context.keys.shards) > 1:
            self._queue.popleft()
            self._queue_shards()
            return 0
        due_since = context.latest_due(self._clock.due)
        latest = minute(due_since)
        is_over = page.token is None
        found: list[tuple[str, ListedObject]] = []
        for line in page.entries:
            parsed = context.keys.parse_entry(self._index, line.key)
            if parsed is None:
                continue
            if parsed[1] > latest:
                if shard is None:
                    continue  # The next shard may have earlier ones.
                is_over = True
                break
            if shard is not None:
                self._cursors.note_entry(shard, parsed[1])
            if not self._skipped.has(line, now):
                found.append((parsed[0], line))
        changed = sum(await run_together(found, lambda each: self._change(*each, now, call)))
        self._queue.popleft()
        if not is_over:
            self._queue.appendleft((shard, page.token))
        elif shard is not None:
            self._cursors.finish(shard, due_since)
        return changed

    async def _change(self, key: str, line: ListedObject, now: datetime, call: Call) -> bool:
        """Change an entity if it is due; otherwise repair its entry, or skip it until it is due."""
        context, rules, clock = self._context, self._context.rules, self._clock
        try:
            found = await context.writes.read(key)
        except Unreadable as error:
            context.log_unreadable(call, context.keys.path_of(key), error)
            return False
        if found is None:
            context.indexes.remove(key, line.key, line.etag)
            return False
        record = found.record
        states = rules.lifecycle.deletable if clock.change is None else sources(clock.change)
        if rules.state(record) not in states:
            context.indexes.replace(key, record, line.key, line.etag)
            return False
        at = due_at(rules, clock.due, record)
        due = None if at is None else to_time(at + to_microseconds(context.skew_s))
        if due is None or due >= now:
            entry = context.keys.entry(self._index, key, record)
            if entry is None or entry == line.key:
                self._skipped.add(line, due)
            else:
                # Its time has moved: replace the entry.
                context.indexes.replace(key, record, line.key, line.etag)
            return False
        return applies_by_clock(rules, clock, record) and await self._drive(key, found, call)


def find_due_index(context: BucketContext[Record], clock: Clock) -> str | None:
    """Return the index that covers all source states of a clock by its time; None where there is none."""
    states = context.lifecycle.deletable if clock.change is None else sources(clock.change)
    for name, index in context.keys.indexes.items():
        if index.at is not None and index.at == clock.due.at and states <= {*index.states}:
            return name
    return None
