"""The engine of JSON files: a store that runs each step and writes the file, and its registration."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from runtime.model.lifecycles import Lifecycle
from runtime.observe.log import Log
from runtime.stores.contract import CREATION, NOTHING, Backlog, Cursor, HistoryEntry, Record, RecordPage
from runtime.stores.engine import Engine, EngineContext, register_engine
from runtime.stores.steps.store import Answer, StepStore
from tests.stores.toy.table import JsonTable

NAME = "json"
FOLDER = "JSON_FOLDER"
"""The variable with the folder of the files."""


class JsonStore(StepStore[Record]):
    """The entities of one kind in a JSON file that this process owns."""

    _table: JsonTable

    def __init__(
        self,
        context: EngineContext,
        lifecycle: Lifecycle,
        record: type[Record],
        tables: dict[str, JsonTable],
    ) -> None:
        super().__init__(context.system, lifecycle, record, context.world, context.metrics, context.values)
        path = Path(context.values[FOLDER]) / f"{lifecycle.entity}.json"
        bound = context.values.get(lifecycle.retained_by or "") or 0
        self._table = JsonTable(self._rules, record, path, self._now(), bound)
        self._tables = tables
        tables[lifecycle.entity] = self._table
        context.metrics.add_census(self)

    async def _run(self, step: Callable[..., Answer], *arguments: Any) -> Answer:
        """Run a step, and write the file even where it raised: what was due at the access stands."""
        try:
            return step(*arguments)
        finally:
            try:
                self._table.save()
            except OSError:
                raise self._condition("store_unavailable") from None

    async def get(self, key: str) -> Record | None:
        return await self._run(self._get, key, self._now())

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
        wakeups, free_at = self._table.wakeups, self._table.next_free()
        if key is not None:
            return await wakeups.wait_for(key, timeout_s)
        if free_at is None or (left_s := max(0.0, (free_at - self._now()) / 1e6)) > timeout_s:
            return await wakeups.wait_for_work(timeout_s)
        await wakeups.wait_for_work(left_s)
        return True

    async def health(self) -> str | None:
        return None

    def census(self) -> list[tuple[str, str, int, float]]:
        """Return how many entities there are in each state, and how old the oldest is."""
        return self._take_census(self._table)


class JsonEngine(Engine):
    """The files of a node, in the folder that a variable names."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self._tables: dict[str, JsonTable] = {}

    def make_store(self, lifecycle: Lifecycle, record: type[Any]) -> Any:
        return JsonStore(self.context, lifecycle, record, self._tables)

    async def open(self, log: Log, components: Collection[str]) -> None:
        """There is nothing to open."""

    async def close(self) -> None:
        """Every step has closed its file."""


register_engine(NAME, JsonEngine)
