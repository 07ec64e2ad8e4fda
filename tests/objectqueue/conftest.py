"""A crew for each test, on a bucket of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.objectqueue.crew import Crew
from tests.s3_fixtures import Bucket
from tests.support.s3_proxy import S3Proxy


@pytest.fixture
async def crew(bucket: Bucket, tmp_path: Path) -> AsyncIterator[Crew]:
    """Workers that talk to the server itself."""
    made = Crew(bucket, tmp_path)
    yield made
    await made.close()


@pytest.fixture
async def proxied_crew(bucket: Bucket, s3_proxy: S3Proxy, tmp_path: Path) -> AsyncIterator[Crew]:
    """Workers that talk through the proxy."""
    made = Crew(bucket.through(s3_proxy), tmp_path)
    yield made
    await made.close()
