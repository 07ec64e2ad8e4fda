"""A shell for each test."""

from __future__ import annotations

import pytest

from tests.support.objectqueue.shell import Shell
from tests.support.s3.fixtures import Bucket
from tests.support.s3.proxy import S3Proxy


@pytest.fixture
def shell(bucket: Bucket) -> Shell:
    """Somebody who talks to the server itself."""
    return Shell(bucket)


@pytest.fixture
def proxied(bucket: Bucket, s3_proxy: S3Proxy) -> Shell:
    """Somebody who talks through the proxy."""
    return Shell(bucket.through(s3_proxy))
