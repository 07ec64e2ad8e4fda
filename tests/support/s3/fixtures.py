"""One S3 server for all tests of a process. Each test has a bucket of its own in it."""

from __future__ import annotations

import itertools
import json
import os
from collections import deque
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from runtime.launch.embedded.seaweedfs import EmbeddedSeaweedfs
from runtime.stores.s3.client.api_client import open_session
from runtime.stores.s3.client.objects import BucketLocation, Objects
from tests.support.s3.proxy import S3Proxy

if TYPE_CHECKING:
    from obstore import GetOptions
    from obstore.store import S3Store

REGION = "us-east-1"
READER = ("READER0READER0READER", "a-secret-that-opens-nothing-for-writing")
"""A second key of the shared server, which may only read and list."""
_AHEAD = 8
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Bucket:
    """An empty bucket with versions; `raw` is a client that knows nothing of ours."""

    name: str
    endpoint: str
    raw: Any

    @property
    def location(self) -> BucketLocation:
        return BucketLocation(bucket=self.name, endpoint=self.endpoint, region=REGION)

    @property
    def variables(self) -> dict[str, str]:
        """What a process needs to use it, the key included."""
        return {
            "S3_ENDPOINT": self.endpoint,
            "S3_BUCKET": self.name,
            "S3_REGION": REGION,
            "AWS_ACCESS_KEY_ID": os.environ["AWS_ACCESS_KEY_ID"],
            "AWS_SECRET_ACCESS_KEY": os.environ["AWS_SECRET_ACCESS_KEY"],
        }

    def through(self, proxy: S3Proxy) -> Bucket:
        """The same bucket as it is seen through a proxy."""
        return Bucket(self.name, proxy.url, self.raw)

    def read(self, key: str, version: str | None = None) -> bytes:
        """The content of an object, or of one of its versions; raises FileNotFoundError."""
        options: GetOptions = {} if version is None else {"version": version}
        return bytes(self._quick.get(key, options=options).bytes())

    def write(self, key: str, content: bytes) -> str:
        """Write an object; return its version."""
        return self._quick.put(key, content)["version"] or ""

    @property
    def _quick(self) -> S3Store:
        """A client for reads and writes, which takes a tenth of the processor time of `raw`."""
        key = (os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"])
        return _open_store(self.name, self.raw.meta.endpoint_url, *key)

    def keys(self, prefix: str = "") -> list[str]:
        """Every key that is there, not through our own client."""
        pages = self.raw.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
        return [each["Key"] for page in pages for each in page.get("Contents", ())]


@lru_cache(maxsize=4)
def _open_store(bucket: str, url: str, key: str, secret: str) -> S3Store:
    from obstore.store import S3Store

    return S3Store(
        bucket,
        endpoint=url,
        region=REGION,
        access_key_id=key,
        secret_access_key=secret,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True, "timeout": timedelta(seconds=30)},
        retry_config={"max_retries": 0},
    )


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedSeaweedfs]:
    """A server; nothing in it has to outlive the session."""
    made = EmbeddedSeaweedfs(tmp_path_factory.mktemp("s3") / "shared")
    made.prepare()
    _add_reader(made.folder / "s3.json")
    made.start()
    yield made
    made.remove()


@pytest.fixture(scope="session")
def s3_raw(s3_server: EmbeddedSeaweedfs) -> Iterator[Any]:
    """A plain client that looks at the server behind our back."""
    client = raw_client(s3_server)
    yield client
    client.close()


@pytest.fixture
def s3_key(s3_server: EmbeddedSeaweedfs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key where every S3 client looks for it, and nothing of the user's own."""
    use_key(s3_server, monkeypatch)


@pytest.fixture(scope="session")
def s3_bucket_names(s3_raw: Any) -> Iterator[Iterator[str]]:
    """Names of empty buckets with versions, a few made in advance: the first write takes long."""

    def make() -> str:
        name = f"t{os.getpid()}-{next(_numbers)}"
        make_bucket(s3_raw, name)
        s3_raw.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        first = s3_raw.put_object(Bucket=name, Key="first", Body=b"first")
        s3_raw.delete_object(Bucket=name, Key="first", VersionId=first["VersionId"])
        return name

    def names(maker: ThreadPoolExecutor) -> Iterator[str]:
        made = deque(maker.submit(make) for _ in range(_AHEAD))
        while True:
            made.append(maker.submit(make))
            yield made.popleft().result()

    # The first write waits for a new data file.
    with ThreadPoolExecutor(4) as maker:
        yield names(maker)


@pytest.fixture
def bucket(s3_server: EmbeddedSeaweedfs, s3_raw: Any, s3_key: None, s3_bucket_names: Iterator[str]) -> Bucket:
    """A bucket for one test."""
    return Bucket(next(s3_bucket_names), s3_server.url, s3_raw)


@pytest.fixture
async def objects(bucket: Bucket) -> AsyncIterator[Objects]:
    made = Objects(bucket.location)
    yield made
    await made.close()


@pytest.fixture
def s3_proxy(s3_server: EmbeddedSeaweedfs) -> Iterator[S3Proxy]:
    """A fault proxy before the server."""
    made = S3Proxy(s3_server.url, s3_server.access_key, s3_server.secret_key)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def own_s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedSeaweedfs]:
    """A server that a test may do anything to."""
    made = EmbeddedSeaweedfs(tmp_path / "own s3")
    made.start()
    use_key(made, monkeypatch)
    yield made
    made.remove()


def _add_reader(keys: Path) -> None:
    told = json.loads(keys.read_text(encoding="ascii"))
    pair = {"accessKey": READER[0], "secretKey": READER[1]}
    told["identities"].append({"name": "reader", "credentials": [pair], "actions": ["Read", "List"]})
    keys.write_text(json.dumps(told), encoding="ascii")


def use_key(server: EmbeddedSeaweedfs, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("AWS_", "S3_", "QO_"))]:
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name, value in server.variables.items():
        monkeypatch.setenv(name, value)


def make_bucket(raw: Any, name: str) -> None:
    """Create a bucket; the client may have asked twice, when the first answer was a failure or late."""
    with suppress(raw.exceptions.BucketAlreadyOwnedByYou):
        raw.create_bucket(Bucket=name)


def raw_client(server: EmbeddedSeaweedfs) -> Any:
    return open_session().create_client(
        "s3",
        endpoint_url=server.url,
        region_name=REGION,
        aws_access_key_id=server.access_key,
        aws_secret_access_key=server.secret_key,
    )
