"""Processes that share the bucket of a test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.runtime.stores.s3.kit import Process
from tests.support.s3.fixtures import Bucket
from tests.support.s3.proxy import S3Proxy

Make = Callable[..., Process]


@pytest.fixture(autouse=True)
def never_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing that takes long changes what is asked for next. Here only if a test wants it: not by load."""
    for module in ("claims.index_search", "due_transitions"):
        monkeypatch.setattr(f"runtime.stores.s3.{module}._SLOW_S", float("inf"))


@pytest.fixture
async def process(bucket: Bucket) -> AsyncIterator[Make]:
    """Makes processes; those that are to be harmed go through a proxy."""
    made: list[Process] = []

    def make(proxy: S3Proxy | None = None, **values: Any) -> Process:
        made.append(Process(bucket if proxy is None else bucket.through(proxy), **values))
        return made[-1]

    yield make
    for each in made:
        await each.close()
