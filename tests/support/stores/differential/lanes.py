"""Where sequences run: a place of an engine, with one schema or set of scripts for all of a setting."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from functools import partial
from typing import Any

from runtime.observe.metrics import Metrics
from tests.runtime.hand_world import HandWorld
from tests.support.stores.differential.drawing import VARIABLES, Setting, make_world
from tests.support.stores.differential.memory_bucket import MemoryObjects
from tests.support.stores.differential.operations import Stores
from tests.support.stores.engines import (
    ENGINES,
    OPENED,
    SYSTEM,
    Open,
    SqlitePlace,
    close_opened,
    make_folder,
    open_json_at,
)
from tests.support.stores.lifecycles import COURIER
from tests.support.stores.postgres_engine import PostgresPlace
from tests.support.stores.redis_engine import SHARED, open_redis_at
from tests.support.stores.s3_engine import open_s3_stores

BUCKET = "s3-bucket"
"""The S3 engine on a bucket in memory."""
NAMES = sorted((*ENGINES, BUCKET))
"""The engines that sequences run on."""


class Lane:
    """A place where one sequence runs after the other, each in stores that are empty."""

    is_fresh = True
    """Whether there are other stores for each sequence, and not only other records."""

    def __init__(self, engine: str, setting: Setting) -> None:
        self.engine, self.setting = engine, setting
        self.world, self.metrics = HandWorld(), Metrics()
        self._open: Open
        self._stores: Stores | None = None

    async def begin(self, sequence: int) -> Stores:
        """Return the stores of a sequence: those of the one before, where it can leave nothing in them."""
        self.world.wall_ms = make_world(sequence).wall_ms
        self._open = await self.empty()
        if self._stores is None or self.is_fresh or not self.setting.can_reopen:
            self._stores = self.open_stores()
        return self._stores

    def open_stores(self) -> Stores:
        """Open stores of what there is."""
        main = self._open(self.setting.lifecycle)
        couriers = self._open(COURIER) if self.setting.has_couriers else main
        return Stores(self.world, main, couriers)

    async def empty(self) -> Open:
        """Return the function that opens empty stores."""
        return ENGINES[self.engine](self.world, self.metrics, VARIABLES, self.setting.bound)

    async def end(self) -> None:
        """Give back what a lane has beside memory."""


class JsonLane(Lane):
    """One folder, whose files are removed."""

    def __init__(self, engine: str, setting: Setting) -> None:
        super().__init__(engine, setting)
        self._folder = make_folder()

    async def empty(self) -> Open:
        for path in self._folder.iterdir():
            path.unlink()
        return open_json_at(self._folder, self.world, self.metrics, VARIABLES, self.setting.bound)

    async def end(self) -> None:
        shutil.rmtree(self._folder)


class SqliteLane(Lane):
    """One file, which gets its empty tables back before each sequence."""

    is_fresh = False

    def __init__(self, engine: str, setting: Setting) -> None:
        super().__init__(engine, setting)
        self._place = SqlitePlace()
        self._pristine: sqlite3.Connection | None = None

    async def empty(self) -> Open:
        given = self.world, self.metrics, VARIABLES, self.setting.bound
        if self._pristine is not None:
            with closing(sqlite3.connect(self._place.path)) as connection:
                self._pristine.backup(connection)
        return partial(self._place.open_store, *given)

    def open_stores(self) -> Stores:
        stores = super().open_stores()
        if self._pristine is None:
            self._pristine = sqlite3.connect(":memory:")
            with closing(sqlite3.connect(self._place.path)) as connection:
                connection.backup(self._pristine)
        return stores

    async def end(self) -> None:
        await close_opened()
        shutil.rmtree(self._place.path.parent)


class PostgresLane(Lane):
    """One schema, whose rows are deleted."""

    is_fresh = False
    _place: PostgresPlace | None = None

    async def empty(self) -> Open:
        if self._place is None:
            self._place = PostgresPlace(self.world, OPENED)
        else:
            await self._place.database.empty()
        return partial(
            self._place.open_store, SYSTEM, self.world, self.metrics, VARIABLES, self.setting.bound
        )

    async def end(self) -> None:
        if self._place is not None:
            await self._place.database.drop()


class RedisLane(Lane):
    """One prefix, so that the scripts stay the same, in a server that is emptied."""

    is_fresh = False
    _begun: tuple[Any, str] | None = None

    async def empty(self) -> Open:
        if self._begun is None:
            self._begun = SHARED.connect()
            OPENED.append(self._begun[0].close)
        server, prefix = self._begun
        await server.ask(("FLUSHDB",))
        given = self.world, self.metrics, VARIABLES, self.setting.bound
        return open_redis_at(SYSTEM, OPENED, server, prefix, *given)


class MemoryBucketLane(Lane):
    """A bucket in memory."""

    is_fresh = False

    def __init__(self, engine: str, setting: Setting) -> None:
        super().__init__(engine, setting)
        self._objects = MemoryObjects()
        given = self.world, self.metrics, VARIABLES, setting.bound
        self._open_store: Open = open_s3_stores(SYSTEM, *given, self._objects)

    async def empty(self) -> Open:
        self._objects.clear()
        return self._open_store


LANES: dict[str, type[Lane]] = {
    "json": JsonLane,
    "sqlite": SqliteLane,
    "postgres": PostgresLane,
    "redis": RedisLane,
    BUCKET: MemoryBucketLane,
}
"""Engines whose places cost more than a dictionary."""


def make_lane(engine: str, setting: Setting) -> Lane:
    """Make a lane of an engine."""
    return LANES.get(engine, Lane)(engine, setting)
