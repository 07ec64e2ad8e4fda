"""A shell for each test."""

from __future__ import annotations

import pytest

from tests.support.objectqueue.shell import Shell
from tests.support.s3.fixtures import Bucket
from tests.support.s3.proxy import S3Proxy


@pytest.fixture
def shell(bucket: Bucket) -> Shell:
    """A shell whose variables name the server itself."""
    return Shell(bucket)


@pytest.fixture
def proxied_shell(bucket: Bucket, s3_proxy: S3Proxy) -> Shell:
    """A shell whose variables name the proxy."""
    return Shell(bucket.through(s3_proxy))
