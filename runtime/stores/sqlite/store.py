"""The store in SQLite: a transition is one guarded statement, behind which stand triggers."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from runtime.call.conditions import Condition
from runtime.call.context import Call
from runtime.call.guard import require_edge
from runtime.model.lifecycles import Transition
from runtime.stores.sqlite.changes import Refused, Swept
from runtime.stores.sqlite.entities import Entities, some
from runtime.stores.sqlite.rows import stored
from runtime.stores.store import Compare, GuardBreach, Held, Moved, NoSuchEntity, Record

SWEPT_AT_ONCE = 500
PURGED_AT_ONCE = 5000


class SqliteStore(Entities[Record]):
    """The entities of one kind, in a file that this process alone has."""

    # Creating.

    async def create(self, record: Record, call: Call) -> Record:
        made, is_new = await self.create_or_find(record, call)
        if not is_new:
            key = getattr(record, self._lifecycle.key)
            raise GuardBreach(f"{self._lifecycle.entity} {key} exists already")
        return made

    async def create_or_find(self, record: Record, call: Call) -> tuple[Record, bool]:
        return (await self.create_or_find_all([record], call))[0]

    async def create_or_find_all(
        self, records: Sequence[Record], call: Call, *, compare: Compare[Record] | None = None
    ) -> list[tuple[Record, bool]]:
        lifecycle = self._lifecycle
        if call.caller not in lifecycle.creators:
            raise self._denied(call, f"only {some(lifecycle.creators)} may create a {lifecycle.entity}")
        given = [self._rows.write(each) for each in records]

        def create(connection: sqlite3.Connection) -> list[tuple[Record, bool]]:
            now = self._changes.now()
            found = [self._changes.create(connection, each, now, call.caller) for each in given]
            for wanted, (record, is_new) in zip(records, found, strict=True):
                if compare is not None and not is_new:
                    compare(wanted, record)
            return found

        found = await self._write(create)
        for record, is_new in found:
            if is_new:
                self._told(call, "create", getattr(record, lifecycle.key), None, lifecycle.initial)
        return found

    # Moving.

    async def move(self, key: str, source: int, target: int, call: Call, /, **given: str) -> Moved:
        return await self._move(key, self._edge(source, target, call), None, call, given)

    async def leave(self, key: str, target: int, held: Held, call: Call, /, **given: str | None) -> Moved:
        edge = self._edge(self._changes.lease.state, target, call)
        return await self._move(key, edge, held, call, given)

    async def _move(
        self, key: str, edge: Transition, held: Held | None, call: Call, given: Mapping[str, str | None]
    ) -> Moved:
        moved = await self._accessed(
            key, lambda connection: self._changes.move(connection, edge, key, call.caller, held, given)
        )
        if moved.applied:
            self._told(call, edge.name, key, edge.source, edge.target)
        else:
            self._telling.record_ignored(call, key, edge.source, edge.target, moved.state)
        return moved

    async def move_all(self, keys: Sequence[str], source: int, target: int, call: Call) -> int:
        edge = self._edge(source, target, call)

        def move(connection: sqlite3.Connection) -> list[str]:
            return [key for key in keys if self._changes.try_move(connection, edge, key, call.caller)]

        moved = await self._write(move)
        for key in moved:
            self._told(call, edge.name, key, source, target)
        return len(moved)

    async def follow(self, key: str, path: Sequence[int], call: Call, /, **given: str | None) -> Moved:
        edges = [self._edge(source, target, call) for source, target in pairwise(path)]

        def follow(connection: sqlite3.Connection) -> Moved:
            for edge in edges:
                moved = self._changes.move(connection, edge, key, call.caller, None, given)
                if not moved.applied:
                    raise Refused(moved)
            return Moved(True, path[-1])

        try:
            moved = await self._accessed(key, follow)
        except Refused as refused:
            return refused.moved
        for edge in edges:
            self._told(call, edge.name, key, edge.source, edge.target)
        return moved

    async def update(self, key: str, /, **changes: Any) -> Record:
        known = self._changes.statements
        if breached := sorted(name for name in changes if f"change_{name}" not in known):
            raise GuardBreach(
                f"{', '.join(breached)} of a {self._lifecycle.entity} changes only with its state, or never"
            )

        def update(connection: sqlite3.Connection) -> Record:
            for name, value in changes.items():
                connection.execute(known[f"change_{name}"], {"key": key, "value": stored(value)}).fetchone()
            record = self._changes.get(connection, key)
            if record is None:
                raise NoSuchEntity(key)
            return record

        return await self._write(update)

    async def delete(self, key: str, expected: int, call: Call) -> Moved:
        self._require_deleter(call)
        moved = await self._write(lambda connection: self._changes.delete(connection, key, expected))
        if moved.applied:
            self._told(call, "delete", key, expected, None)
        return moved

    async def purge(self, older_than_s: float, call: Call) -> int:
        self._require_deleter(call)
        purged = 0
        while True:
            keys = await self._write(
                lambda connection: self._changes.purge(connection, older_than_s, PURGED_AT_ONCE)
            )
            for key in keys:
                self._told(call, "delete", key, None, None)
            purged += len(keys)
            if len(keys) < PURGED_AT_ONCE:
                return purged

    # Leases.

    async def acquire(self, owner: str, call: Call) -> Record | None:
        edge = self._changes.entering
        require_edge(self._roles, self._lifecycle, call.caller, call.method, edge.source, edge.target)
        position = self._news.position

        def acquire(connection: sqlite3.Connection) -> tuple[Swept, Record | None]:
            swept = self._changes.sweep_on_access(connection)
            return swept, self._changes.acquire(connection, owner, call.caller)

        swept, record = await self._write(acquire)
        self._tell_swept(swept, call)
        if record is None:
            self._news.found_nothing(position)
            return None
        key = getattr(record, self._lifecycle.key)
        self._told(call, edge.name, key, edge.source, edge.target, **self._changes.lease_of(record))
        return record

    async def renew(self, key: str, held: Held) -> bool:
        try:
            return await self.extend(key, held) is not None
        except (NoSuchEntity, Condition):
            return False

    async def extend(self, key: str, held: Held) -> Record | None:
        return await self._accessed(key, lambda connection: self._changes.renew(connection, key, held))

    async def settle(
        self,
        key: str,
        target: int,
        held: Held,
        call: Call,
        final: bool = False,
        edge: str = "",
        /,
        **given: str | None,
    ) -> int:
        way = self._edge(self._changes.lease.state, target, call, edge)
        taken = await self._accessed(
            key,
            lambda connection: self._changes.settle(
                connection, way, key, call.caller, held, given, final=final
            ),
        )
        if not taken:
            raise self._lost(key, held.owner)
        for each in taken:
            self._told(call, each.name, key, each.source, each.target)
        return taken[-1].target

    async def sweep(self, transition: Transition, call: Call) -> int:
        if transition.due is None:
            raise GuardBreach(f"{transition.name} of a {self._lifecycle.entity} is not driven by the clock")
        require_edge(
            self._roles, self._lifecycle, call.caller, call.method, transition.source, transition.target
        )
        if not self._changes.is_any_due(self._read, transition):
            return 0
        swept = await self._write(
            lambda connection: self._changes.sweep(connection, transition, SWEPT_AT_ONCE)
        )
        self._tell_swept(swept, call)
        return len({key for _, key in swept})
