"""The stores of a node: in memory, or in the server that the lifecycle names."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime.call.context import Call
from runtime.model.lifecycles import Due, Lifecycle, Shift, Transition
from runtime.model.system import System
from runtime.node.wiring import make_memory_stores
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.sweeper import Sweep, sweep_regularly
from runtime.world import World

if TYPE_CHECKING:
    from runtime.stores.postgres import Database, PostgresStore
    from runtime.stores.redis import RedisStore, Server
    from runtime.stores.redis.store import Past
    from runtime.stores.s3.client.objects import Objects, Place
    from runtime.stores.s3.store import S3Store
    from runtime.stores.sqlite import File, SqliteStore

    KeptStores = PostgresStore[Any] | RedisStore[Any] | S3Store[Any] | SqliteStore[Any]


class Stores:
    """Makes the stores that handlers ask for. Whatever a server keeps, all components of the node share.

    Those in Redis can be `blocking`: no call of them waits for an event loop, and none is ever opened.
    """

    def __init__(
        self,
        system: System,
        world: World,
        metrics: Metrics,
        values: Mapping[str, Any],
        node: str,
        *,
        blocking: bool = False,
    ) -> None:
        self._system = system
        self._metrics = metrics
        self._values = values
        self._name = f"{system.name} {node}"
        self._world = world
        self._blocking = blocking
        self._in_memory = make_memory_stores(system, world, metrics, values)
        self._databases: dict[str, Database] = {}
        self._servers: dict[str, Server] = {}
        self._files: dict[str, File] = {}
        self._buckets: dict[Place, Objects] = {}
        self._shared: dict[str, KeptStores] = {}

    def of(self, lifecycle: Lifecycle, record: type[Any]) -> Any:
        """The store of one kind of entity."""
        if _is_kept(lifecycle):
            return self._kept(lifecycle)
        return self._in_memory(lifecycle, record)

    async def open(self, log: Log, components: Collection[str]) -> None:
        """Brings the servers of some components up to date and begins to listen there."""
        for lifecycle in self._system.lifecycles.values():
            if _is_kept(lifecycle) and not lifecycle.holders.isdisjoint(components):
                self._kept(lifecycle)
        for file in self._files.values():
            file.open(self._system.name)
        for entity, store in self._shared.items():
            if self._system.lifecycles[entity].in_s3 is not None:
                await self._s3(self._system.lifecycles[entity]).open(log, components)
            else:
                await store.open(log)
        self._export(components)

    async def close(self) -> None:
        """Gives all connections back."""
        for store in self._shared.values():
            await store.close()
        for database in self._databases.values():
            await database.close()
        for server in self._servers.values():
            await server.close()
        for file in self._files.values():
            await file.close()
        for bucket in self._buckets.values():
            await bucket.close()

    async def problem(self) -> str | None:
        """The first thing that is wrong with any of them."""
        for store in self._shared.values():
            if (problem := await store.problem()) is not None:
                return problem
        return None

    def sweepers(
        self, component: str, call: Call, stopping: asyncio.Event
    ) -> Iterator[Coroutine[Any, Any, None]]:
        """What a component drives by the clock, a loop for each clock; and the histories that it writes."""
        clocks: dict[str, list[tuple[bool, Sweep]]] = {}
        for lifecycle in self._system.lifecycles.values():
            for due, sweep in self._sweeps(lifecycle, component):
                clocks.setdefault(due.every, []).append((due.holder_in is not None, sweep))
        for every, found in clocks.items():
            if not float(self._values[every]):
                continue
            # What follows from the state of a holder comes after what changes that state.
            ordered = [sweep for late in (False, True) for is_late, sweep in found if is_late is late]
            every_s = float(self._values[every])
            # Whoever looks at everything does not do so at the start, when many others may start too.
            later_s = self._world.uniform(0, every_s) if every in self._repair_clocks() else 0.0
            yield sweep_regularly(ordered, every_s, call, stopping, self._metrics, first_after_s=later_s)
        for lifecycle in self._system.lifecycles.values():
            kept = lifecycle.in_redis
            if kept is not None and kept.outbox is not None and kept.outbox.by == component:
                yield self._writer(lifecycle, call, stopping)

    def _repair_clocks(self) -> set[str]:
        kept = [lifecycle.in_s3 for lifecycle in self._system.lifecycles.values() if lifecycle.in_s3]
        return {each.repairs.every for each in kept if each.repairs is not None}

    def _sweeps(self, lifecycle: Lifecycle, component: str) -> Iterator[tuple[Due, Sweep]]:
        """Everything of an entity that a component drives by the clock."""
        entity = lifecycle.entity
        if lifecycle.kept is not None or lifecycle.in_sqlite is not None:
            for edge in lifecycle.edges.values():
                if edge.due is not None and edge.due.by == component:
                    plain = self._sqlite(lifecycle) if lifecycle.in_sqlite else self._postgres(lifecycle)
                    yield edge.due, Sweep(entity, edge.name, partial(plain.sweep, edge))
        elif lifecycle.in_redis is not None:
            changes: list[tuple[Due | None, Transition | Shift | None]] = [
                *((due, edge) for edge in lifecycle.edges.values() for due in (edge.due, edge.also_due)),
                *((shift.due, shift) for shift in lifecycle.shifts.values()),
                (lifecycle.deletion_due, None),
            ]
            for due, change in changes:
                if due is not None and due.by == component:
                    name = "delete" if change is None else change.name
                    step = partial(self._redis(lifecycle).sweep, change, due)
                    yield due, Sweep(entity, f"{name}_of_holder" if due.holder_in is not None else name, step)
        elif lifecycle.in_s3 is not None:
            bucket = self._s3(lifecycle)
            for edge in lifecycle.edges.values():
                if edge.due is not None and edge.due.by == component:
                    yield edge.due, Sweep(entity, edge.name, partial(bucket.sweep, edge))
            repairs = lifecycle.in_s3.repairs
            if repairs is not None and repairs.by == component:
                yield Due(None, repairs.by, repairs.every), Sweep(entity, "repair", bucket.repair)

    def _kept(self, lifecycle: Lifecycle) -> KeptStores:
        if lifecycle.in_s3 is not None:
            return self._s3(lifecycle)
        if lifecycle.in_sqlite is not None:
            return self._sqlite(lifecycle)
        return self._postgres(lifecycle) if lifecycle.kept is not None else self._redis(lifecycle)

    def _sqlite(self, lifecycle: Lifecycle) -> SqliteStore[Any]:
        from runtime.stores.sqlite import File, SqliteStore

        kept, record = lifecycle.in_sqlite, lifecycle.record
        if kept is None or record is None:
            raise ValueError(f"{lifecycle.entity} is not kept in a file")
        store = self._shared.get(lifecycle.entity)
        if not isinstance(store, SqliteStore):
            path = str(self._values[kept.path])
            file = self._files.setdefault(path, File(Path(path)))
            store = self._shared[lifecycle.entity] = SqliteStore(
                self._system, lifecycle, record, file, self._world, self._metrics, self._values
            )
        return store

    def _postgres(self, lifecycle: Lifecycle) -> PostgresStore[Any]:
        from runtime.stores.postgres import PostgresStore

        kept, record = lifecycle.kept, lifecycle.record
        if kept is None or record is None:
            raise ValueError(f"{lifecycle.entity} is not kept by PostgreSQL")
        store = self._shared.get(lifecycle.entity)
        if not isinstance(store, PostgresStore):
            store = self._shared[lifecycle.entity] = PostgresStore(
                self._system, lifecycle, record, self._database(kept.url), self._metrics, self._values
            )
        return store

    def _redis(self, lifecycle: Lifecycle) -> RedisStore[Any]:
        from runtime.stores.redis import RedisStore

        kept, record = lifecycle.in_redis, lifecycle.record
        if kept is None or record is None:
            raise ValueError(f"{lifecycle.entity} is not kept by Redis")
        store = self._shared.get(lifecycle.entity)
        if not isinstance(store, RedisStore):
            past = self._past(lifecycle, record)
            store = self._shared[lifecycle.entity] = RedisStore(
                self._system, lifecycle, record, self._server(kept.url), self._metrics, self._values, past
            )
        return store

    def _past(self, lifecycle: Lifecycle, record: type[Any]) -> Past | None:
        """Where the entities are that Redis has forgotten."""
        kept = lifecycle.in_redis
        if kept is None or kept.outbox is None or not self._values.get(kept.outbox.url):
            return None
        from runtime.stores.history import BlockingHistory, HistoryReader
        from runtime.stores.postgres import Database

        name, url = self._system.name, kept.outbox.url
        if self._blocking:
            make = partial(Database, str(self._values[url]), name=self._name)
            return BlockingHistory(name, lifecycle, record, make)
        return HistoryReader(name, lifecycle, record, self._database(url))

    def _s3(self, lifecycle: Lifecycle) -> S3Store[Any]:
        from runtime.stores.s3.client.credentials import Credentials
        from runtime.stores.s3.client.errors import Refused
        from runtime.stores.s3.client.objects import Objects
        from runtime.stores.s3.client.place import place_of
        from runtime.stores.s3.store import S3Store
        from runtime.stores.store import StoreUnusable

        kept = lifecycle.in_s3
        if kept is None:
            raise ValueError(f"{lifecycle.entity} is not kept in a bucket")
        store = self._shared.get(lifecycle.entity)
        if not isinstance(store, S3Store):
            place = place_of(kept, self._values)
            if place not in self._buckets:
                try:
                    self._buckets[place] = Objects(place, Credentials(self._values))
                except Refused as error:
                    raise StoreUnusable(str(error)) from None
            store = self._shared[lifecycle.entity] = S3Store(
                self._system, lifecycle, self._buckets[place], self._world, self._metrics, self._values
            )
        return store

    def _database(self, variable: str) -> Database:
        from runtime.stores.postgres import Database

        url = str(self._values[variable])
        if url not in self._databases:
            self._databases[url] = Database(url, name=self._name)
        return self._databases[url]

    def _server(self, variable: str) -> Server:
        from runtime.stores.redis import BlockingServer, Server

        url = str(self._values[variable])
        if url not in self._servers:
            make = BlockingServer if self._blocking else Server
            self._servers[url] = make(url, name=self._name)
        return self._servers[url]

    def _export(self, components: Collection[str]) -> None:
        """Adds what the servers count for all processes to the metrics of this one."""
        if not any(each.in_redis is not None for each in self._system.lifecycles.values()):
            return
        from runtime.stores.redis.metrics.exporter import exporters

        for each in exporters(self._system, components, self._client_of, self._values):
            self._metrics.add_collector(each, each.refresh)

    def _client_of(self, lifecycle: Lifecycle) -> Any:
        assert lifecycle.in_redis is not None
        return self._server(lifecycle.in_redis.url).client()

    async def _writer(self, lifecycle: Lifecycle, call: Call, stopping: asyncio.Event) -> None:
        from runtime.stores.history import HistoryWriter

        kept = lifecycle.in_redis
        assert kept is not None and kept.outbox is not None
        database, client = self._database(kept.outbox.url), self._client_of(lifecycle)
        writer = HistoryWriter(self._system, lifecycle, client, database, self._metrics, self._values)
        await writer.run(call, stopping)


def _is_kept(lifecycle: Lifecycle) -> bool:
    """Whether an entity outlives the process."""
    kept = (lifecycle.kept, lifecycle.in_redis, lifecycle.in_sqlite, lifecycle.in_s3)
    return any(each is not None for each in kept)
