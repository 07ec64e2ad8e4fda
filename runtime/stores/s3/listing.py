"""Looks at many entities: listings, counts, and what an entity has been."""

from __future__ import annotations

import heapq
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from operator import attrgetter
from typing import Generic, NamedTuple

from runtime.stores.object_store import FoundPage, Sizes, VersionOf
from runtime.stores.s3.client.objects import Entry, Version
from runtime.stores.s3.entities import AT_ONCE, Entities, together
from runtime.stores.s3.rows import Unreadable
from runtime.stores.store import Record, Size

_PAGE = 1000
_REMEMBERED = 5000
_LEAST_AT_ONCE = 4
"""Objects of a part that are read together while others are, too."""


class _Looked(NamedTuple, Generic[Record]):
    """What an object was found to be: an entity, nothing that can be read as one, or gone."""

    line: Entry
    record: Record | None
    is_unreadable: bool


class Listing(Generic[Record]):
    """The entities of one kind, as somebody who watches sees them. What was read is not read again."""

    def __init__(self, entities: Entities[Record]) -> None:
        self._entities = entities
        self._at_once = max(AT_ONCE // len(entities.keys.shards), _LEAST_AT_ONCE)
        self._read: OrderedDict[str, tuple[str, Record | None]] = OrderedDict()

    async def find(
        self,
        states: Collection[int],
        equal: Mapping[str, object],
        after: tuple[datetime, str] | None,
        size: int,
    ) -> FoundPage[Record]:
        """A page, what changed last first, and what was met that cannot be read."""
        kept, changes = self._entities.kept, self._entities.changes
        if unknown := sorted(equal.keys() - kept.shape.types.keys()):
            raise ValueError(f"a listing cannot be narrowed by {', '.join(unknown)}")
        part = str(equal[kept.shard.field]) if kept.shard and kept.shard.field in equal else None
        order = self._order

        def is_wanted(record: Record) -> bool:
            return (
                (not states or changes.state(record) in states)
                and all(getattr(record, name) == value for name, value in equal.items())
                and (after is None or order(record) < after)
            )

        lines = await self._lines(part)
        # An object is written at the time that it says, or a little later: the last ones written come first.
        lines.sort(key=lambda line: line.changed, reverse=True)
        found: list[Record] = []
        unreadable: list[tuple[datetime, str]] = []
        step = min(max(2 * size, 32), _PAGE)
        for start in range(0, len(lines), step):
            looked = await together(lines[start : start + step], self._look)
            wanted = [each.record for each in looked if each.record is not None and is_wanted(each.record)]
            unreadable += [
                (each.line.changed, self._entities.keys.named(each.line.key) or "")
                for each in looked
                if each.is_unreadable and (after is None or each.line.changed < after[0])
            ]
            found = heapq.nlargest(size, (*found, *wanted), key=order)
            if (
                len(found) >= size > 0
                and start + step < len(lines)
                and self._is_later(found, size, lines[start + step])
            ):
                break
        return FoundPage(found, unreadable)

    async def oldest_waiting(self, size: int) -> list[Record]:
        """The first that wait for a lease in each part, as far as the index says."""
        entities, changes, now = self._entities, self._entities.changes, self._entities.changes.now()
        polls = entities.kept.polls
        assert polls is not None, f"nobody polls for a {entities.lifecycle.entity}"
        index, parts = polls.index, entities.keys.shards

        async def keys_of(part: str) -> list[str]:
            prefix = entities.keys.index_prefix(index, part)
            page = await entities.objects.page(prefix, most=-(-size // len(parts)))
            found = [entities.keys.hinted(index, line.key) for line in page.entries]
            return [hinted[0] for hinted in found if hinted is not None]

        async def read(key: str) -> Record | None:
            try:
                found = await entities.guarded.read(key)
            except Unreadable:
                return None
            return found.record if found is not None and changes.is_free(found.record, now) else None

        keys = [key for some in await together(parts, keys_of) for key in some]
        return [record for record in await together(keys, read) if record is not None]

    async def page(
        self, states: Collection[int], offset: int, size: int, *, newest_first: bool
    ) -> tuple[list[Record], bool]:
        """A part of the listing by place, and whether there is more."""
        most = offset + size + 1
        if newest_first:
            found = (await self.find(states, {}, None, most)).records
        else:
            found = await self._oldest(states, most)
        return found[offset : offset + size], len(found) == most

    async def _oldest(self, states: Collection[int], most: int) -> list[Record]:
        """What changed first. That can be any of them, so each is read, and few are kept."""
        changes, order = self._entities.changes, self._order

        async def of_part(part: str) -> list[Record]:
            found: list[Record] = []
            async for lines in self._pages(part):
                looked = await together(lines, self._look, at_once=self._at_once)
                records = [each.record for each in looked if each.record is not None]
                wanted = [each for each in records if not states or changes.state(each) in states]
                found = heapq.nsmallest(most, (*found, *wanted), key=order)
            return found

        parts = await together(self._entities.keys.shards, of_part)
        return heapq.nsmallest(most, (each for found in parts for each in found), key=order)

    async def versions(self, key: str) -> list[VersionOf[Record]]:
        """All that an entity has been, oldest first."""
        entities = self._entities
        where = entities.keys.of(key)
        known = [each async for each in entities.objects.versions(where, most=_PAGE)]

        async def one(each: Version) -> VersionOf[Record]:
            found = await entities.objects.get(where, each.version)
            record = None
            if found is not None:
                with suppress(Unreadable):
                    record = entities.guarded.snapshot(key, found).record
            return VersionOf(record, each.version, each.changed, each.etag)

        return list(await together(reversed(known), one))

    async def sizes(self) -> Sizes:
        """How many there are by part and state, and how many objects cannot be read."""
        entities = self._entities
        now = entities.changes.now()
        sizes: dict[tuple[str, int], Size] = {}
        unreadable: Counter[str] = Counter()

        async def of_part(part: str) -> None:
            async for lines in self._pages(part):
                for each in await together(lines, self._look, at_once=self._at_once):
                    unreadable[part] += each.is_unreadable
                    if (record := each.record) is not None:
                        place = part, entities.changes.state(record)
                        count, oldest = sizes.get(place, Size(0, 0.0))
                        age = max(0.0, (now - self._order(record)[0]).total_seconds())
                        sizes[place] = Size(count + 1, max(oldest, age))

        await together(entities.keys.shards, of_part)
        return Sizes(sizes, dict(unreadable))

    async def _lines(self, part: str | None) -> list[Entry]:
        """What a listing shows of one part, or of all of them."""
        keys = self._entities.keys
        parts = [each for each in keys.shards if part in (None, each)]
        return [line for lines in await together(parts, self._lines_of) for line in lines]

    async def _lines_of(self, part: str) -> list[Entry]:
        return [line async for lines in self._pages(part) for line in lines]

    async def _pages(self, part: str) -> AsyncIterator[Sequence[Entry]]:
        prefix = self._entities.keys.prefix(part)
        token: str | None = None
        while True:
            page = await self._entities.objects.page(prefix, token=token, most=_PAGE)
            yield page.entries
            if (token := page.token) is None:
                return

    async def _look(self, line: Entry) -> _Looked[Record]:
        etag, record = self._read.get(line.key, ("", None))
        key = self._entities.keys.named(line.key)
        if key is None:
            return _Looked(line, None, False)
        if etag == line.etag:
            return _Looked(line, record, record is None)
        found = await self._entities.objects.get(line.key)
        if found is None:
            return _Looked(line, None, False)
        try:
            record = self._entities.guarded.snapshot(key, found).record
        except Unreadable:
            record = None
        self._read[line.key] = (found.etag, record)
        while len(self._read) > _REMEMBERED:
            self._read.popitem(last=False)
        return _Looked(line, record, record is None)

    def _order(self, record: Record) -> tuple[datetime, str]:
        """What changed last, and then by key."""
        lifecycle = self._entities.lifecycle
        by = self._entities.changes.written_at(record)
        return by, str(attrgetter(lifecycle.key)(record))

    def _is_later(self, found: list[Record], size: int, line: Entry) -> bool:
        """Whether the last of a page changed after anything that has not been read yet."""
        last = sorted((self._order(each)[0] for each in found), reverse=True)[size - 1]
        return (last - line.changed).total_seconds() > 1 + self._entities.changes.skew_s
