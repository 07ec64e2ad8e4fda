"""A crew for each test, on a bucket of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from runtime.stores.s3.client.objects import Objects
from tests.support.objectqueue.crew import Crew, Skewed
from tests.support.s3.fixtures import Bucket
from tests.support.s3.proxy import S3Proxy


@pytest.fixture(autouse=True)
def _no_race_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nodes of this process try the conditions of writes without rivals when they start.

    The loser of a race waits a second in this server. The races of a start are tested in tests/runtime.
    """
    monkeypatch.setattr("runtime.stores.s3.bucket.probe.FEW_RACERS", 1)


@pytest.fixture
async def crew(bucket: Bucket, tmp_path: Path) -> AsyncIterator[Crew]:
    """Workers that are connected to the server itself."""
    crew = Crew(bucket, tmp_path)
    yield crew
    await crew.close()


@pytest.fixture
def any_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time passes as a test says: the nodes of its process assume that the store's clock does, too."""
    monkeypatch.setattr(Objects, "clock_offset_s", None)


@pytest.fixture
def later(any_clock: None) -> Skewed:
    """A world in which an hour has passed: every earlier lease has expired."""
    return Skewed(3600)


@pytest.fixture
async def proxied_crew(bucket: Bucket, s3_proxy: S3Proxy, tmp_path: Path) -> AsyncIterator[Crew]:
    """Workers that are connected through the proxy."""
    crew = Crew(bucket.through(s3_proxy), tmp_path)
    yield crew
    await crew.close()
