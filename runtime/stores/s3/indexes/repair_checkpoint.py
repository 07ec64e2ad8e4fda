"""The checkpoint of a complete repair: older objects have all their index entries and need not be scanned.

It is an object with the time at which such a repair began, by the clock of the store, the time at which the
next one is due, and the last entries of the index. A worker that trusts it scans only objects that changed
since; an entity that has lost its entry later is found by the next repair.
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
"""Most delay of a listing after the modification time of an object."""
_JUMP = timedelta(seconds=5)
"""Change of an offset between clocks that means that one of them was set."""
_MISSED = 2
"""Missed repairs after which a checkpoint is stale."""
_LONGEST = timedelta(hours=1)
"""Age after which a checkpoint is stale, however rare repairs are."""
_WRITTEN_BY = timedelta(seconds=10)
"""Delay after which a missing entry counts as lost."""
_TRIES = 3
_WITNESSES = 256
_MOST_UNREAD = 100
"""Most unreadable objects of a repair that writes a checkpoint."""


class Checkpoint(NamedTuple):
    """The content of a checkpoint."""

    began: datetime
    next: datetime
    witnesses: tuple[str, ...]
    """The last entry of each shard of the index. It stays longest; where it is lost others are, too."""
    unread: frozenset[str] = frozenset()
    """Objects that the repair could not read, perhaps of a later release."""

    def is_fresh(self, now: datetime) -> bool:
        """Whether it is recent at a time of the store, and not of the future."""
        longest = min((1 + _MISSED) * (self.next - self.began), _LONGEST)
        return -_JUMP <= now - self.began <= longest

    def covers(self, line: ListedObject) -> bool:
        """Whether the repair has read the current version of an object."""
        return line.changed < self.began - _MARGIN and line.key not in self.unread

    def encode(self) -> bytes:
        """Encode the checkpoint."""
        return orjson.dumps({**self._asdict(), "unread": sorted(self.unread)})


def parse_checkpoint(body: bytes) -> Checkpoint | None:
    """Decode a checkpoint; None where the object is none."""
    try:
        members = orjson.loads(body)
        began, later = (datetime.fromisoformat(members[name]) for name in ("began", "next"))
        witnesses, unread = (tuple(map(str, members[name])) for name in ("witnesses", "unread"))
        _ = later - began, began - datetime.now(UTC)
    except (ValueError, TypeError, KeyError):
        return None
    return Checkpoint(began, later, witnesses, frozenset(unread))


def store_now(context: BucketContext[Any]) -> datetime:
    """Return the time by the store's clock, as far as its offset is known."""
    offset = context.objects.clock_offset_s
    return context.now() if offset is None else datetime.fromtimestamp(time.time() + offset, UTC)


class RepairPass:
    """One pass of a repair over all shards, and whether it is complete."""

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
        """Whether a write or removal of an entry failed since it began."""
        return self._failures != self._context.indexes.failures

    def note_response(self) -> None:
        """Note that the store has answered, so its time is known."""
        self._began = self._began or self._began_by_now()

    def note_entry(self, entry: str) -> None:
        """Note an entry that an entity has."""
        keys, polls = self._context.keys, self._context.layout.polls
        if polls and (parsed := keys.parse_entry(polls.index, entry)) is not None:
            part, at = keys.shard_of(parsed[0]), (parsed[1], entry)
            self._last[part] = max(at, self._last.get(part, at))

    async def write_checkpoint(self, every_s: float) -> None:
        """Write the checkpoint of a complete pass, unless there is one of a later pass."""
        objects, key = self._context.objects, self._context.keys.checkpoint
        now, began = store_now(self._context), self._began_by_now()
        is_whole = self.is_whole and not self.has_failed and len(self.unread) <= _MOST_UNREAD
        # A clock that was set meanwhile gives no order of events.
        if key is None or not is_whole or self._began is None or abs(began - self._began) > _JUMP:
            return
        last = sorted(self._last.values(), reverse=True)[:_WITNESSES]
        witnesses = tuple(entry for _, entry in last)
        checkpoint = Checkpoint(began, now + timedelta(seconds=every_s), witnesses, frozenset(self.unread))
        for _ in range(_TRIES):
            found = await objects.get(key)
            known = parse_checkpoint(found.body) if found else None
            # One of a future time was written by a wrong clock.
            if known is not None and began <= known.began <= now + _JUMP:
                return
            try:
                if found is None:
                    await objects.create(key, checkpoint.encode())
                else:
                    await objects.replace(key, checkpoint.encode(), found.etag)
            except NotMatched:
                continue
            return

    def _began_by_now(self) -> datetime:
        elapsed = self._context.world.monotonic() - self._since
        return store_now(self._context) - timedelta(seconds=elapsed)


class CheckpointReader:
    """The last checkpoint as a worker of some shards knows it."""

    def __init__(self, context: BucketContext[Any], parts: Collection[str]) -> None:
        self._context = context
        self._parts = frozenset(parts)
        self._checkpoint: Checkpoint | None = None
        self._witnesses: list[str] = []
        """Entries of its shards that were still there, the last one at the end."""
        self._is_lost = False

    async def refresh(self) -> bool:
        """Read the checkpoint, and check that its last entry is not lost; return whether it is a new one."""
        checkpoint = await self._read()
        is_new = checkpoint is not None and checkpoint != self._checkpoint
        self._checkpoint = checkpoint
        if checkpoint is not None and is_new:
            self._is_lost = False
            self._witnesses = [each for each in reversed(checkpoint.witnesses) if self._is_ours(each)]
        if checkpoint is not None and self._witnesses and not self._is_lost:
            await self._check_witness(self._witnesses[-1])
        return is_new

    def is_fresh(self) -> bool:
        """Whether all objects older than the checkpoint have their index entries."""
        if self._checkpoint is None or self._is_lost or self._context.indexes.is_failing:
            return False
        return self._checkpoint.is_fresh(store_now(self._context))

    def covers(self, line: ListedObject) -> bool:
        """Whether the repair has read the current version of an object."""
        return self._checkpoint is not None and self._checkpoint.covers(line)

    def note_missing_entry(self, line: ListedObject) -> None:
        """Note a claimable entity without an entry: if it is not just late, more may be lost."""
        if store_now(self._context) - line.changed > _WRITTEN_BY:
            self._is_lost = True

    async def _read(self) -> Checkpoint | None:
        if (key := self._context.keys.checkpoint) is None:
            return None
        try:
            found = await self._context.objects.get(key)
        except ObjectError:
            return None  # Without a checkpoint all objects are scanned.
        return parse_checkpoint(found.body) if found else None

    def _entry_key(self, entry: str) -> str | None:
        polls = self._context.layout.polls
        assert polls is not None
        parsed = self._context.keys.parse_entry(polls.index, entry)
        return parsed[0] if parsed else None

    def _is_ours(self, entry: str) -> bool:
        key = self._entry_key(entry)
        return key is not None and self._context.keys.shard_of(key) in self._parts

    async def _check_witness(self, entry: str) -> None:
        """Check that an entry is there, unless its entity does not have it any more."""
        context, key = self._context, self._entry_key(entry)
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
