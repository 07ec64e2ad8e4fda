"""Listings of entities: pages, counts and versions, with a cache by ETag."""

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
"""Least concurrent reads of one shard while others are read, too."""
SortKey = tuple[int, str]
"""The sort key of an entity in a listing: its time, negative where the newest come first, and its key."""


class Query(NamedTuple):
    """The filters and the order of a page; times are in microseconds."""

    states: Collection[int]
    equal: Mapping[str, object]
    since: int | None
    until: int | None
    after: Cursor | None
    newest_first: bool


class _Seen(NamedTuple, Generic[Record]):
    """The result of reading an object: an entity, unreadable, or gone."""

    line: ListedObject
    key: str
    found: Snapshot[Record] | None
    is_unreadable: bool


class BucketListing(Generic[Record]):
    """The listings of one kind of entity."""

    def __init__(self, context: BucketContext[Record]) -> None:
        self._context = context
        self._rules = context.rules
        self._at_once = max(AT_ONCE // len(context.keys.shards), _LEAST_AT_ONCE)
        self._cache: OrderedDict[str, tuple[str, Snapshot[Record] | None]] = OrderedDict()

    # The cache.

    def note(self, path: str, snapshot: Snapshot[Record]) -> None:
        """Cache an object, if it is cached already or there is room."""
        if path in self._cache or len(self._cache) < _REMEMBERED:
            self._cache[path] = (snapshot.etag, snapshot)

    def forget(self, path: str) -> None:
        """Remove a deleted object from the cache."""
        self._cache.pop(path, None)

    # Pages.

    async def read_all(self) -> list[tuple[str, Snapshot[Record]]]:
        """Read all entities in key order."""
        found = await run_together(self._context.keys.shards, self._read_shard)
        return sorted((each for some in found for each in some), key=lambda each: each[0])

    async def _read_shard(self, shard: str) -> list[tuple[str, Snapshot[Record]]]:
        found: list[tuple[str, Snapshot[Record]]] = []
        async for lines in self._pages(shard):
            seen = await run_together(lines, self._read_line, at_once=self._at_once)
            found += [(each.key, each.found) for each in seen if each.found is not None]
        return found

    async def find(
        self, query: Query, offset: int, size: int, is_gone: Callable[[Snapshot[Record]], bool]
    ) -> BucketPage[Record]:
        """Return a page with its unreadable objects; `is_gone` is whether an entity's retention has ended."""
        context, wanted = self._context, offset + size + 1
        shard = context.layout.shard
        named = str(query.equal[shard.field]) if shard and shard.field in query.equal else None
        lines = await self._list_objects(named)
        # An object is written at its own time, or a little later: the last written ones come first.
        lines.sort(key=lambda line: line.changed, reverse=True)
        found: list[tuple[SortKey, Record]] = []
        unreadable: list[tuple[datetime, str]] = []
        step = min(max(2 * wanted, 32), _PAGE)
        for start in range(0, len(lines), step):
            seen = await run_together(lines[start : start + step], self._read_line)
            records = [each.found.record for each in seen if each.found and not is_gone(each.found)]
            keyed = [(self.sort_key(each, newest_first=query.newest_first), each) for each in records]
            wanted_records = [each for each in keyed if self._is_wanted(*each, query)]
            limit = None if query.after is None else to_time(query.after.at)
            unreadable += [
                (each.line.changed, each.key)
                for each in seen
                if each.is_unreadable and (limit is None or each.line.changed < limit)
            ]
            found = heapq.nsmallest(wanted, (*found, *wanted_records), key=lambda each: each[0])
            rest = lines[start + step :]
            if len(found) == wanted and rest and self._is_complete(found, query, rest[0]):
                break
        records = [record for _, record in found[offset : offset + size]]
        last = found[offset + size - 1][0] if len(found) == wanted and size else None
        page = BucketPage(records, last and Cursor(abs(last[0]), last[1]))
        page.unreadable = unreadable
        return page

    def _is_wanted(self, sort_key: SortKey, record: Record, query: Query) -> bool:
        at = abs(sort_key[0])
        if query.after is not None:
            begin = -query.after.at if query.newest_first else query.after.at
            if sort_key <= (begin, query.after.key):
                return False
        if query.states and self._rules.state(record) not in query.states:
            return False
        if (query.since is not None and at < query.since) or (query.until is not None and at >= query.until):
            return False
        return equals(record, query.equal)

    def _is_complete(self, found: list[tuple[SortKey, Record]], query: Query, line: ListedObject) -> bool:
        """Whether the last record of a page changed after all objects that are not read yet."""
        by = self._rules.lifecycle.listed_by
        if not query.newest_first or by not in self._rules.stamps:
            return False
        last = to_time(abs(found[-1][0][0]))
        return (last - line.changed).total_seconds() > 1 + self._context.skew_s

    def sort_key(self, record: Record, *, newest_first: bool) -> SortKey:
        """Return the sort key of a record in a listing."""
        by = self._rules.lifecycle.listed_by
        at = (to_moment(getattr(record, by)) or 0) if by else 0
        return (-at if newest_first else at, self._rules.key(record))

    # Beyond the contract.

    async def oldest_waiting(self, size: int) -> list[Record]:
        """Return the oldest claimable entities of each shard, as far as the index has them."""
        context, now = self._context, self._context.moment()
        polls = context.layout.polls
        assert polls is not None, f"no index of a {context.lifecycle.entity} is polled"
        index, shards = polls.index, context.keys.shards

        async def keys_of(shard: str) -> list[str]:
            prefix = context.keys.index_prefix(index, shard)
            page = await context.objects.page(prefix, most=-(-size // len(shards)))
            found = [context.keys.parse_entry(index, line.key) for line in page.entries]
            return [parsed[0] for parsed in found if parsed is not None]

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
        """Return the versions of an entity, oldest first."""
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
        """Count entities by shard and state, and the unreadable objects."""
        now = self._context.now()
        sizes: dict[tuple[str, int], ShardSize] = {}
        unreadable: Counter[str] = Counter()

        async def count(shard: str) -> None:
            async for lines in self._pages(shard):
                for each in await run_together(lines, self._read_line, at_once=self._at_once):
                    unreadable[shard] += each.is_unreadable
                    if each.found is not None:
                        record = each.found.record
                        group = shard, self._rules.state(record)
                        number, oldest = sizes.get(group, ShardSize(0, 0.0))
                        age = max(0.0, (now - self._context.written_at(record)).total_seconds())
                        sizes[group] = ShardSize(number + 1, max(oldest, age))

        await run_together(self._context.keys.shards, count)
        return Sizes(sizes, dict(unreadable))

    # Objects.

    async def _list_objects(self, shard: str | None) -> list[ListedObject]:
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

    async def _read_line(self, line: ListedObject) -> _Seen[Record]:
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
