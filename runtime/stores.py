"""The stores of a node: in memory, or in the server that the lifecycle names."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime.call import Call
from runtime.log import Log
from runtime.metrics import Metrics
from runtime.sqlite.migrations import migrate
from runtime.sweeper import sweep_regularly
from runtime.tables import Lifecycle, System
from runtime.wiring import memory_stores
from runtime.world import World

if TYPE_CHECKING:
    from runtime.postgres import Database, PostgresStore
    from runtime.sqlite import File, SqliteStore


class Stores:
    """Makes the stores that handlers ask for. Whatever a server keeps, all components of the node share."""

    def __init__(
        self, system: System, world: World, metrics: Metrics, values: Mapping[str, Any], node: str
    ) -> None:
        self._system = system
        self._metrics = metrics
        self._values = values
        self._node = node
        self._in_memory = memory_stores(system, world, metrics, values)
        self._databases: dict[str, Database] = {}
        self._kept: dict[str, PostgresStore[Any]] = {}
        self._world = world
        self._files: dict[str, File] = {}
        self._in_files: dict[str, SqliteStore[Any]] = {}

    def of(self, lifecycle: Lifecycle, record: type[Any]) -> Any:
        """The store of one kind of entity."""
        if lifecycle.in_sqlite is not None:
            return self._in_file(lifecycle)
        return self._in_memory(lifecycle, record) if lifecycle.kept is None else self._shared(lifecycle)

    async def open(self, log: Log, components: Collection[str]) -> None:
        """Brings the databases of some components up to date and begins to listen there."""
        for lifecycle in self._system.lifecycles.values():
            if lifecycle.kept is not None and not lifecycle.holders.isdisjoint(components):
                self._shared(lifecycle)
        for store in self._kept.values():
            await store.open(log)
        for file in self._files.values():
            file.open(lambda connection: migrate(connection, self._system.name))
        for held in self._in_files.values():
            await held.open(log)

    async def close(self) -> None:
        """Gives all connections back."""
        for store in self._kept.values():
            await store.close()
        for database in self._databases.values():
            await database.close()
        for file in self._files.values():
            await file.close()

    async def problem(self) -> str | None:
        """The first thing that is wrong with any of them."""
        kept: list[PostgresStore[Any] | SqliteStore[Any]] = [*self._kept.values(), *self._in_files.values()]
        for store in kept:
            if (problem := await store.problem()) is not None:
                return problem
        return None

    def sweepers(
        self, component: str, call: Call, stopping: asyncio.Event
    ) -> Iterator[Coroutine[Any, Any, None]]:
        """What a component drives by the clock, a loop for each edge."""
        for lifecycle in self._system.lifecycles.values():
            for edge in lifecycle.edges.values():
                if lifecycle.record is not None and edge.due is not None and edge.due.by == component:
                    every = float(self._values[edge.due.every])
                    store = self.of(lifecycle, lifecycle.record)
                    yield sweep_regularly(store, edge, every, call, stopping)

    def _in_file(self, lifecycle: Lifecycle) -> SqliteStore[Any]:
        from runtime.sqlite import File, SqliteStore

        kept, record = lifecycle.in_sqlite, lifecycle.record
        if kept is None or record is None:
            raise ValueError(f"{lifecycle.entity} is not kept in a file")
        if lifecycle.entity not in self._in_files:
            path = str(self._values[kept.path])
            if path not in self._files:
                self._files[path] = File(Path(path))
            self._in_files[lifecycle.entity] = SqliteStore(
                self._system, lifecycle, record, self._files[path], self._world, self._metrics, self._values
            )
        return self._in_files[lifecycle.entity]

    def _shared(self, lifecycle: Lifecycle) -> PostgresStore[Any]:
        from runtime.postgres import Database, PostgresStore

        kept, record = lifecycle.kept, lifecycle.record
        if kept is None or record is None:
            raise ValueError(f"{lifecycle.entity} is not kept by a server")
        if lifecycle.entity not in self._kept:
            url = str(self._values[kept.url])
            if url not in self._databases:
                self._databases[url] = Database(url, name=f"{self._system.name} {self._node}")
            self._kept[lifecycle.entity] = PostgresStore(
                self._system, lifecycle, record, self._databases[url], self._metrics, self._values
            )
        return self._kept[lifecycle.entity]
