"""The store in SQLite: a transition is one guarded statement, behind which stand triggers."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from runtime import log as events
from runtime.call import Call
from runtime.conditions import Condition
from runtime.guard import require_edge
from runtime.metrics import Metrics
from runtime.sqlite.changes import Changes, Refused
from runtime.sqlite.file import File, Unavailable, Work
from runtime.sqlite.migrations import migrate
from runtime.sqlite.news import News
from runtime.sqlite.rows import moment, stored
from runtime.store import Change, Compare, GuardBreach, Held, Moved, NoSuchEntity, Record, Unstorable
from runtime.tables import Event, Lifecycle, System, Transition
from runtime.world import World

Answer = TypeVar("Answer")

SWEPT_AT_ONCE = 500
PURGED_AT_ONCE = 5000
STORE_READY = Event("store_ready", "INFO")


class SqliteStore(Generic[Record]):
    """The entities of one kind, in a file that this process alone has."""

    def __init__(
        self,
        system: System,
        lifecycle: Lifecycle,
        record: type[Record],
        file: File,
        world: World,
        metrics: Metrics,
        values: Mapping[str, Any],
    ) -> None:
        self._system = system
        self._roles = system.roles
        self._lifecycle = lifecycle
        self._file = file
        self._world = world
        self._metrics = metrics
        self._changes = Changes(system.name, lifecycle, record, values)
        self._rows = self._changes.rows
        self._news = News()
        metrics.watch(self)

    def prepare(self, connection: sqlite3.Connection) -> None:
        """Brings the file up to date. To be called once, before anything else."""
        migrate(connection, self._system.name)

    async def open(self, log: events.Log) -> None:
        log.write(STORE_READY, f"{self._file.path} has the schema", fields={"entity": self._lifecycle.entity})

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
        if call.caller not in self._lifecycle.creators:
            allowed = ", ".join(sorted(self._lifecycle.creators))
            raise self._denied(call, f"only {allowed} may create a {self._lifecycle.entity}")
        given = [self._rows.write(each) for each in records]
        now = self._now()

        def create(connection: sqlite3.Connection) -> list[tuple[Record, bool]]:
            found = [self._changes.create(connection, each, now, call.caller) for each in given]
            if compare is not None:
                for wanted, (record, is_new) in zip(records, found, strict=True):
                    if not is_new:
                        compare(wanted, record)
            return found

        found = await self._write(create)
        for record, is_new in found:
            if is_new:
                key = getattr(record, self._lifecycle.key)
                self._applied(call, "create", key, None, self._lifecycle.initial)
        self._news.told(self._changes.is_acquirable(self._lifecycle.initial))
        return found

    # Reading.

    async def get(self, key: str) -> Record | None:
        now = self._now()
        if self._changes.has_access_edges and self._changes.overdue(self._file.read, key, now):
            return await self._accessed(key, lambda connection: self._changes.get(connection, key))
        rows = self._read("get", key=key)
        return self._rows.read(rows[0]) if rows else None

    async def page(
        self, states: Collection[int], offset: int, size: int, *, newest_first: bool
    ) -> tuple[list[Record], bool]:
        name = "page_newest" if newest_first else "page_oldest"
        rows = self._read(name, states=self._names(states), offset=offset, size=size + 1)
        return [self._rows.read(row) for row in rows[:size]], len(rows) > size

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
        given: dict[str, Any] = dict.fromkeys(self._rows.names)
        if unknown := sorted(equal.keys() - given.keys()):
            raise ValueError(f"a listing cannot be narrowed by {', '.join(unknown)}")
        given.update(equal)
        given.update(states=self._names(states), size=size, after=after[1] if after else None)
        rows = self._read("find", since=stored(since), until=stored(until), **given)
        return [self._rows.read(row) for row in rows]

    async def history(self, key: str) -> list[Change]:
        rows = self._read("history", key=key) if "history" in self._changes.statements else []
        return [Change(row[0] or "", row[1], row[2], row[3], moment(row[4])) for row in rows]

    def census(self) -> Iterator[tuple[str, str, int, float]]:
        """How many there are in each state, and how old the oldest is."""
        with suppress(Unavailable):
            now = self._now()
            for name, count, since in self._read("census"):
                age = 0.0 if since is None else self._changes.age_s(since, now)
                yield self._lifecycle.entity, name, count, age

    # Moving.

    async def move(
        self, key: str, source: int, target: int, call: Call, *, held: Held | None = None, **given: str | None
    ) -> Moved:
        edge = self._edge(source, target, call)

        def move(connection: sqlite3.Connection) -> Moved:
            return self._changes.move(connection, edge, key, self._now(), call.caller, held, given)

        moved = await self._accessed(key, move)
        if moved.applied:
            self._applied(call, edge.name, key, source, target)
            self._news.told(self._changes.is_acquirable(target))
        else:
            self._tell_ignored(call, key, edge, moved.state)
        return moved

    async def move_all(self, keys: Sequence[str], source: int, target: int, call: Call) -> int:
        edge = self._edge(source, target, call)

        def move(connection: sqlite3.Connection) -> list[str]:
            now = self._now()
            return [key for key in keys if self._moved(connection, edge, key, now, call.caller)]

        moved = await self._write(move)
        for key in moved:
            self._applied(call, edge.name, key, source, target)
        self._news.told(bool(moved) and self._changes.is_acquirable(target))
        return len(moved)

    async def follow(self, key: str, path: Sequence[int], call: Call, **given: str | None) -> Moved:
        """Moves an entity along several edges in one step: all of them, or none."""
        edges = [self._edge(source, target, call) for source, target in zip(path, path[1:], strict=False)]

        def follow(connection: sqlite3.Connection) -> Moved:
            moved = Moved(False, path[0])
            for edge in edges:
                moved = self._changes.move(connection, edge, key, self._now(), call.caller, None, given)
                if not moved.applied:
                    raise Refused(moved)
            return moved

        try:
            moved = await self._accessed(key, follow)
        except Refused as refused:
            return refused.moved
        for edge in edges:
            self._applied(call, edge.name, key, edge.source, edge.target)
        return moved

    async def update(self, key: str, **changes: Any) -> Record:
        known = self._changes.statements
        if breached := sorted(name for name in changes if f"change_{name}" not in known):
            raise GuardBreach(
                f"{', '.join(breached)} of a {self._lifecycle.entity} changes only with its state, or never"
            )

        def update(connection: sqlite3.Connection) -> Record:
            row = None
            for name, value in changes.items():
                given = {"key": key, "value": stored(value)}
                row = connection.execute(known[f"change_{name}"], given).fetchone()
            if row is None:
                raise NoSuchEntity(key)
            return self._rows.read(row)

        return await self._write(update)

    async def delete(self, key: str, expected: int, call: Call) -> Moved:
        self._require_deleter(call)
        name = self._lifecycle.states[expected]

        def delete(connection: sqlite3.Connection) -> Moved:
            if expected in self._lifecycle.deletable:
                given = {"key": key, "expected": name}
                if connection.execute(self._changes.statements["delete"], given).fetchone():
                    return Moved(True, expected)
            return Moved(False, self._changes.state(connection, key))

        moved = await self._write(delete)
        if moved.applied:
            self._applied(call, "delete", key, expected, None)
        return moved

    async def purge(self, older_than_s: float, call: Call) -> int:
        self._require_deleter(call)
        purged = 0
        while True:
            given = {"now": self._now(), "older_than_s": older_than_s, "most": PURGED_AT_ONCE}
            rows = await self._write(
                lambda connection, given=given: connection.execute(
                    self._changes.statements["purge"], given
                ).fetchall()
            )
            for row in rows:
                self._applied(call, "delete", row[0], None, None)
            purged += len(rows)
            if len(rows) < PURGED_AT_ONCE:
                return purged

    # Leases.

    async def acquire(self, owner: str, call: Call) -> Record | None:
        edge = self._changes.entering
        require_edge(self._roles, self._lifecycle, call.caller, call.method, edge.source, edge.target)
        self._news.looked()

        def acquire(connection: sqlite3.Connection) -> tuple[Record | None, list[tuple[Transition, str]]]:
            now = self._now()
            swept = self._changes.sweep_on_access(connection, now)
            return self._changes.acquire(connection, owner, now, call.caller), swept

        record, swept = await self._write(acquire)
        self._tell_swept(swept, call)
        if record is not None:
            key = getattr(record, self._lifecycle.key)
            self._applied(call, edge.name, key, edge.source, edge.target, **self._changes.lease_of(record))
        return record

    async def renew(self, key: str, held: Held) -> bool:
        try:
            return await self.extend(key, held) is not None
        except (NoSuchEntity, Condition):
            return False

    async def extend(self, key: str, held: Held) -> Record | None:
        """Makes a lease longer; None where nobody has it. What of the lease is given must be so."""
        return await self._accessed(
            key, lambda connection: self._changes.renew(connection, key, held, self._now())
        )

    async def settle(
        self, key: str, target: int, held: Held, call: Call, *, final: bool = False, **given: str | None
    ) -> int:
        lease = self._changes.lease
        edge = self._edge(lease.state, target, call)

        def settle(connection: sqlite3.Connection) -> list[Transition]:
            now = self._now()
            return self._changes.settle(connection, edge, key, now, call.caller, held, given, final=final)

        taken = await self._accessed(key, settle)
        if not taken:
            raise self._roles["lease_lost"](holder=held.owner, key=key)  # type: ignore[call-arg]
        for each in taken:
            self._applied(call, each.name, key, each.source, each.target)
        self._news.told(self._changes.is_acquirable(taken[-1].target))
        return taken[-1].target

    async def sweep(self, transition: Transition, call: Call) -> int:
        if transition.due is None:
            raise GuardBreach(f"{transition.name} of a {self._lifecycle.entity} is not driven by the clock")
        require_edge(
            self._roles, self._lifecycle, call.caller, call.method, transition.source, transition.target
        )

        def sweep(connection: sqlite3.Connection) -> list[tuple[Transition, str]]:
            return self._changes.sweep(connection, transition, self._now(), SWEPT_AT_ONCE)

        if not self._read(f"due_{transition.name}", now=self._now(), most=1):
            return 0
        swept = await self._write(sweep)
        self._tell_swept(swept, call)
        return len({key for _, key in swept})

    async def awaited(self, timeout_s: float) -> bool:
        return await self._news.awaited(timeout_s)

    async def problem(self) -> str | None:
        try:
            await self._file.write(_nothing)
        except Unavailable as error:
            return f"the database file cannot be written: {error}"
        return None

    # All of them.

    async def _accessed(self, key: str, work: Work[Answer]) -> Answer:
        """Does something to one entity, after whatever was due to happen to it has happened."""
        if not self._changes.has_access_edges:
            return await self._write(work)

        def after(connection: sqlite3.Connection) -> tuple[list[tuple[Transition, str]], Any, Exception | None]:
            swept = self._changes.sweep_one(connection, key, self._now())
            try:
                connection.execute("SAVEPOINT accessed")
                answer, error = work(connection), None
            except (sqlite3.OperationalError, MemoryError):
                raise
            except Exception as raised:
                # What was due happens all the same.
                connection.execute("ROLLBACK TO accessed")
                answer, error = None, raised
            connection.execute("RELEASE accessed")
            return swept, answer, error

        swept, answer, error = await self._write(after)
        self._tell_swept(swept, None)
        if error is not None:
            raise error
        return answer  # type: ignore[no-any-return]

    async def _write(self, work: Work[Answer]) -> Answer:
        try:
            return await self._file.write(work)
        except Unavailable:
            raise self._unavailable() from None
        except sqlite3.IntegrityError as error:
            raise GuardBreach(f"the file refused a change of a {self._lifecycle.entity}: {error}") from None
        except (sqlite3.DataError, OverflowError) as error:
            raise Unstorable(f"{self._lifecycle.entity}: {error}") from None

    def _read(self, name: str, **given: Any) -> list[Any]:
        try:
            return self._file.read(self._changes.statements[name], {**self._changes.values, **given})
        except Unavailable:
            raise self._unavailable() from None

    def _moved(self, connection: sqlite3.Connection, edge: Transition, key: str, now: int, actor: str) -> bool:
        try:
            return self._changes.move(connection, edge, key, now, actor, None, {}).applied
        except NoSuchEntity:
            return False

    def _edge(self, source: int, target: int, call: Call) -> Transition:
        require_edge(self._roles, self._lifecycle, call.caller, call.method, source, target)
        return self._lifecycle.edges[source, target]

    def _now(self) -> int:
        return self._world.now_ms() * 1000

    def _names(self, states: Collection[int]) -> str:
        return json.dumps([self._lifecycle.states[state] for state in states or self._lifecycle.states])

    def _unavailable(self) -> Condition:
        make: Callable[..., Condition] = self._roles["store_unavailable"]
        return make()

    def _denied(self, call: Call, problem: str) -> Condition:
        make: Callable[..., Condition] = self._roles["permission_denied"]
        return make(caller=call.caller, method=call.method, problem=problem)

    def _require_deleter(self, call: Call) -> None:
        if call.caller not in self._lifecycle.deleters:
            allowed = ", ".join(sorted(self._lifecycle.deleters)) or "nobody"
            raise self._denied(call, f"only {allowed} may delete a {self._lifecycle.entity}")
