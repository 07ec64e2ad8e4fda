"""Listings of entities: pages, counts, and what an entity has been. What was read is not read again."""

from __future__ import annotations

import heapq
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Generic, NamedTuple

from runtime.stores.bucket_store import BucketPage, ShardSize, Sizes, VersionOf
from runtime.stores.contract import Cursor, Record
from runtime.stores.s3.client.listings import ListedObject
from runtime.stores.s3.client.objects import Version
from runtime.stores.s3.codec import Snapshot, Unreadable
from runtime.stores.s3.context import AT_ONCE, BucketContext, run_together, to_time
from runtime.stores.semantics.leases import equals
from runtime.stores.semantics.rules import to_moment

_PAGE = 1000
_REMEMBERED = 5000
_LEAST_AT_ONCE = 4
"""Objects of a shard that are read together while others are, too."""
BucketPlace = tuple[int, str]
"""The place of an entity in a listing: its time, negative where the newest come first, and its key."""


class Query(NamedTuple):
    """What a page is to have; times are moments."""

    states: Collection[int]
    equal: Mapping[str, object]
    since: int | None
    until: int | None
    after: Cursor | None
    newest_first: bool


class _Seen(NamedTuple, Generic[Record]):
    """What an object was found to be: an entity, nothing that can be read as one, or gone."""

    line: ListedObject
    key: str
    found: Snapshot[Record] | None
    is_unreadable: bool


class BucketListing(Generic[Record]):
    """The entities of one kind."""

    def __init__(self, context: BucketContext[Record]) -> None:
        self._context = context
        self._rules = context.rules
        self._at_once = max(AT_ONCE // len(context.keys.shards), _LEAST_AT_ONCE)
        self._cache: OrderedDict[str, tuple[str, Snapshot[Record] | None]] = OrderedDict()

    # The cache.

    def note(self, path: str, snapshot: Snapshot[Record]) -> None:
        """Replace what is known of an object, if anything is or there is room."""
        if path in self._cache or len(self._cache) < _REMEMBERED:
            self._cache[path] = (snapshot.etag, snapshot)

    def forget(self, path: str) -> None:
        """Forget an object that is gone."""
        self._cache.pop(path, None)

    # Pages.

    async def read_all(self) -> list[tuple[str, Snapshot[Record]]]:
        """Read all entities, in the order of their keys."""
        found = await run_together(self._context.keys.shards, self._read_shard)
        return sorted((each for some in found for each in some), key=lambda each: each[0])

    async def _read_shard(self, shard: str) -> list[tuple[str, Snapshot[Record]]]:
        found: list[tuple[str, Snapshot[Record]]] = []
        async for lines in self._pages(shard):
            seen = await run_together(lines, self._look, at_once=self._at_once)
            found += [(each.key, each.found) for each in seen if each.found is not None]
        return found

    async def find(
        self, query: Query, offset: int, size: int, is_gone: Callable[[Snapshot[Record]], bool]
    ) -> BucketPage[Record]:
        """Return a page, and what was met that cannot be read; `is_gone` are those that are forgotten."""
        context, wanted = self._context, offset + size + 1
        shard = context.layout.shard
        named = str(query.equal[shard.field]) if shard and shard.field in query.equal else None
        lines = await self._lines(named)
        # An object is written at the time that it says, or a little later: the last ones written come first.
        lines.sort(key=lambda line: line.changed, reverse=True)
        found: list[tuple[BucketPlace, Record]] = []
        unreadable: list[tuple[datetime, str]] = []
        step = min(max(2 * wanted, 32), _PAGE)
        for start in range(0, len(lines), step):
            seen = await run_together(lines[start : start + step], self._look)
            records = [each.found.record for each in seen if each.found and not is_gone(each.found)]
            places = [(self.place(each, newest_first=query.newest_first), each) for each in records]
            fitting = [each for each in places if self._is_wanted(*each, query)]
            limit = None if query.after is None else to_time(query.after.at)
            unreadable += [
                (each.line.changed, each.key)
                for each in seen
                if each.is_unreadable and (limit is None or each.line.changed < limit)
            ]
            found = heapq.nsmallest(wanted, (*found, *fitting), key=lambda each: each[0])
            rest = lines[start + step :]
            if len(found) == wanted and rest and self._is_complete(found, query, rest[0]):
                break
        records = [record for _, record in found[offset : offset + size]]
        last = found[offset + size - 1][0] if len(found) == wanted and size else None
        page = BucketPage(records, last and Cursor(abs(last[0]), last[1]))
        page.unreadable = unreadable
        return page

    def _is_wanted(self, place: BucketPlace, record: Record, query: Query) -> bool:
        at = abs(place[0])
        if query.after is not None:
            begin = -query.after.at if query.newest_first else query.after.at
            if place <= (begin, query.after.key):
                return False
        if query.states and self._rules.state(record) not in query.states:
            return False
        if (query.since is not None and at < query.since) or (query.until is not None and at >= query.until):
            return False
        return equals(record, query.equal)

    def _is_complete(self, found: list[tuple[BucketPlace, Record]], query: Query, line: ListedObject) -> bool:
        """Whether the last of a page changed after everything that has not been read yet."""
        by = self._rules.lifecycle.listed_by
        if not query.newest_first or by not in self._rules.stamps:
            return False
        last = to_time(abs(found[-1][0][0]))
        return (last - line.changed).total_seconds() > 1 + self._context.skew_s

    def place(self, record: Record, *, newest_first: bool) -> BucketPlace:
        """Return where a record is in a listing."""
        by = self._rules.lifecycle.listed_by
        at = (to_moment(getattr(record, by)) or 0) if by else 0
        return (-at if newest_first else at, self._rules.key(record))

    # What is beside the contract.

    async def oldest_waiting(self, size: int) -> list[Record]:
        """Return the first that wait for a lease in each shard, as far as the index says."""
        context, now = self._context, self._context.moment()
        polls = context.layout.polls
        assert polls is not None, f"no index of a {context.lifecycle.entity} is polled"
        index, shards = polls.index, context.keys.shards

        async def keys_of(shard: str) -> list[str]:
            prefix = context.keys.index_prefix(index, shard)
            page = await context.objects.page(prefix, most=-(-size // len(shards)))
            found = [context.keys.hinted(index, line.key) for line in page.entries]
            return [hinted[0] for hinted in found if hinted is not None]

        async def read(key: str) -> Record | None:
            try:
                found = await context.writes.read(key)
            except Unreadable:
                return None
            is_free = found is not None and context.is_claimable(found.record, now)
            return found.record if found is not None and is_free else None

        keys = [key for some in await run_together(shards, keys_of) for key in some]
        return [record for record in await run_together(keys, read) if record is not None]

    async def versions(self, key: str) -> list[VersionOf[Record]]:
        """Return all that an entity has been, oldest first."""
        context = self._context
        path = context.keys.path_of(key)
        known = [each async for each in context.objects.versions(path, most=_PAGE)]

        async def read(each: Version) -> VersionOf[Record]:
            found = await context.objects.get(path, each.version)
            record = None
            if found is not None:
                with suppress(Unreadable):
                    record = context.writes.snapshot(key, found).record
            return VersionOf(record, each.version, each.changed, each.etag)

        return list(await run_together(reversed(known), read))

    async def sizes(self) -> Sizes:
        """Count entities by shard and state, and the objects that cannot be read."""
        now = self._context.now()
        sizes: dict[tuple[str, int], ShardSize] = {}
        unreadable: Counter[str] = Counter()

        async def count(shard: str) -> None:
            async for lines in self._pages(shard):
                for each in await run_together(lines, self._look, at_once=self._at_once):
                    unreadable[shard] += each.is_unreadable
                    if each.found is not None:
                        record = each.found.record
                        place = shard, self._rules.state(record)
                        number, oldest = sizes.get(place, ShardSize(0, 0.0))
                        age = max(0.0, (now - self._context.written_at(record)).total_seconds())
                        sizes[place] = ShardSize(number + 1, max(oldest, age))

        await run_together(self._context.keys.shards, count)
        return Sizes(sizes, dict(unreadable))

    # Objects.

    async def _lines(self, shard: str | None) -> list[ListedObject]:
        """List the objects of one shard, or of all of them."""
        shards = [each for each in self._context.keys.shards if shard in (None, each)]

        async def list_shard(each: str) -> list[ListedObject]:
            return [line async for lines in self._pages(each) for line in lines]

        return [line for lines in await run_together(shards, list_shard) for line in lines]

    async def _pages(self, shard: str) -> AsyncIterator[Sequence[ListedObject]]:
        prefix = self._context.keys.prefix(shard)
        token: str | None = None
        while True:
            page = await self._context.objects.page(prefix, token=token, most=_PAGE)
            yield page.entries
            if (token := page.token) is None:
                return

    async def _look(self, line: ListedObject) -> _Seen[Record]:
        etag, snapshot = self._cache.get(line.key, ("", None))
        key = self._context.keys.key_of(line.key)
        if key is None:
            return _Seen(line, "", None, False)
        if etag == line.etag:
            return _Seen(line, key, snapshot, snapshot is None)
        found = await self._context.objects.get(line.key)
        if found is None:
            return _Seen(line, key, None, False)
        try:
            snapshot = self._context.writes.snapshot(key, found)
        except Unreadable:
            snapshot = None
        self._cache[line.key] = (found.etag, snapshot)
        while len(self._cache) > _REMEMBERED:
            self._cache.popitem(last=False)
        return _Seen(line, key, snapshot, snapshot is None)
