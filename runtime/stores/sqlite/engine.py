"""The SQLite engine of a node: one file, for all entities in it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from runtime.model.lifecycles import Lifecycle
from runtime.observe.log import Log
from runtime.stores.engine import Engine, EngineContext
from runtime.stores.layouts.sqlite import KeptInSqlite
from runtime.stores.sqlite.database import SqliteDatabase
from runtime.stores.sqlite.migrations import read_migrations
from runtime.stores.sqlite.store import SqliteStore


class SqliteEngine(Engine):
    """Entities in tables of a SQLite file that this process owns."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self._files: dict[str, SqliteDatabase] = {}

    def make_store(self, lifecycle: Lifecycle, record: type[Any]) -> SqliteStore[Any]:
        context, kept = self.context, lifecycle.stored_as(KeptInSqlite)
        assert kept is not None
        path = str(context.values[kept.path])
        file = self._files.setdefault(path, SqliteDatabase(Path(path)))
        bound = context.values.get(lifecycle.retained_by or "") or 0
        return SqliteStore(
            *(context.system, lifecycle, record, file, context.world, context.metrics, context.values),
            max_terminal=bound,
        )

    async def open(self, log: Log, components: Collection[str]) -> None:
        name = self.context.system.name
        for file in self._files.values():
            file.open(name, read_migrations(name))
        await super().open(log, components)

    async def close(self) -> None:
        await super().close()
        for file in self._files.values():
            await file.close()
