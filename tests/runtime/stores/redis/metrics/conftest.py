"""A real Redis for the tests of what is measured, empty for each of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from redis.asyncio import Redis

from runtime.launch.embedded.redis import EmbeddedRedis


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    made = EmbeddedRedis(tmp_path_factory.mktemp("redis"))
    made.start()
    yield made
    made.remove()


@pytest.fixture
async def client(server: EmbeddedRedis) -> AsyncIterator[Redis]:
    made: Redis = Redis.from_url(server.url, socket_timeout=60)
    await made.flushall()
    yield made
    await made.aclose()
