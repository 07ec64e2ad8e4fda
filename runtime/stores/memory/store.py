"""The store in memory. Each step is atomic, as nothing is awaited within it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any

from runtime.model.lifecycles import Lifecycle
from runtime.model.system import System
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.contract import (
    CREATION,
    NOTHING,
    Backlog,
    Cursor,
    HistoryEntry,
    Record,
    RecordPage,
)
from runtime.stores.memory.table import MemoryTable
from runtime.stores.steps.store import Answer, StepStore
from runtime.world import World


class MemoryStore(StepStore[Record]):
    """The entities of one kind in memory.

    `tables` are those of all entities of a process: stores of the same entity share one.
    """

    _table: MemoryTable

    def __init__(
        self,
        system: System,
        lifecycle: Lifecycle,
        record: type[Record],
        world: World,
        metrics: Metrics,
        values: Mapping[str, Any] = NOTHING,
        *,
        max_terminal: int = 0,
        tables: dict[str, MemoryTable] | None = None,
        log: Log | None = None,
    ) -> None:
        super().__init__(system, lifecycle, record, world, metrics, values, log=log)
        tables = {} if tables is None else tables
        self._tables = tables
        table = tables.get(lifecycle.entity)
        if table is None:
            table = MemoryTable(self._rules, self._now(), max_terminal=max_terminal)
            tables[lifecycle.entity] = table
            metrics.add_census(self)
        self._table = table

    async def _run(self, step: Callable[..., Answer], *arguments: Any) -> Answer:
        return step(*arguments)

    async def get(self, key: str) -> Record | None:
        if self._is_timeless:
            return self._table.records.get(key)
        return self._get(key, self._now())  # type: ignore[no-any-return]

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
        self._table.forget(self._now())
        return self._find(self._table, states, equal, since, until, after, offset, size, newest_first)

    async def history(self, key: str) -> list[HistoryEntry]:
        self._table.forget(self._now())
        return self._table.read_history(key, CREATION)

    async def count(
        self, states: Collection[int] = (), *, since: datetime | int | None = None
    ) -> dict[int, int]:
        self._table.forget(self._now())
        return self._count(self._table, states, since)

    async def backlog(self) -> dict[int, Backlog]:
        self._table.forget(self._now())
        return self._backlog(self._table)

    async def paused(self) -> frozenset[int]:
        return self._table.paused

    async def wait(self, timeout_s: float, *, key: str | None = None) -> bool:
        wakeups = self._table.wakeups
        if key is not None:
            return await wakeups.wait_for(key, timeout_s)
        if not wakeups.has_news and self._table.claims is not None:
            free_at = self._table.claims.next_free()
            left_s = None if free_at is None else max(0.0, (free_at - self._now()) / 1e6)
            if left_s is not None and left_s <= timeout_s:
                await wakeups.wait_for_work(left_s)
                return True
        return await wakeups.wait_for_work(timeout_s)

    async def health(self) -> str | None:
        return None

    def census(self) -> list[tuple[str, str, int, float]]:
        """Return how many entities there are in each state, and how old the oldest is."""
        return self._take_census(self._table)
