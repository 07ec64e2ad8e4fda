"""The changes that the clock drives: what is due is found by the index of its time."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta
from typing import Generic

from runtime.call.context import Call
from runtime.model.lifecycles import Due, Transition
from runtime.model.system import Event
from runtime.stores.s3.claims.marks import Marks
from runtime.stores.s3.claims.passed import Passed
from runtime.stores.s3.client.objects import Entry
from runtime.stores.s3.entities import Entities, together
from runtime.stores.s3.facts import fits
from runtime.stores.s3.guarded import Changed
from runtime.stores.s3.keys import minute
from runtime.stores.s3.rows import Snapshot, Unreadable
from runtime.stores.store import GuardBreach, Record

LEASE_EXPIRED = Event("lease_expired", "WARNING", always=True)
_PAGE = 1000
_SLOW_S, _APART_LOOKS = 0.25, 60
"""A listing of all parts that takes longer is not asked for again in so many looks."""


class Sweeping(Generic[Record]):
    """The looks of one process for what is due by one edge. Any number of processes may look at once."""

    def __init__(self, entities: Entities[Record], edge: Transition) -> None:
        if edge.due is None or edge.due.at is None:
            raise GuardBreach(f"{edge.name} of a {entities.lifecycle.entity} is not driven by the clock")
        self._entities = entities
        self._edge = edge
        self._due: Due = edge.due
        self._index = _index_of(entities, edge, edge.due.at)
        self._line: deque[tuple[str | None, str | None]] = deque()
        """What is still to be listed: a part, or None for all of them, and where it goes on there."""
        self._passed = Passed()
        self._marks = Marks()
        self._apart_for = 0

    async def step(self, call: Call) -> int:
        """Moves what is due, some of it; how many those are. After the last of them it begins anew."""
        if await self._entities.is_clock_off(call):
            return 0
        if not self._line and self._apart_for:
            self._apart_for -= 1
            self._begin_apart()
        elif not self._line:
            self._line.append((None, None))
        moved = 0
        while self._line and not moved:
            moved = await self._page(call)
        return moved

    def _begin_apart(self) -> None:
        """Lists part by part what is more than a page."""
        parts = self._entities.keys.shards
        # The sweepers of many processes shall not all begin at the same place.
        first = int(self._entities.world.uniform(0, len(parts) - 0.001))
        self._line.extend((part, None) for part in (*parts[first:], *parts[:first]))

    async def _page(self, call: Call) -> int:
        part, token = self._line[0]
        entities, now = self._entities, self._entities.changes.now()
        prefix = entities.keys.index_prefix(self._index, part)
        mark = self._marks.begin(part, now) if part is not None and token is None else None
        began = entities.world.monotonic()
        page = await entities.objects.page(
            prefix, token=token, after=f"{prefix}{mark}" if mark else None, most=_PAGE
        )
        if part is None and entities.world.monotonic() - began > _SLOW_S:
            # The store steps over much that was removed. Parts can be listed from where something is left.
            self._apart_for = _APART_LOOKS
        if part is None and page.token is not None and len(entities.keys.shards) > 1:
            self._line.popleft()
            self._begin_apart()
            return 0
        due_since = now - timedelta(seconds=entities.changes.allowance_s(self._due))
        latest = minute(due_since)
        is_over = page.token is None
        found: list[tuple[str, Entry]] = []
        for line in page.entries:
            hinted = entities.keys.hinted(self._index, line.key)
            if hinted is None:
                continue
            if hinted[1] > latest:
                if part is None:
                    continue  # The next part may have earlier ones.
                is_over = True
                break
            if part is not None:
                self._marks.met(part, hinted[1])
            if not self._passed.has(line, now):
                found.append((hinted[0], line))
        moved = sum(await together(found, lambda each: self._move(*each, now, call)))
        self._line.popleft()
        if not is_over:
            self._line.appendleft((part, page.token))
        elif part is not None:
            self._marks.over(part, due_since)
        return moved

    async def _move(self, key: str, line: Entry, now: datetime, call: Call) -> bool:
        """Moves an entity if it is due; otherwise its entry is put in order, or left until it is."""
        entities, changes, edge = self._entities, self._entities.changes, self._edge
        try:
            found = await entities.guarded.read(key)
        except Unreadable as error:
            entities.unreadable(call, entities.keys.of(key), error)
            return False
        if found is None:
            entities.indexes.remove(key, line.key, line.etag)
            return False
        if changes.state(found.record) != edge.source:
            entities.indexes.replace(key, found.record, line.key, line.etag)
            return False
        record = found.record
        due_at = changes.due_at(record, self._due)
        if due_at is None or due_at >= now:
            entry = entities.keys.entry(self._index, key, record)
            if entry is None or entry == line.key:
                self._passed.add(line, due_at)
            else:
                # Its time has moved: the entry follows.
                entities.indexes.replace(key, record, line.key, line.etag)
            return False
        return fits(record, edge) and await self._take(key, found, now, call)

    async def _take(self, key: str, found: Snapshot[Record], now: datetime, call: Call) -> bool:
        entities, changes, edge = self._entities, self._entities.changes, self._edge
        taken: list[Transition] = []

        def build(record: Record) -> Record | None:
            due_at = changes.due_at(record, self._due)
            if changes.state(record) != edge.source or due_at is None or due_at >= now:
                return None
            made, last = changes.moved(record, edge, changes.gives(record, self._due))
            taken[:] = [last]
            return made

        result = await entities.guarded.change(key, build, found, once=True)
        if not isinstance(result, Changed):
            return False
        before, last = result.before.record, taken[0]
        lease = entities.lifecycle.lease
        known = {name: getattr(before, name) for name in (lease.owner, lease.fence)} if lease else {}
        entities.telling.record_applied(call, last.name, key, last.source, last.target, known=known)
        if lease is not None and edge.source == lease.state:
            call.tell(
                LEASE_EXPIRED,
                f"the lease of a {entities.lifecycle.entity} ended before its holder was done",
                entity=entities.lifecycle.entity,
                to_status=entities.lifecycle.states[last.target],
                **{entities.lifecycle.key: key, **known},
            )
        return True


def _index_of(entities: Entities[Record], edge: Transition, at: str) -> str:
    """The index in which what an edge leaves is found by the time at which it is due."""
    for name, index in entities.keys.indexes.items():
        if index.at == at and edge.source in index.states:
            return name
    raise GuardBreach(f"no index of a {entities.lifecycle.entity} goes by {at}, by which {edge.name} is due")
