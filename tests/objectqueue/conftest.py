"""A crew for each test, on a bucket of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from runtime.stores.s3.client.objects import Objects
from tests.support.objectqueue.crew import Crew, Skewed
from tests.support.s3.fixtures import Bucket
from tests.support.s3.proxy import S3Proxy


@pytest.fixture
async def crew(bucket: Bucket, tmp_path: Path) -> AsyncIterator[Crew]:
    """Workers that talk to the server itself."""
    made = Crew(bucket, tmp_path)
    yield made
    await made.close()


@pytest.fixture
def any_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time passes when a test says so: the nodes of its process take it that the store's clock goes along."""
    monkeypatch.setattr(Objects, "clock_offset_s", None)


@pytest.fixture
def later(any_clock: None) -> Skewed:
    """A world in which an hour has passed: what had a lease before has none any more."""
    return Skewed(3600)


@pytest.fixture
async def proxied_crew(bucket: Bucket, s3_proxy: S3Proxy, tmp_path: Path) -> AsyncIterator[Crew]:
    """Workers that talk through the proxy."""
    made = Crew(bucket.through(s3_proxy), tmp_path)
    yield made
    await made.close()
