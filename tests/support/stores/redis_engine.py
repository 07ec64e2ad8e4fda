"""The engine in Redis for the contract suite: one server for all tests of a process."""

from __future__ import annotations

import atexit
import itertools
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from runtime.launch.embedded.redis import EmbeddedRedis
from runtime.model.lifecycles import Lifecycle
from runtime.model.system import System
from runtime.observe.metrics import Metrics
from runtime.stores.contract import EntityStore
from runtime.stores.redis.connection.client import RedisClient
from runtime.stores.redis.store import RedisStore
from runtime.world import World
from tests.support.stores.lifecycles import ALL


class SharedServer:
    """One server for all tests of a process."""

    def __init__(self) -> None:
        self._server: EmbeddedRedis | None = None
        self._folder = ""
        self._numbers = itertools.count()

    def connect(self) -> tuple[RedisClient, str]:
        """Return connections of their own, and what all keys begin with there."""
        if self._server is None:
            self._folder = tempfile.mkdtemp(prefix="charter-stores-")
            self._server = EmbeddedRedis(Path(self._folder) / "redis", settings={"appendonly": "no"})
            self._server.start()
            atexit.register(self._stop)
        return RedisClient(self._server.url, name="test"), f"t{next(self._numbers)}:"

    def _stop(self) -> None:
        if self._server is not None:
            self._server.remove()
        shutil.rmtree(self._folder, ignore_errors=True)


SHARED = SharedServer()
Close = Callable[[], Awaitable[None]]


def open_redis(
    system: System,
    opened: list[Close],
    world: World,
    metrics: Metrics,
    values: Mapping[str, Any],
    max_terminal: int,
) -> Callable[[Lifecycle], EntityStore[Any]]:
    """Open stores in a part of the server that is empty, on the time of a world."""
    server, prefix = SHARED.connect()
    opened.append(server.close)
    return open_redis_at(system, opened, server, prefix, world, metrics, values, max_terminal)


def open_redis_at(
    system: System,
    opened: list[Close],
    server: RedisClient,
    prefix: str,
    world: World,
    metrics: Metrics,
    values: Mapping[str, Any],
    max_terminal: int,
) -> Callable[[Lifecycle], EntityStore[Any]]:
    """Open stores whose keys begin with a prefix."""
    system = replace(system, lifecycles={each.entity: each for each in ALL})

    def open_store(lifecycle: Lifecycle) -> EntityStore[Any]:
        assert lifecycle.record is not None
        store: RedisStore[Any] = RedisStore(
            system,
            lifecycle,
            lifecycle.record,
            server,
            world,
            metrics,
            values,
            max_terminal=max_terminal,
            clock=lambda: world.now_ms() * 1000,
            prefix=prefix,
        )
        opened.append(store.close)
        return store

    return open_store
