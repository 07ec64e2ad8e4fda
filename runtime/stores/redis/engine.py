"""The Redis engine of a node: one client a server, the writer of the outbox, and the archive behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from runtime.call.context import Call
from runtime.model.lifecycles import Lifecycle
from runtime.observe.log import Log
from runtime.stores.engine import Engine, EngineContext
from runtime.stores.layouts.redis import KeptInRedis
from runtime.stores.redis.calls import Archive
from runtime.stores.redis.connection.blocking import BlockingRedisClient
from runtime.stores.redis.connection.client import RedisClient
from runtime.stores.redis.metrics.exporter import exporters
from runtime.stores.redis.store import RedisStore

if TYPE_CHECKING:
    from runtime.stores.postgres.database import Database


_URL = "REDIS_URL"
"""The variable that says where the server is, for entities that a deployment alone keeps in Redis."""


class RedisEngine(Engine):
    """Entities as hashes in Redis. `blocking` calls never wait for an event loop."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context)
        self._servers: dict[str, RedisClient] = {}
        self._databases: dict[str, Database] = {}

    def make_store(self, lifecycle: Lifecycle, record: type[Any]) -> RedisStore[Any]:
        context, kept = self.context, lifecycle.stored_as(KeptInRedis)
        archive = self._archive(lifecycle, record)
        return RedisStore(
            context.system,
            lifecycle,
            record,
            self._server(kept.url if kept else _URL),
            context.world,
            context.metrics,
            context.values,
            archive,
            max_terminal=context.values.get(lifecycle.retained_by or "") or 0,
        )

    async def open(self, log: Log, components: Collection[str]) -> None:
        await super().open(log, components)
        context = self.context
        for each in exporters(context.system, components, self._client_of, context.values):
            context.metrics.add_collector(each, each.refresh)

    async def close(self) -> None:
        await super().close()
        for database in self._databases.values():
            await database.close()
        for server in self._servers.values():
            await server.close()

    def background(
        self, component: str, call: Call, stopping: asyncio.Event
    ) -> Iterator[Coroutine[Any, Any, None]]:
        for lifecycle in self.context.system.lifecycles.values():
            kept = lifecycle.stored_as(KeptInRedis)
            if kept is not None and kept.outbox is not None and kept.outbox.by == component:
                yield self._write_history(lifecycle, call, stopping)

    async def _write_history(self, lifecycle: Lifecycle, call: Call, stopping: asyncio.Event) -> None:
        from runtime.stores.history import HistoryWriter

        context, kept = self.context, lifecycle.stored_as(KeptInRedis)
        assert kept is not None and kept.outbox is not None
        database, client = self._database(kept.outbox.url), self._client_of(lifecycle)
        writer = HistoryWriter(context.system, lifecycle, client, database, context.metrics, context.values)
        await writer.run(call, stopping)

    def _archive(self, lifecycle: Lifecycle, record: type[Any]) -> Archive | None:
        """Return the archive of the entities that Redis has forgotten."""
        kept, context = lifecycle.stored_as(KeptInRedis), self.context
        if kept is None or kept.outbox is None or not context.values.get(kept.outbox.url):
            return None
        # Without an archive the libraries of its database are not loaded.
        from runtime.stores.history import BlockingHistory, HistoryReader
        from runtime.stores.postgres.database import Database

        name, url = context.system.name, kept.outbox.url
        if context.blocking:
            make = partial(Database, str(context.values[url]), name=context.name)
            return BlockingHistory(name, lifecycle, record, make)
        return HistoryReader(name, lifecycle, record, self._database(url))

    def _server(self, variable: str) -> RedisClient:
        url = str(self.context.values[variable])
        if url not in self._servers:
            make = BlockingRedisClient if self.context.blocking else RedisClient
            self._servers[url] = make(url, name=self.context.name)
        return self._servers[url]

    def _database(self, variable: str) -> Database:
        from runtime.stores.postgres.database import Database

        url = str(self.context.values[variable])
        if url not in self._databases:
            self._databases[url] = Database(url, name=self.context.name)
        return self._databases[url]

    def _client_of(self, lifecycle: Lifecycle) -> Any:
        return self._server(lifecycle.require_storage(KeptInRedis).url).client()
