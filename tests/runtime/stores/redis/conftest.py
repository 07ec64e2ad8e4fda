"""One Redis for all tests of a session. Each test finds it empty, or asks for a server of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio

from runtime.launch.embedded.redis import EmbeddedRedis
from runtime.stores.redis import maintenance
from runtime.stores.redis.connection import client as servers
from tests.runtime.stores.redis.kit import Kit

MakeKit = Callable[..., Awaitable[Kit]]


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever stalls while it connects has lost nothing, and nothing is trimmed while a test counts."""
    monkeypatch.setattr(servers, "CONNECT_S", 60.0)
    monkeypatch.setattr(maintenance, "_TRIM_EVERY_S", 3600.0)


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    """A server; nothing in it has to outlive the session."""
    made = EmbeddedRedis(tmp_path_factory.mktemp("redis") / "shared", settings={"appendonly": "no"})
    made.start()
    yield made
    made.remove()


@pytest.fixture
async def redis_url(shared_server: EmbeddedRedis) -> str:
    """Where an empty Redis is."""
    client = redis.asyncio.Redis.from_url(shared_server.url)
    await client.flushall()
    await client.script_flush()
    await client.aclose()
    return shared_server.url


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    """A server that a test may do anything to; what it acknowledges is on disk."""
    made = EmbeddedRedis(tmp_path / "own", settings={"appendfsync": "always"})
    made.start()
    yield made
    made.remove()


@pytest.fixture
async def make_kit(redis_url: str) -> AsyncIterator[MakeKit]:
    """Makes stores over one Redis, as different processes would have them."""
    made: list[Kit] = []

    async def make(url: str = redis_url, level: str = "DEBUG", **values: Any) -> Kit:
        kit = await Kit(url, values, level).open()
        made.append(kit)
        return kit

    yield make
    for kit in made:
        await kit.close()


@pytest.fixture
async def kit(make_kit: MakeKit) -> Kit:
    return await make_kit()
