"""The S3 engine for the contract suite: a real server a process, and a folder of its bucket a test."""

from __future__ import annotations

import atexit
import itertools
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from runtime.launch.embedded.seaweedfs import EmbeddedSeaweedfs
from runtime.model.lifecycles import Lifecycle
from runtime.model.system import System
from runtime.observe.metrics import Metrics
from runtime.stores.s3.client.credentials import KeySource
from runtime.stores.s3.client.objects import BucketLocation, Objects
from runtime.stores.s3.layout import default_layout
from runtime.stores.s3.store import S3Store
from runtime.world import World
from tests.support.s3.fixtures import REGION, make_bucket, raw_client

_BUCKET = "contract"
_folders = itertools.count(1)


def open_bucket() -> Objects:
    """Connect to a folder that nothing else uses, of the bucket that all tests of a process share."""
    shared = _bucket()
    location = replace(shared.location, prefix=f"t{next(_folders)}/")
    return Objects(location, shared.credentials)


@cache
def _bucket() -> Objects:
    """A bucket of a server that is there until the process ends."""
    server = EmbeddedSeaweedfs(Path(tempfile.mkdtemp(prefix="charter-s3-")) / "store")
    server.start()
    atexit.register(server.remove)
    raw = raw_client(server)
    make_bucket(raw, _BUCKET)
    raw.close()
    location = BucketLocation(bucket=_BUCKET, endpoint=server.url, region=REGION)
    return Objects(location, KeySource(server.variables))


def open_s3_stores(
    system: System,
    world: World,
    metrics: Metrics,
    values: Mapping[str, Any],
    max_terminal: int,
    objects: Objects | None = None,
) -> Any:
    """Make the function that opens a store, in a folder that nothing else uses; of a server unless told."""
    folder, stores = f"t{next(_folders)}/", dict[str, Any]()

    def open_store(lifecycle: Lifecycle) -> S3Store[Any]:
        assert lifecycle.record is not None
        return S3Store(
            *(system, lifecycle, lifecycle.record, objects or _bucket(), world, metrics, values),
            layout=default_layout(lifecycle, lifecycle.record, folder),
            max_terminal=max_terminal,
            stores=stores,
        )

    return open_store
