"""Servers of its own for each test here, since all of them are stopped or killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.launch.embedded.redis import EmbeddedRedis
from tests.orchestrator.conftest import make_database
from tests.support.priority.stack import Servers, Stack


@pytest.fixture
def stack_on_own_redis(own_redis: EmbeddedRedis, postgres: EmbeddedPostgres, logs: Path) -> Iterator[Stack]:
    """A stack on a Redis that may be killed; no process yet."""
    with Stack(Servers(own_redis.url, make_database(postgres)), logs) as stack:
        yield stack
