"""The PostgreSQL engine of a node: one connection pool for each database, shared by its entities."""

from __future__ import annotations

from typing import Any

from runtime.model.lifecycles import Lifecycle
from runtime.stores.engine import Engine, EngineContext
from runtime.stores.layouts.postgres import KeptInPostgres
from runtime.stores.postgres.database import Database
from runtime.stores.postgres.store import PostgresStore


class PostgresEngine(Engine):
    """Entities in tables of PostgreSQL."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self._databases: dict[str, Database] = {}

    def make_store(self, lifecycle: Lifecycle, record: type[Any]) -> PostgresStore[Any]:
        context, kept = self.context, lifecycle.stored_as(KeptInPostgres)
        assert kept is not None
        url = str(context.values[kept.url])
        if url not in self._databases:
            self._databases[url] = Database(url, name=context.name)
        database = self._databases[url]
        return PostgresStore(
            *(context.system, lifecycle, record, database, context.world, context.metrics, context.values),
            max_terminal=context.values.get(lifecycle.retained_by or "") or 0,
        )

    async def close(self) -> None:
        await super().close()
        for database in self._databases.values():
            await database.close()
