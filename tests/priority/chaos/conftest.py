"""Servers of its own for each test here: all of them are broken."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.embedded.postgres import EmbeddedPostgres
from runtime.embedded.redis import EmbeddedRedis
from tests.orchestrator.conftest import make_database
from tests.support.priority.stack import Servers, Stack


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    """A Redis that has every write on disk before it answers."""
    made = EmbeddedRedis(tmp_path / "redis", settings={"appendfsync": "always"})
    made.start()
    yield made
    made.remove()


@pytest.fixture
def shaken(own_redis: EmbeddedRedis, postgres: EmbeddedPostgres, logs: Path) -> Iterator[Stack]:
    """A stack on a Redis that may be killed; no process yet."""
    with Stack(Servers(own_redis.url, make_database(postgres)), logs) as made:
        yield made
