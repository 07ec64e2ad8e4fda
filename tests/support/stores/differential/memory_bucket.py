"""A bucket in memory, with the conditional writes of one: the S3 engine without a server."""

from __future__ import annotations

import asyncio
import hashlib
from bisect import bisect_right
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from runtime.stores.s3.client.errors import NotMatched
from runtime.stores.s3.client.listings import ListedObject, Page
from runtime.stores.s3.client.objects import BucketLocation, Found, Objects, WrittenObject

_CHANGED = datetime(2020, 1, 1, tzinfo=UTC)


class _Object(NamedTuple):
    body: bytes
    etag: str


class MemoryObjects(Objects):
    """Objects by key. As with a server, others come to their turn while a request is under way."""

    def __init__(self) -> None:
        super().__init__(BucketLocation(bucket="memory", endpoint="http://127.0.0.1:1", region="none"))
        self._objects: dict[str, _Object] = {}

    def clear(self) -> None:
        """Remove all of them."""
        self._objects.clear()

    @property
    def clock_offset_s(self) -> float | None:
        return 0.0

    async def get(self, key: str, version: str | None = None) -> Found | None:
        await asyncio.sleep(0)
        assert version is None
        found = self._objects.get(key)
        return None if found is None else Found(found.body, found.etag, None, _CHANGED)

    async def create(self, key: str, body: bytes, tags: Mapping[str, str] | None = None) -> WrittenObject:
        await asyncio.sleep(0)
        if key in self._objects:
            raise NotMatched(key)
        return self._keep(key, body)

    async def replace(
        self, key: str, body: bytes, etag: str, tags: Mapping[str, str] | None = None
    ) -> WrittenObject:
        await asyncio.sleep(0)
        if key not in self._objects or self._objects[key].etag != etag:
            raise NotMatched(key)
        return self._keep(key, body)

    async def put(self, key: str, body: bytes, *, content_type: str | None = None) -> WrittenObject:
        await asyncio.sleep(0)
        return self._keep(key, body)

    async def tag(self, key: str, tags: Mapping[str, str] | None, version: str | None = None) -> None:
        """Tags are for rules of a bucket, which this one has none of."""

    async def delete(self, key: str, etag: str | None = None) -> bool:
        await asyncio.sleep(0)
        if etag is not None and key in self._objects and self._objects[key].etag != etag:
            return False
        self._objects.pop(key, None)
        return True

    async def page(
        self, prefix: str, *, after: str | None = None, token: str | None = None, most: int
    ) -> Page:
        await asyncio.sleep(0)
        keys = sorted(key for key in self._objects if key.startswith(prefix))
        begin = bisect_right(keys, token or after or "")
        chosen = keys[begin : begin + most]
        lines = [self._line(key) for key in chosen]
        return Page(lines, chosen[-1] if begin + most < len(keys) and chosen else None)

    def _line(self, key: str) -> ListedObject:
        found = self._objects[key]
        return ListedObject(key, found.etag, len(found.body), _CHANGED)

    def _keep(self, key: str, body: bytes) -> WrittenObject:
        etag = f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
        self._objects[key] = _Object(body, etag)
        return WrittenObject(etag, None)
