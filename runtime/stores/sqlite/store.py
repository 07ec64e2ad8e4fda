"""The store in SQLite: a step is one transaction, in which the semantics say what becomes of a record."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

from runtime.call.conditions import Failure
from runtime.call.context import Call
from runtime.model.lifecycles import Lifecycle, Transition
from runtime.model.system import Event, System
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.contract import (
    CREATION,
    NOTHING,
    Backlog,
    Cursor,
    ExchangeResult,
    HistoryEntry,
    LeaseSettlement,
    Record,
    RecordPage,
)
from runtime.stores.semantics.clocks import is_due, is_in_force
from runtime.stores.semantics.rules import Change, Clock
from runtime.stores.sqlite.codec import RowCodec
from runtime.stores.sqlite.database import FileUnavailable, SqliteDatabase, is_of_the_file
from runtime.stores.sqlite.statements import Statements, read_statements
from runtime.stores.sqlite.table import SqliteTable
from runtime.stores.steps.store import Answer, StepStore
from runtime.stores.store import GuardBreach, NoSuchEntity
from runtime.stores.wakeups import Wakeups
from runtime.world import World

STORE_READY = Event("store_ready", "INFO")
_REFUSALS = (Failure, GuardBreach, NoSuchEntity)
"""What a step raises before it has written anything but what was due anyway."""


class SqliteStore(StepStore[Record]):
    """The entities of one kind, in a file that this process alone has."""

    _table: SqliteTable

    def __init__(
        self,
        system: System,
        lifecycle: Lifecycle,
        record: type[Record],
        file: SqliteDatabase,
        world: World,
        metrics: Metrics,
        values: Mapping[str, Any] = NOTHING,
        *,
        max_terminal: int = 0,
        statements: Statements | None = None,
    ) -> None:
        super().__init__(system, lifecycle, record, world, metrics, values)
        self._file = file
        self._wakeups = Wakeups()
        self._effects: list[Callable[[], None]] = []
        """What a step has to log and count, once it is on the disk."""
        make = partial(
            SqliteTable,
            self._rules,
            RowCodec(lifecycle, record),
            statements or read_statements(system.name, lifecycle.entity),
            self._wakeups,
            self._now(),
            max_terminal=max_terminal,
        )
        self._table, self._reading = make(), make()
        self._tables = file.tables
        file.add(lifecycle.entity, self._table, self._reading)
        metrics.add_census(self)

    async def open(self, log: Log) -> None:
        """Say that the file is there."""
        self._log = log
        self._table.opened = self._now()
        log.write(STORE_READY, f"{self._file.path} has the schema", fields={"entity": self._entity})

    async def close(self) -> None:
        """Nothing to do: the file is closed by whoever opened it."""

    # Steps.

    async def _run(self, step: Callable[..., Answer], *arguments: Any, is_long: bool = False) -> Answer:
        try:
            done = await self._file.write(partial(self._take_step, step, arguments), is_long=is_long)
        except (FileUnavailable, sqlite3.DatabaseError) as failure:
            raise self._unavailable(failure) from None
        answer, error, effects, announced = done
        for effect in effects:
            effect()
        for key, is_claimable in announced:
            self._wakeups.announce(key, is_claimable=is_claimable)
        if error is not None:
            raise error
        return answer  # type: ignore[no-any-return]

    def _take_step(
        self, step: Callable[..., Any], arguments: Sequence[Any], _connection: sqlite3.Connection
    ) -> tuple[Any, Exception | None, list[Callable[[], None]], list[tuple[str, bool]]]:
        """Take a step in a transaction. A refusal keeps what was due, and anything else nothing."""
        for table in self._file.tables.values():
            table.begin()
        self._effects = []
        error: Exception | None = None
        answer = None
        try:
            answer = step(*arguments)
        except _REFUSALS as refusal:
            error = refusal
        return answer, error, self._effects, self._table.announced

    def _commit(
        self, key: str, old: Any, new: Any, changes: Sequence[Change], *rest: Any, **more: Any
    ) -> Any:
        edges = [change for change in changes if isinstance(change, Transition)]
        if len(edges) > 1:
            self._table.pass_through(key, [edge.target for edge in edges[:-1]])
        return super()._commit(key, old, new, changes, *rest, **more)

    def _audit(self, *arguments: Any, **more: Any) -> None:
        self._effects.append(partial(super()._audit, *arguments, **more))

    def _audit_ignored(self, *arguments: Any) -> None:
        self._effects.append(partial(super()._audit_ignored, *arguments))

    def _unavailable(self, failure: Exception) -> Exception:
        if isinstance(failure, FileUnavailable) or is_of_the_file(failure):
            return self._condition("store_unavailable")
        return failure

    async def settle_many(
        self, settlements: Sequence[LeaseSettlement], call: Call
    ) -> Sequence[int | Exception]:
        try:
            return await super().settle_many(settlements, call)
        except Failure as failure:
            return [failure] * len(settlements)

    async def exchange(
        self,
        owner: str,
        settlements: Sequence[LeaseSettlement],
        free: int,
        call: Call,
        *,
        where: Mapping[str, object] = NOTHING,
        capabilities: Collection[str] | None = None,
    ) -> ExchangeResult[Record]:
        try:
            return await super().exchange(
                owner, settlements, free, call, where=where, capabilities=capabilities
            )
        except Failure as failure:
            if not settlements or not isinstance(failure, self._roles["store_unavailable"]):
                raise
            return ExchangeResult((), [failure] * len(settlements))

    async def purge(self, older_than_s: float, call: Call) -> int:
        return await self._run(self._purge, older_than_s, call, is_long=True)

    async def run_due(self, change: str, call: Call) -> int:
        now, clocks = self._now(), self._admit_clock(change, call)
        if not self._read(self._is_any_due, clocks, now):
            return 0
        return await super().run_due(change, call)

    # Reading what is committed. It waits for nothing, and is short enough for the event loop.

    def _read(self, look: Callable[..., Answer], *arguments: Any) -> Answer:
        self._reading.begin()
        try:
            return look(*arguments)
        except (FileUnavailable, sqlite3.DatabaseError) as failure:
            raise self._unavailable(failure) from None

    async def get(self, key: str) -> Record | None:
        record: Record | None = self._read(self._reading.records.get, key)
        if record is None or self._is_timeless:
            return record
        now = self._now()
        if self._read(self._is_overdue, record, now):
            return await self._run(self._get, key, now)
        return record

    async def find(
        self,
        *,
        states: Collection[int] = (),
        equal: Mapping[str, object] = NOTHING,
        since: datetime | int | None = None,
        until: datetime | int | None = None,
        after: Cursor | None = None,
        offset: int = 0,
        size: int = 50,
        newest_first: bool = True,
    ) -> RecordPage[Record]:
        await self._forget()
        asked = (states, equal, since, until, after, offset, size, newest_first)
        return self._read(self._find, self._reading, *asked)

    async def history(self, key: str) -> list[HistoryEntry]:
        await self._forget()
        return self._read(self._reading.read_history, key, CREATION)

    async def count(
        self, states: Collection[int] = (), *, since: datetime | int | None = None
    ) -> dict[int, int]:
        await self._forget()
        return self._read(self._count, self._reading, states, since)

    async def backlog(self) -> dict[int, Backlog]:
        await self._forget()
        return self._read(self._backlog, self._reading)

    async def paused(self) -> frozenset[int]:
        return self._read(lambda: self._reading.paused)

    async def wait(self, timeout_s: float, *, key: str | None = None) -> bool:
        wakeups, now = self._wakeups, self._now()
        if key is not None:
            return await wakeups.wait_for(key, timeout_s)
        if not wakeups.has_news and self._reading.claims is not None:
            free_at = self._read(self._reading.claims.next_free, now)
            left_s = None if free_at is None else max(0.0, (free_at - now) / 1e6)
            if left_s is not None and left_s <= timeout_s:
                await wakeups.wait_for_work(left_s)
                return True
        return await wakeups.wait_for_work(timeout_s)

    async def health(self) -> str | None:
        try:
            await self._file.write(lambda _: None)
        except FileUnavailable as error:
            return f"the database file cannot be written: {error}"
        return None

    def census(self) -> list[tuple[str, str, int, float]]:
        """Return how many entities there are in each state, and how old the oldest is."""
        with suppress(Failure):
            return self._read(self._take_census, self._reading)
        return []

    async def _forget(self) -> None:
        """Forget what has ended long ago, before it is seen."""
        if self._rules.retained_s is not None and self._read(self._reading.long_ended, self._now()):
            await self._run(self._table.forget, self._now(), is_long=True)

    def _is_overdue(self, record: Any, now: int) -> bool:
        """Whether an access to an entity changes it first."""
        if self._reading.long_ended(now):
            return True
        rules, opened = self._rules, self._table.opened
        in_force = [each for each in rules.on_access if is_in_force(rules, each.due, now, opened)]
        return any(each.due.holder_in is not None or is_due(rules, each, record, now) for each in in_force)

    def _is_any_due(self, clocks: Sequence[Clock], now: int) -> bool:
        """Whether a change may be due for any entity."""
        if self._reading.long_ended(now):
            return True
        for clock in clocks:
            if not is_in_force(self._rules, clock.due, now, self._table.opened):
                continue
            if clock.due.at is None or self._reading.dues[clock.number].due(now, 1):
                return True
        return False
