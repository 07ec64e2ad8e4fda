"""The mark of a repair that was whole: what is older has all its hints, so nobody need look at it.

It is an object that says when such a repair began, by the clock of the store, when the next one is due, and
which entries of the index were the last ones. What is written later is later than the mark. So whoever trusts
the mark need only look at what has changed since; what has lost its hint later is found by the next repair.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import orjson

from runtime.stores.s3.client.errors import NotMatched, ObjectError
from runtime.stores.s3.client.listings import ListedObject
from runtime.stores.s3.codec import Unreadable
from runtime.stores.s3.context import BucketContext

_MARGIN = timedelta(seconds=60)
"""Listings may lack an object for so long after the time that the store has written beside it."""
_JUMP = timedelta(seconds=5)
"""Clocks that differ by so much more than before have been set."""
_MISSED = 2
"""So many further repairs may be missing before a mark is stale."""
_LONGEST = timedelta(hours=1)
"""However rarely there are repairs, a mark is stale after that."""
_WRITTEN_BY = timedelta(seconds=10)
"""After so long an entry is not late any more, but lost."""
_TRIES = 3
_WITNESSES = 256
_MOST_UNREAD = 100
"""Where more objects than that cannot be read there is no mark."""


class Checkpoint(NamedTuple):
    """What a mark says."""

    began: datetime
    next: datetime
    witnesses: tuple[str, ...]
    """The last entry of each part of the index. It stays longest; where it is lost others are, too."""
    unread: frozenset[str] = frozenset()
    """Objects that the repair could not read, perhaps because they are of a later release."""

    def is_fresh(self, now: datetime) -> bool:
        """Whether it can be trusted at a time of the store. A time before it is none that can be."""
        longest = min((1 + _MISSED) * (self.next - self.began), _LONGEST)
        return -_JUMP <= now - self.began <= longest

    def covers(self, line: ListedObject) -> bool:
        """Whether an object was looked at as it is."""
        return line.changed < self.began - _MARGIN and line.key not in self.unread

    def body(self) -> bytes:
        """The object."""
        return orjson.dumps({**self._asdict(), "unread": sorted(self.unread)})


def parse_checkpoint(body: bytes) -> Checkpoint | None:
    """What an object says; None where it is no mark."""
    try:
        told = orjson.loads(body)
        began, later = (datetime.fromisoformat(told[name]) for name in ("began", "next"))
        witnesses, unread = (tuple(map(str, told[name])) for name in ("witnesses", "unread"))
        _ = later - began, began - datetime.now(UTC)
    except (ValueError, TypeError, KeyError):
        return None
    return Checkpoint(began, later, witnesses, frozenset(unread))


def store_now(context: BucketContext[Any]) -> datetime:
    """The time at the store, as far as it is known."""
    offset = context.objects.clock_offset_s
    return context.now() if offset is None else datetime.fromtimestamp(time.time() + offset, UTC)


class RepairPass:
    """A repair from its beginning on, and whether it leaves everything as it should be."""

    def __init__(self, context: BucketContext[Any]) -> None:
        self._context = context
        self._since = context.world.monotonic()
        self._failures = context.indexes.failures
        self._began: datetime | None = None
        self._last: dict[str, tuple[str, str]] = {}
        self.unread: set[str] = set()
        self.is_whole = True

    @property
    def has_failed(self) -> bool:
        """Whether this process could not write or remove an entry since it began."""
        return self._failures != self._context.indexes.failures

    def heard(self) -> None:
        """The store has answered, so its time is known."""
        self._began = self._began or self._began_by_now()

    def met(self, entry: str) -> None:
        """Something has this entry."""
        keys, polls = self._context.keys, self._context.layout.polls
        if polls and (hinted := keys.hinted(polls.index, entry)) is not None:
            part, at = keys.shard_of(hinted[0]), (hinted[1], entry)
            self._last[part] = max(at, self._last.get(part, at))

    async def write_checkpoint(self, every_s: float) -> None:
        """Tells others of it, unless there is a mark of a later one; not if something of it went wrong."""
        objects, key = self._context.objects, self._context.keys.checkpoint
        now, began = store_now(self._context), self._began_by_now()
        is_whole = self.is_whole and not self.has_failed and len(self.unread) <= _MOST_UNREAD
        # Times of a clock that was set meanwhile say nothing about what came first.
        if key is None or not is_whole or self._began is None or abs(began - self._began) > _JUMP:
            return
        last = sorted(self._last.values(), reverse=True)[:_WITNESSES]
        witnesses = tuple(entry for _, entry in last)
        mark = Checkpoint(began, now + timedelta(seconds=every_s), witnesses, frozenset(self.unread))
        for _ in range(_TRIES):
            found = await objects.get(key)
            known = parse_checkpoint(found.body) if found else None
            # One of a time that is still to come was left by a clock that was wrong.
            if known is not None and began <= known.began <= now + _JUMP:
                return
            try:
                if found is None:
                    await objects.create(key, mark.body())
                else:
                    await objects.replace(key, mark.body(), found.etag)
            except NotMatched:
                continue
            return

    def _began_by_now(self) -> datetime:
        elapsed = self._context.world.monotonic() - self._since
        return store_now(self._context) - timedelta(seconds=elapsed)


class CheckpointReader:
    """What a worker that serves some parts knows of the last mark."""

    def __init__(self, context: BucketContext[Any], parts: Collection[str]) -> None:
        self._context = context
        self._parts = frozenset(parts)
        self._checkpoint: Checkpoint | None = None
        self._witnesses: list[str] = []
        """Entries of its parts that have not been missed yet, the last one at the end."""
        self._is_lost = False

    async def look(self) -> bool:
        """Reads the mark, and asks whether the index has lost something since; True for another mark."""
        mark = await self._read()
        is_other = mark is not None and mark != self._checkpoint
        self._checkpoint = mark
        if mark is not None and is_other:
            self._is_lost = False
            self._witnesses = [each for each in reversed(mark.witnesses) if self._is_ours(each)]
        if mark is not None and self._witnesses and not self._is_lost:
            await self._ask(self._witnesses[-1])
        return is_other

    def is_fresh(self) -> bool:
        """Whether what is older than the mark has its hints."""
        if self._checkpoint is None or self._is_lost or self._context.indexes.is_failing:
            return False
        return self._checkpoint.is_fresh(store_now(self._context))

    def covers(self, line: ListedObject) -> bool:
        """Whether the repair has looked at an object as it is."""
        return self._checkpoint is not None and self._checkpoint.covers(line)

    def lacked_entry(self, line: ListedObject) -> None:
        """Something was found that no entry hinted at. There may be more of that kind."""
        if store_now(self._context) - line.changed > _WRITTEN_BY:
            self._is_lost = True

    async def _read(self) -> Checkpoint | None:
        if (key := self._context.keys.checkpoint) is None:
            return None
        try:
            found = await self._context.objects.get(key)
        except ObjectError:
            return None  # Who knows of no mark looks at everything.
        return parse_checkpoint(found.body) if found else None

    def _hinted(self, entry: str) -> str | None:
        polls = self._context.layout.polls
        assert polls is not None
        hinted = self._context.keys.hinted(polls.index, entry)
        return hinted[0] if hinted else None

    def _is_ours(self, entry: str) -> bool:
        key = self._hinted(entry)
        return key is not None and self._context.keys.shard_of(key) in self._parts

    async def _ask(self, entry: str) -> None:
        """Whether an entry is there, or else its entity is one that has it no more."""
        context, key = self._context, self._hinted(entry)
        assert key is not None
        try:
            if await context.objects.get(entry) is not None:
                return
            found = await context.writes.read(key)
        except (ObjectError, Unreadable):
            return
        if found is not None and entry in context.indexes.entries(found.record).values():
            self._is_lost = True
        else:
            self._witnesses.pop()
