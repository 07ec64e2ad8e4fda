"""Repair of indexes that differ from the entities. It never writes an entity."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from typing import Generic, NamedTuple

from runtime.call.context import Call
from runtime.stores.contract import Record
from runtime.stores.s3.client.errors import Away, ObjectError
from runtime.stores.s3.client.listings import ListedObject
from runtime.stores.s3.codec import Unreadable
from runtime.stores.s3.context import BucketContext, run_together
from runtime.stores.s3.indexes.index_writer import INDEX_NOT_WRITTEN
from runtime.stores.s3.indexes.repair_checkpoint import RepairPass

_INDEX_PAGE = 1000
_REMEMBERED = 500_000


class _Known(NamedTuple):
    """State and entries of the object with this ETag."""

    etag: str
    state: int | None
    entries: frozenset[str]


class _Part:
    """The repair of one shard: its entries as they were before its entities were read."""

    def __init__(self, entries: dict[str, tuple[str, ListedObject]]) -> None:
        self.entries = entries
        self.wanted: set[str] = set()
        self.states: Counter[int] = Counter()
        self.token: str | None = None


class IndexRepair(Generic[Record]):
    """The repair of one process, a page at a time; every step continues where the last one stopped."""

    def __init__(self, context: BucketContext[Record]) -> None:
        repairs = context.layout.repairs
        assert repairs is not None
        self._context = context
        self._page, self._every = int(context.values[repairs.page]), repairs.every
        self._pass = RepairPass(context)
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._parts: deque[str] = deque()
        self._part: _Part | None = None
        self._counted: dict[str, Counter[int]] = {}

    async def step(self, call: Call) -> int:
        """Continue until some entries are repaired; return how many. After the last shard it begins anew."""
        if not self._parts:
            parts = self._context.keys.shards
            first = int(self._context.world.uniform(0, len(parts) - 0.001))
            self._parts.extend((*parts[first:], *parts[:first]))
            self._pass = RepairPass(self._context)
        repaired = 0
        try:
            while self._parts and not repaired:
                repaired = await self._next_page(call)
        except BaseException:
            self._pass.is_whole = False
            raise
        if repaired:
            # Otherwise the next step would find them missing again.
            await self._context.indexes.wait_in_flight()
        if not self._parts:
            if self._pass.has_failed:
                raise Away("some index entries could not be repaired")
            await self._write_checkpoint(call)
        return repaired

    async def _write_checkpoint(self, call: Call) -> None:
        context, key = self._context, self._context.keys.checkpoint
        try:
            await self._pass.write_checkpoint(float(context.values[self._every]))
        except ObjectError as error:
            # Without it workers read more objects than they need to. Repairs go on.
            message = f"the checkpoint of the last repair cannot be written: {error}"
            context.log_sometimes(call, INDEX_NOT_WRITTEN, f"{key}", message, entry=key)

    def census(self) -> Iterator[tuple[int, int]]:
        """Count the entities by state as the last repair read them; nothing before all were read."""
        if len(self._counted) == len(self._context.keys.shards):
            yield from sum(self._counted.values(), Counter[int]()).items()

    async def _next_page(self, call: Call) -> int:
        context, name = self._context, self._parts[0]
        if self._part is None:
            self._part = _Part(await self._entries(name))
            self._pass.note_response()
        part = self._part
        page = await context.objects.page(context.keys.prefix(name), token=part.token, most=self._page)
        lines = [line for line in page.entries if context.keys.key_of(line.key) is not None]
        written = 0
        for line, known in zip(
            lines, await run_together(lines, lambda each: self._read(each, call)), strict=True
        ):
            part.wanted |= known.entries
            if known.state is not None:
                part.states[known.state] += 1
            elif known.etag:
                self._pass.unread.add(line.key)
            for entry in known.entries:
                self._pass.note_entry(entry)
            if missing := known.entries - part.entries.keys():
                written += await self._write(line, missing)
        part.token = page.token
        if page.token is not None:
            return written
        removed = await self._remove_stale(part)
        self._counted[name] = part.states
        self._part = None
        self._parts.popleft()
        return written + removed

    async def _entries(self, part: str) -> dict[str, tuple[str, ListedObject]]:
        """List all entries of a shard, of any time, each with the key of its entity."""
        context = self._context
        found: dict[str, tuple[str, ListedObject]] = {}
        for index in context.keys.indexes:
            token: str | None = None
            while True:
                prefix = context.keys.index_prefix(index, part)
                page = await context.objects.page(prefix, token=token, most=_INDEX_PAGE)
                for line in page.entries:
                    if (parsed := context.keys.parse_entry(index, line.key)) is not None:
                        found[line.key] = (parsed[0], line)
                if (token := page.token) is None:
                    break
        return found

    async def _read(self, line: ListedObject, call: Call) -> _Known:
        known = self._known.get(line.key)
        if known is not None and known.etag == line.etag:
            self._known.move_to_end(line.key)
            return known
        context = self._context
        found = await context.objects.get(line.key)
        key = context.keys.key_of(line.key)
        if found is None or key is None:
            return _Known("", None, frozenset())
        try:
            record = context.writes.snapshot(key, found).record
        except Unreadable as error:
            context.log_unreadable(call, line.key, error)
            known = _Known(found.etag, None, frozenset())
        else:
            entries = frozenset(context.indexes.entries(record).values())
            known = _Known(found.etag, context.rules.state(record), entries)
        self._known[line.key] = known
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return known

    async def _write(self, line: ListedObject, missing: frozenset[str]) -> int:
        """Write entries that were missing before the entity was read, if it still has them."""
        context = self._context
        key = context.keys.key_of(line.key)
        assert key is not None
        try:
            found = await context.writes.read(key)
        except Unreadable:
            return 0
        if found is None:
            return 0
        wanted = missing & set(context.indexes.entries(found.record).values())
        await context.indexes.room()
        for entry in wanted:
            context.indexes.write(key, entry, found.record)
        return len(wanted)

    async def _remove_stale(self, part: _Part) -> int:
        """Remove entries that no entity has, after another read of the entity that each hints at."""
        context = self._context
        stale = [each for entry, each in part.entries.items() if entry not in part.wanted]

        async def remove(each: tuple[str, ListedObject]) -> bool:
            key, line = each
            try:
                found = await context.writes.read(key)
            except Unreadable:
                return False
            if found is None:
                context.indexes.remove(key, line.key, line.etag)
                return True
            if line.key in context.indexes.entries(found.record).values():
                return False
            context.indexes.replace(key, found.record, line.key, line.etag)
            return True

        return sum(await run_together(stale, remove))
