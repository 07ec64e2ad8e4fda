"""The store in PostgreSQL: a transition is one guarded statement, behind which stand triggers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Generic

from runtime.call.context import Call
from runtime.call.guard import require_edge
from runtime.model.lifecycles import Lifecycle, Transition
from runtime.model.system import System
from runtime.observe import log as events
from runtime.observe.metrics import Metrics
from runtime.stores.postgres.claims.leases import Leases
from runtime.stores.postgres.creation import Creation
from runtime.stores.postgres.database import Database
from runtime.stores.postgres.moving import Moving
from runtime.stores.postgres.rows import as_key, is_key
from runtime.stores.postgres.sweeping import Sweeping
from runtime.stores.postgres.table import Table
from runtime.stores.postgres.upkeep import Upkeep
from runtime.stores.store import (
    Change,
    Compare,
    Exchanged,
    GuardBreach,
    Held,
    Moved,
    NoSuchEntity,
    Record,
    Settling,
)

PURGED_AT_ONCE = 5000
"""Each look passes by all that ended since, so the looks are few."""


class PostgresStore(Generic[Record]):
    """The entities of one kind. Any number of processes may have one over the same table."""

    def __init__(
        self,
        system: System,
        lifecycle: Lifecycle,
        record: type[Record],
        database: Database,
        metrics: Metrics,
        values: Mapping[str, Any],
    ) -> None:
        self._table = Table(system, lifecycle, record, database, metrics, values)
        self._lifecycle = lifecycle
        self._creation = Creation(self._table)
        self._leases = Leases(self._table, lifecycle.lease) if lifecycle.lease else None
        self._sweeping = Sweeping(self._table)
        self._moving = Moving(self._table)
        self._upkeep = Upkeep(self._table, system.name)
        if self._leases is not None:
            self._leases.looking.looked = self._upkeep.looked
        metrics.add_census(self._upkeep, self._upkeep.recount)

    async def open(self, log: events.Log) -> None:
        """Prepares the database and begins to listen. One that is away is waited for in the background."""
        await self._upkeep.open(log)

    async def close(self) -> None:
        """Stops listening and counting; the connections are closed by whoever opened the database."""
        await self._upkeep.close()

    async def create(self, record: Record, call: Call) -> Record:
        made, is_new = await self.create_or_find(record, call)
        if not is_new:
            key = getattr(record, self._lifecycle.key)
            raise GuardBreach(f"{self._lifecycle.entity} {key} exists already")
        return made

    async def create_or_find(self, record: Record, call: Call) -> tuple[Record, bool]:
        return await self._creation.one(record, call)

    async def create_or_find_all(
        self, records: Sequence[Record], call: Call, *, compare: Compare[Record] | None = None
    ) -> list[tuple[Record, bool]]:
        return await self._creation.all(records, call, compare)

    async def get(self, key: str) -> Record | None:
        if not is_key(key):
            return None
        rows = await self._table.answer(self._table.run("get", key=as_key(key)))
        return self._table.rows.read(rows[0]) if rows else None

    async def move(self, key: str, source: int, target: int, call: Call, /, **given: str) -> Moved:
        edge = self._plain(source, target, call)
        if not is_key(key):
            raise NoSuchEntity(key)
        moved = await self._moving.one(edge, as_key(key), given, call.caller)
        if moved is None:
            raise NoSuchEntity(key)
        if moved.applied:
            self._table.applied(call, edge, key)
        else:
            self._tell_ignored(call, key, edge, moved.state)
        return moved

    async def move_all(self, keys: Sequence[str], source: int, target: int, call: Call) -> int:
        edge = self._plain(source, target, call)
        moved = await self._moving.all(edge, [as_key(key) for key in keys if is_key(key)], call.caller)
        for key in moved:
            self._table.applied(call, edge, key)
        return len(moved)

    async def acquire(self, owner: str, call: Call) -> Record | None:
        return await self._leased().acquire(owner, call)

    async def exchange(
        self, owner: str, settling: Sequence[Settling], free: int, call: Call
    ) -> Exchanged[Record]:
        return await self._leased().exchange(owner, settling, free, call)

    async def settle_all(self, settling: Sequence[Settling], call: Call) -> Sequence[int | Exception]:
        return await self._leased().settle_all(settling, call)

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
        return await self._leased().settle(key, target, held, call, final, edge, **given)

    async def renew(self, key: str, held: Held) -> bool:
        return await self._leased().renew(key, held)

    async def renew_all(self, held: Sequence[tuple[str, Held]]) -> Sequence[bool | Exception]:
        return await self._leased().renew_all(held)

    async def sweep(self, transition: Transition, call: Call) -> int:
        return await self._sweeping.sweep(transition, call)

    async def update(self, key: str, /, **changes: Any) -> Record:
        if changes:
            named = ", ".join(sorted(changes))
            raise GuardBreach(f"{named} of a {self._lifecycle.entity} changes only with its state, or never")
        if not is_key(key):
            raise NoSuchEntity(key)
        found = await self.get(key)
        if found is None:
            raise NoSuchEntity(key)
        return found

    async def delete(self, key: str, expected: int, call: Call) -> Moved:
        self._require_deleter(call)
        if not is_key(key):
            raise NoSuchEntity(key)
        lifecycle = self._lifecycle
        if expected in lifecycle.deletable:
            work = self._table.run(
                "delete", actor=call.caller, key=as_key(key), expected=lifecycle.states[expected]
            )
            if await self._table.answer(work):
                self._table.metrics.count_transition(lifecycle.entity, "delete", call.caller)
                self._table.tell(call, "delete", key, expected, None)
                return Moved(True, expected)
        current = await self._table.answer(self._moving.states([as_key(key)]))
        if not current:
            raise NoSuchEntity(key)
        return Moved(False, current[as_key(key)])

    async def purge(self, older_than_s: float, call: Call) -> int:
        self._require_deleter(call)
        purged = 0
        while True:
            work = self._table.run(
                "purge", actor=call.caller, older_than=float(older_than_s), most=PURGED_AT_ONCE
            )
            rows = await self._table.answer(work)
            for row in rows:
                self._table.metrics.count_transition(self._lifecycle.entity, "delete", call.caller)
                self._table.tell(call, "delete", str(row[0]), None, None)
            purged += len(rows)
            if len(rows) < PURGED_AT_ONCE:
                return purged

    async def page(
        self, states: Collection[int], offset: int, size: int, *, newest_first: bool
    ) -> tuple[list[Record], bool]:
        name = "page_newest" if newest_first else "page_oldest"
        work = self._table.run(name, states=self._names(states), offset=offset, size=size + 1)
        rows = await self._table.answer(work)
        return [self._table.rows.read(row) for row in rows[:size]], len(rows) > size

    async def find(
        self,
        *,
        states: Collection[int] = (),
        equal: Mapping[str, object] = MappingProxyType({}),
        since: datetime | None = None,
        until: datetime | None = None,
        after: tuple[datetime, str] | None = None,
        size: int = 50,
    ) -> list[Record]:
        given: dict[str, Any] = dict.fromkeys(self._table.statements["find"].takes)
        narrowed = {f"record_{name}": value for name, value in equal.items()}
        if unknown := sorted(name for name in equal if f"record_{name}" not in given):
            raise ValueError(f"a listing cannot be narrowed by {', '.join(unknown)}")
        given.update(narrowed)
        given.update(states=self._names(states), since=since, until=until, size=size)
        if after is not None:
            given.update(after_at=after[0], after_key=as_key(after[1]))
        rows = await self._table.answer(self._table.run("find", **given))
        return [self._table.rows.read(row) for row in rows]

    async def history(self, key: str) -> list[Change]:
        if not is_key(key):
            return []
        rows = await self._table.answer(self._table.run("history", key=as_key(key)))
        return [Change(*row[:5])._replace(edge="".join(row[5:])) for row in rows]

    async def awaited(self, timeout_s: float) -> bool:
        return await self._upkeep.awaited(timeout_s)

    async def problem(self) -> str | None:
        return await self._upkeep.problem()

    def _plain(self, source: int, target: int, call: Call) -> Transition:
        """An edge that is driven without a lease."""
        lifecycle = self._lifecycle
        edge = require_edge(self._table.roles, lifecycle, call.caller, call.method, source, target)
        if lifecycle.lease is not None and lifecycle.lease.state in (source, target):
            way = "acquire" if target == lifecycle.lease.state else "settle"
            raise GuardBreach(f"{edge.name} goes with the lease of a {lifecycle.entity}: use {way}")
        return edge

    def _leased(self) -> Leases[Record]:
        if self._leases is None:
            raise GuardBreach(f"a {self._lifecycle.entity} has no lease")
        return self._leases

    def _require_deleter(self, call: Call) -> None:
        lifecycle = self._lifecycle
        if call.caller not in lifecycle.deleters:
            allowed = ", ".join(sorted(lifecycle.deleters)) or "nobody"
            raise self._table.denied(call, f"only {allowed} may delete a {lifecycle.entity}")

    def _names(self, states: Collection[int]) -> list[str]:
        return [self._lifecycle.states[state] for state in states or self._lifecycle.states]

    def _tell_ignored(self, call: Call, key: str, edge: Transition, current: int) -> None:
        lifecycle = self._lifecycle
        if current in lifecycle.terminal and edge.target in lifecycle.terminal - {current}:
            call.tell(
                events.TERMINAL_WRITE_IGNORED,
                f"{lifecycle.entity} is {lifecycle.states[current]} already",
                **{
                    lifecycle.key: key,
                    "expected_status": lifecycle.states[edge.source],
                    "current_status": lifecycle.states[current],
                },
            )
