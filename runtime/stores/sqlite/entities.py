"""What all that is done to entities in a file shares: reading them, and how a change is made and told of."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from runtime.call.conditions import Condition
from runtime.call.context import Call
from runtime.call.guard import require_edge
from runtime.model.lifecycles import Lifecycle, Transition
from runtime.model.system import Event, System
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.audit import TransitionAudit
from runtime.stores.sqlite.changes import Changes, Swept
from runtime.stores.sqlite.file import File, Unavailable, Work, is_of_the_file
from runtime.stores.sqlite.news import News
from runtime.stores.sqlite.rows import moment, stored
from runtime.stores.sqlite.steps import WrongHolder
from runtime.stores.store import Change, GuardBreach, Record, Unstorable
from runtime.world import World

Answer = TypeVar("Answer")
STORE_READY = Event("store_ready", "INFO")


class Entities(Generic[Record]):
    """The entities of one kind, as they are read."""

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
        self._roles = system.roles
        self._lifecycle = lifecycle
        self._file = file
        self._world = world
        self._changes = Changes(system.name, lifecycle, record, values, world)
        self._rows = self._changes.rows
        self._telling = TransitionAudit(lifecycle, metrics)
        self._news = News()
        self._log: Log | None = None
        metrics.add_census(self)

    async def open(self, log: Log) -> None:
        """Says that the file is there."""
        self._log = log
        self._changes.open()
        log.write(STORE_READY, f"{self._file.path} has the schema", fields={"entity": self._lifecycle.entity})

    async def close(self) -> None:
        """Nothing to do: the file is closed by whoever opened it."""

    # Reading.

    async def get(self, key: str) -> Record | None:
        if self._changes.overdue(self._read, key):
            return await self._accessed(key, lambda connection: self._changes.get(connection, key))
        rows = self._read("get", key=key)
        return self._rows.read(rows[0]) if rows else None

    async def page(
        self, states: Collection[int], offset: int, size: int, *, newest_first: bool
    ) -> tuple[list[Record], bool]:
        name = "page_newest" if newest_first else "page_oldest"
        rows = self._read(name, states=self._words(states), offset=offset, size=size + 1)
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
        if unknown := sorted(equal.keys() - {*self._rows.names}):
            raise ValueError(f"a listing cannot be narrowed by {', '.join(unknown)}")
        given: dict[str, Any] = {f"record_{name}": equal.get(name) for name in self._rows.names}
        given.update(states=self._words(states), size=size, after=after[1] if after else None)
        rows = self._read("find", since=stored(since), until=stored(until), **given)
        return [self._rows.read(row) for row in rows]

    async def history(self, key: str) -> list[Change]:
        rows = self._read("history", key=key) if "history" in self._changes.statements else []
        return [
            Change(
                row[0] or "",
                row[1],
                row[2],
                row[3],
                moment(row[4]),
                edge=(row[5] or "") if len(row) > 5 else "",
            )
            for row in rows
        ]

    async def counts(self) -> dict[int, int]:
        return {self._rows.number[row[0]]: row[1] for row in self._read("census")}

    def census(self) -> Iterator[tuple[str, str, int, float]]:
        """How many there are in each state, and how old the oldest is."""
        with suppress(Unavailable):
            rows = self._file.read(self._changes.statements["census"], {})
            for word, count, since in rows:
                state = self._lifecycle.states[self._rows.number[word]]
                yield self._lifecycle.entity, state, count, self._changes.age_s(since)

    async def awaited(self, timeout_s: float) -> bool:
        return await self._news.awaited(timeout_s)

    async def changed(self, timeout_s: float) -> bool:
        return await self._news.changed(timeout_s)

    async def problem(self) -> str | None:
        try:
            await self._file.write(lambda _: None)
        except Unavailable as error:
            return f"the database file cannot be written: {error}"
        return None

    # What all of them share.

    async def _accessed(self, key: str, work: Work[Answer]) -> Answer:
        """Does something to one entity, after whatever was due to happen to it has happened."""
        swept: Swept = []

        def after(connection: sqlite3.Connection) -> tuple[Any, Exception | None]:
            swept[:] = self._changes.sweep_one(connection, key)
            if not swept:
                return work(connection), None
            connection.execute("SAVEPOINT accessed")
            try:
                return work(connection), None
            except Exception as error:
                if is_of_the_file(error):
                    raise
                # What was due has happened all the same.
                connection.execute("ROLLBACK TO accessed")
                return None, error

        answer, error = await self._write(after)
        self._tell_swept(swept, None)
        if error is not None:
            raise self._refusal(error) from None
        return answer  # type: ignore[no-any-return]

    async def _write(self, work: Work[Answer]) -> Answer:
        try:
            return await self._file.write(work)
        except (Unavailable, WrongHolder, sqlite3.Error, OverflowError) as error:
            raise self._refusal(error) from None

    def _read(self, name: str, **given: Any) -> list[Any]:
        try:
            return self._file.read(self._changes.statements[name], {**self._changes.values, **given})
        except Unavailable as error:
            raise self._refusal(error) from None

    def _refusal(self, error: Exception) -> Exception:
        """What the file refused, as the caller is told it."""
        entity = self._lifecycle.entity
        if isinstance(error, Unavailable):
            make: Callable[..., Condition] = self._roles["store_unavailable"]
            return make()
        if isinstance(error, WrongHolder):
            return self._lost(error.key, error.holder, stale=error.stale)
        if isinstance(error, sqlite3.IntegrityError):
            return GuardBreach(f"the file refused a change of a {entity}: {error}")
        if isinstance(error, (sqlite3.Error, OverflowError)):
            return Unstorable(f"{entity}: {error}")
        return error

    def _lost(self, key: str, holder: str, *, stale: bool = False) -> Condition:
        role = "lease_stale" if stale and "lease_stale" in self._roles else "lease_lost"
        make: Callable[..., Condition] = self._roles[role]
        return make(key=key) if role == "lease_stale" else make(holder=holder, key=key)

    def _told(
        self, call: Call, name: str, key: str, source: int | None, target: int | None, /, **known: object
    ) -> None:
        self._telling.record_applied(call, name, key, source, target, known=known)
        self._news.tell(acquirable=target is not None and self._changes.is_acquirable(target))

    def _tell_swept(self, swept: Swept, call: Call | None) -> None:
        for edge, key in swept:
            driver = self._changes.driver(edge)
            if (log := call.log if call is not None else self._log) is not None:
                acting = call or Call(world=self._world, log=log, caller=driver)
                self._telling.record_applied(acting, edge.name, key, edge.source, edge.target, actor=driver)
            self._news.tell(acquirable=self._changes.is_acquirable(edge.target))

    def _edge(self, source: int, target: int, call: Call, name: str = "") -> Transition:
        return require_edge(self._roles, self._lifecycle, call.caller, call.method, source, target, name)

    def _words(self, states: Collection[int]) -> str:
        return json.dumps([self._rows.word[state] for state in states or self._lifecycle.states])

    def _denied(self, call: Call, problem: str) -> Condition:
        make: Callable[..., Condition] = self._roles["permission_denied"]
        return make(caller=call.caller, method=call.method, problem=problem)

    def _require_deleter(self, call: Call) -> None:
        if call.caller not in self._lifecycle.deleters:
            allowed = some(self._lifecycle.deleters) or "nobody"
            raise self._denied(call, f"only {allowed} may delete a {self._lifecycle.entity}")


def some(names: Collection[str]) -> str:
    return ", ".join(sorted(names))
