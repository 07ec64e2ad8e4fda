"""Conditional writes: read an entity, and replace it only while it is what was read.

A conditional write whose answer is lost is not repeated blindly: what is there now is read. Its own body
means that it was done, the old one that it was not, anything else that another writer was faster.
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
    """What is to be written: a record, and the members of its object that no record has."""

    record: Record
    others: Mapping[str, Any]


Build = Callable[[Snapshot[Record]], Draft[Record] | None]
"""Drafts the next write; None, or an exception, where the change does not apply to what it is shown."""


class Changed(NamedTuple, Generic[Record]):
    """An entity before and after a change."""

    before: Snapshot[Record]
    after: Snapshot[Record]


class Unchanged(NamedTuple, Generic[Record]):
    """An entity to which a change does not apply; None where there is none."""

    found: Snapshot[Record] | None


class Exists(Exception, Generic[Record]):
    """There is an entity of this key already."""

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
        """Read an entity as it is now; raises Unreadable."""
        found = await self._objects.get(self._keys.path_of(key))
        return None if found is None else self.snapshot(key, found)

    def snapshot(self, key: str, found: Found) -> Snapshot[Record]:
        """Decode what was read as the entity of a key; raises Unreadable."""
        record, others = self._codec.decode(key, found.body)
        return Snapshot(record, found.etag, found.version, others)

    async def create(self, key: str, draft: Draft[Record]) -> Snapshot[Record]:
        """Add an entity; raises Exists with the one that has its key."""
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
        raise Away("the store does not say whether an object was created")

    async def change(
        self,
        key: str,
        build: Build[Record],
        known: Snapshot[Record] | None = None,
        *,
        is_mine: Callable[[Record, Record], bool] | None = None,
        once: bool = False,
    ) -> Changed[Record] | Unchanged[Record]:
        """Replace an entity by what `build` drafts, until that is done or does not apply any more.

        `known` is what it was last known as, which saves reading it. `is_mine` is shown a record that a write
        in doubt would have made, and one that was found; `once` is for whoever has just read what is known,
        and would rather have another entity than this one.
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
                # Before the entity is back for good: what would still be removed must not be missed later.
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
                    with suppress(ObjectError):  # Values that stay too long harm nobody.
                        await self.large.tag(record, tags)
                return self._done(key, before, Snapshot(record, written.etag, written.version, others))
            found = await self._objects.get(self._keys.path_of(key))
            if found is None:
                return Unchanged(None)
            now = self.snapshot(key, found)
            if self._was_doubted(key, found.body) or (
                key in self._doubts and is_mine is not None and is_mine(record, now.record)
            ):
                self._doubts.pop(key, None)
                return self._done(key, before, now)
            before, is_fresh = now, True
            if number:
                await self._pause(number)
        raise Away("an object is changed by others all the time")

    async def delete(self, key: str, before: Snapshot[Record]) -> bool:
        """Delete an entity that is still what was read, where the store can tell; whether it did."""
        if not await self._objects.delete(self._keys.path_of(key), before.etag):
            return False
        self._indexes.follow(key, before.record, None)
        return True

    def _done(self, key: str, before: Snapshot[Record], after: Snapshot[Record]) -> Changed[Record]:
        self._indexes.follow(key, before.record, after.record)
        return Changed(before, after)

    def _tags(self, record: Record) -> Mapping[str, str] | None:
        retires = self._retires
        state: Any = getattr(record, self._status)
        return {retires.tag: retires.value} if retires is not None and state in retires.states else None

    def _doubt(self, key: str, body: bytes) -> None:
        """Remember a body that may have been written, until it is known."""
        self._doubts.setdefault(key, set()).add(hashlib.sha256(body).digest())
        self._doubts.move_to_end(key)
        while len(self._doubts) > _DOUBTS:
            self._doubts.popitem(last=False)

    def _was_doubted(self, key: str, body: bytes) -> bool:
        return key in self._doubts and hashlib.sha256(body).digest() in self._doubts[key]

    async def _pause(self, number: int) -> None:
        longest = min(0.005 * 2**number, 0.25)
        await self._world.sleep(self._world.uniform(longest / 2, longest))
