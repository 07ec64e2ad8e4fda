"""Conditional writes: read an entity, and replace it only while it is what was read.

A conditional write with a lost response is not repeated blindly: the object is read. If it has the written
body the write succeeded, with the old one it failed, with any other one another writer was first.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Generic, NamedTuple

from runtime.model.lifecycles import Lifecycle
from runtime.stores.contract import Record
from runtime.stores.layouts.s3 import KeptInS3
from runtime.stores.s3.client.errors import Away, NotMatched, ObjectError, Unsure
from runtime.stores.s3.client.objects import Found, Objects
from runtime.stores.s3.codec import ObjectCodec, Snapshot
from runtime.stores.s3.indexes.index_writer import IndexWriter
from runtime.stores.s3.keys import Keys
from runtime.stores.s3.large_values import LargeValues
from runtime.world import World

_TRIES = 12
_DOUBTS = 4096


class Draft(NamedTuple, Generic[Record]):
    """The next write: a record, and the members of its object that are no fields of the record."""

    record: Record
    others: Mapping[str, Any]


Build = Callable[[Snapshot[Record]], Draft[Record] | None]
"""Drafts the next write; None, or an exception, where the change does not apply to the snapshot."""


class Changed(NamedTuple, Generic[Record]):
    """An entity before and after a change."""

    before: Snapshot[Record]
    after: Snapshot[Record]


class Unchanged(NamedTuple, Generic[Record]):
    """An entity to which a change does not apply; `found` is None where there is none."""

    found: Snapshot[Record] | None


class Exists(Exception, Generic[Record]):
    """An entity with this key exists."""

    def __init__(self, found: Snapshot[Record]) -> None:
        super().__init__()
        self.found = found


class ConditionalWrites(Generic[Record]):
    """The objects of one kind of entity."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        kept: KeptInS3,
        keys: Keys,
        objects: Objects,
        indexes: IndexWriter,
        world: World,
    ) -> None:
        self._status = lifecycle.status
        self._keys = keys
        self._objects = objects
        self._indexes = indexes
        self._world = world
        self._retires = kept.retires
        self.large: LargeValues[Record] = LargeValues(lifecycle, kept, keys, objects)
        self._codec: ObjectCodec[Record] = ObjectCodec(lifecycle, kept)
        self._doubts: OrderedDict[str, set[bytes]] = OrderedDict()

    async def read(self, key: str) -> Snapshot[Record] | None:
        """Read the current version of an entity; raises Unreadable."""
        found = await self._objects.get(self._keys.path_of(key))
        return None if found is None else self.snapshot(key, found)

    def snapshot(self, key: str, found: Found) -> Snapshot[Record]:
        """Decode an object as the entity of a key; raises Unreadable."""
        record, others = self._codec.decode(key, found.body)
        return Snapshot(record, found.etag, found.version, others)

    async def create(self, key: str, draft: Draft[Record]) -> Snapshot[Record]:
        """Create an entity; raises Exists with the one that has its key."""
        await self._indexes.room()
        record, others = draft
        body = self._codec.encode(record, others)
        where = self._keys.path_of(key)
        in_doubt = False
        for number in range(_TRIES):
            try:
                written = await self._objects.create(where, body, self._tags(record))
            except Unsure:
                in_doubt = True
            except NotMatched:
                pass
            else:
                made = Snapshot(record, written.etag, written.version, others)
                self._indexes.follow(key, None, record)
                return made
            found = await self._objects.get(where)
            if found is not None:
                if in_doubt and found.body == body:
                    self._indexes.follow(key, None, record)
                    return Snapshot(record, found.etag, found.version, others)
                raise Exists(self.snapshot(key, found))
            await self._pause(number)
        raise Away("the outcome of a creation is unknown")

    async def change(
        self,
        key: str,
        build: Build[Record],
        known: Snapshot[Record] | None = None,
        *,
        is_mine: Callable[[Record, Record], bool] | None = None,
        once: bool = False,
    ) -> Changed[Record] | Unchanged[Record]:
        """Replace an entity by the draft of `build`, with retries while the change applies.

        `known` is a cached snapshot, which saves a read. `is_mine` compares the record of a write in doubt
        with the one that was found. With `once` the snapshot was just read, and a lost race ends the attempt.
        """
        before = known
        is_fresh = once
        for number in range(_TRIES):
            if before is None:
                before, is_fresh = await self.read(key), True
                if before is None:
                    return Unchanged(None)
            try:
                draft = build(before)
            except Exception:
                if is_fresh:
                    raise
                draft = None
            if draft is None:
                if is_fresh:
                    return Unchanged(before)
                before = None
                continue
            record, others = draft
            if self.large.has_any(record):
                record = await self.large.put(record)
            await self._indexes.room()
            body, tags = self._codec.encode(record, others), self._tags(record)
            is_retagged = tags != self._tags(before.record)
            if is_retagged and not tags:
                # Untag the values first: their expiration must not outlive the return of the entity.
                await self.large.tag(record, tags)
            try:
                written = await self._objects.replace(self._keys.path_of(key), body, before.etag, tags)
            except NotMatched:
                if once and is_fresh and key not in self._doubts:
                    return Unchanged(before)
            except Unsure:
                self._doubt(key, body)
            else:
                self._doubts.pop(key, None)
                if is_retagged and tags:
                    with suppress(ObjectError):  # Values that stay too long do no harm.
                        await self.large.tag(record, tags)
                return self._finish(key, before, Snapshot(record, written.etag, written.version, others))
            found = await self._objects.get(self._keys.path_of(key))
            if found is None:
                return Unchanged(None)
            now = self.snapshot(key, found)
            if self._was_doubted(key, found.body) or (
                key in self._doubts and is_mine is not None and is_mine(record, now.record)
            ):
                self._doubts.pop(key, None)
                return self._finish(key, before, now)
            before, is_fresh = now, True
            if number:
                await self._pause(number)
        raise Away("too many concurrent changes of one object")

    async def delete(self, key: str, before: Snapshot[Record]) -> bool:
        """Delete an entity that is unchanged, where the store checks that; return whether it did."""
        if not await self._objects.delete(self._keys.path_of(key), before.etag):
            return False
        self._indexes.follow(key, before.record, None)
        return True

    def _finish(self, key: str, before: Snapshot[Record], after: Snapshot[Record]) -> Changed[Record]:
        self._indexes.follow(key, before.record, after.record)
        return Changed(before, after)

    def _tags(self, record: Record) -> Mapping[str, str] | None:
        retires = self._retires
        state: Any = getattr(record, self._status)
        return {retires.tag: retires.value} if retires is not None and state in retires.states else None

    def _doubt(self, key: str, body: bytes) -> None:
        """Remember the digest of a body that may have been written."""
        self._doubts.setdefault(key, set()).add(hashlib.sha256(body).digest())
        self._doubts.move_to_end(key)
        while len(self._doubts) > _DOUBTS:
            self._doubts.popitem(last=False)

    def _was_doubted(self, key: str, body: bytes) -> bool:
        return key in self._doubts and hashlib.sha256(body).digest() in self._doubts[key]

    async def _pause(self, number: int) -> None:
        longest = min(0.005 * 2**number, 0.25)
        await self._world.sleep(self._world.uniform(longest / 2, longest))
