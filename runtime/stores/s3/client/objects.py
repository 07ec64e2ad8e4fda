"""The objects of one bucket: read, written under conditions, and listed page by page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from runtime.stores.s3.client.api_client import ApiClient
from runtime.stores.s3.client.client import DataClient
from runtime.stores.s3.client.credentials import KeySource
from runtime.stores.s3.client.errors import Away, Gone, NotMatched, Unsure
from runtime.stores.s3.client.kinds import kind_of
from runtime.stores.s3.client.listings import ListedObject, Page, parse_page
from runtime.stores.s3.client.location import BucketLocation
from runtime.stores.s3.client.permissions import permission
from runtime.stores.s3.client.responses import NoStore, NotKnown, NotSent, Undescribed, explain_obstore
from runtime.stores.s3.client.retries import retry
from runtime.stores.s3.client.signed_requests import BucketRequest, SignedRequests

if TYPE_CHECKING:
    from obstore import GetOptions, PutMode, PutResult
    from obstore.store import S3Store

__all__ = ["BucketLocation", "Found", "ListedObject", "Objects", "Page", "Version", "WrittenObject"]

_AS_URL = {"encoding-type": "url"}
"""Keys may have characters that XML has no way to write."""
Result = TypeVar("Result")


class Found(NamedTuple):
    """An object as it was when it was read."""

    body: bytes
    etag: str
    version: str | None
    changed: datetime


class WrittenObject(NamedTuple):
    """The ETag and the version of a written object."""

    etag: str
    version: str | None


class Version(NamedTuple):
    """A version of an object."""

    version: str
    etag: str
    changed: datetime
    is_latest: bool


class Objects:
    """The client. Idempotent requests are retried a few times, a conditional write never."""

    def __init__(self, location: BucketLocation, credentials: KeySource | None = None) -> None:
        self.location = location
        self.credentials = credentials or KeySource()
        self.api = ApiClient(location, self.credentials)
        self._data = DataClient(location, self.credentials)
        self._signed = SignedRequests(location, self.credentials)
        self._turn = asyncio.Semaphore(location.connections)
        self._deletes_plainly = False

    @property
    def clock_offset_s(self) -> float | None:
        """Seconds by which the clock of the store is ahead of ours; None before the first `Date` header."""
        return self._signed.clock.offset_s

    async def get(self, key: str, version: str | None = None) -> Found | None:
        """Read an object, or one of its versions; None where there is none."""
        operation = "get_object" if version is None else "get_object_version"
        try:
            return await self._send(operation, partial(self._read, key, version))
        except Gone:
            return None

    async def create(self, key: str, body: bytes, tags: Mapping[str, str] | None = None) -> WrittenObject:
        """Create an object; raises NotMatched where there is one."""
        return await self._write(key, body, "create", tags)

    async def replace(
        self, key: str, body: bytes, etag: str, tags: Mapping[str, str] | None = None
    ) -> WrittenObject:
        """Replace an object that still has this ETag, else raise NotMatched."""
        return await self._write(key, body, {"e_tag": etag}, tags)

    async def put(self, key: str, body: bytes, *, content_type: str | None = None) -> WrittenObject:
        """Write an object unconditionally; its content type follows from its key unless it is given."""
        kind = content_type or kind_of(key)
        put = partial(self._put, key, body, "overwrite", kind, None)
        return _parse_put_result(await self._send("put_object", put, size=len(body)))

    async def tag(self, key: str, tags: Mapping[str, str] | None, version: str | None = None) -> None:
        """Set exactly these tags on an object, or on one of its versions."""
        which = {"Key": self.location.prefix + key} | ({} if version is None else {"VersionId": version})
        if not tags:
            await self.api.call("delete_object_tagging", **which)
            return
        tag_set = [{"Key": name, "Value": value} for name, value in tags.items()]
        await self.api.call("put_object_tagging", Tagging={"TagSet": tag_set}, **which)

    async def delete(self, key: str, etag: str | None = None) -> bool:
        """Delete an object, if it still has this ETag where the store checks that; whether it did."""
        if etag is not None and not self._deletes_plainly:
            try:
                needed = permission("delete_object")
                await self._signed.send(BucketRequest("DELETE", needed, key, headers={"If-Match": etag}))
            except NotMatched:
                return False
            except NotKnown:
                self._deletes_plainly = True
            else:
                return True
        # obstore does not repeat a deletion that timed out, though it does no harm.
        plainly = partial(self._send, "delete_object", partial(self._remove, key), repeats=False)
        await retry(self.location.tries, Away, plainly)
        return True

    async def page(
        self, prefix: str, *, after: str | None = None, token: str | None = None, most: int
    ) -> Page:
        """List a page: the first one, the one after a key, or the one of a continuation token."""
        query = {"list-type": "2", "prefix": self.location.prefix + prefix, "max-keys": str(most), **_AS_URL}
        if token is not None:
            query["continuation-token"] = token
        elif after is not None:
            query["start-after"] = self.location.prefix + after
        return parse_page(await self.describe("list_objects_v2", query), self.location)

    async def versions(self, key: str, *, most: int = 1000) -> AsyncIterator[Version]:
        """Iterate over the versions of an object, newest first and page by page, without delete markers."""
        path = self.location.prefix + key
        query = {"Prefix": path, "MaxKeys": most}
        while True:
            try:
                response = await self.api.call("list_object_versions", **query)
            except Gone as error:
                raise NoStore(self.location, str(error)) from None
            if "IsTruncated" not in response:
                # botocore parses any other document as an empty response.
                raise NoStore(self.location, "it sends no ListVersionsResult")
            for line in response.get("Versions", ()):
                if line["Key"] == path:
                    changed = line["LastModified"].astimezone(UTC)
                    yield Version(line["VersionId"], line["ETag"], changed, line["IsLatest"])
            marker = response.get("NextKeyMarker", "")
            if not response.get("IsTruncated") or marker > path:
                return
            query |= {"KeyMarker": marker, "VersionIdMarker": response.get("NextVersionIdMarker", "")}

    async def describe(self, operation: str, query: Mapping[str, str]) -> bytes:
        """Send a GET to the bucket itself, which every S3 store answers; return the body."""
        try:
            return await self._signed.send(BucketRequest("GET", permission(operation), query=query))
        except Gone as error:
            # The bucket is not what is missing: a store has its own code for that.
            raise NoStore(self.location, str(error)) from None

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        self._data.close()
        self._signed.close()
        self.api.close()

    async def _write(
        self, key: str, body: bytes, mode: PutMode, tags: Mapping[str, str] | None
    ) -> WrittenObject:
        put = partial(self._put, key, body, mode, kind_of(key), tags)
        try:
            written = await retry(
                self.location.tries,
                NotSent,
                partial(self._send, "put_object", put, repeats=False, size=len(body)),
            )
        except NotSent:
            raise
        except (Away, Undescribed) as lost:
            raise Unsure(str(lost)) from None
        return _parse_put_result(written)

    async def _send(
        self,
        operation: str,
        request: Callable[[S3Store], Awaitable[Result]],
        *,
        repeats: bool = True,
        size: int = 0,
    ) -> Result:
        """Send a request by obstore; its exceptions become an ObjectError."""
        from obstore.exceptions import BaseError

        store = await self._data.store(repeats=repeats, size=size)
        async with self._turn:
            try:
                return await request(store)
            except (BaseError, FileNotFoundError) as error:
                raise explain_obstore(error, self.location, permission(operation)) from None

    async def _read(self, key: str, version: str | None, store: S3Store) -> Found:
        options: GetOptions | None = None if version is None else {"version": version}
        found = await store.get_async(self.location.prefix + key, options=options)
        body, meta = bytes(await found.bytes_async()), found.meta
        return Found(body, meta["e_tag"] or "", _parse_version(meta["version"]), meta["last_modified"])

    async def _remove(self, key: str, store: S3Store) -> None:
        await store.delete_async(self.location.prefix + key)

    async def _put(
        self,
        key: str,
        body: bytes,
        mode: PutMode,
        kind: str,
        tags: Mapping[str, str] | None,
        store: S3Store,
    ) -> PutResult:
        return await store.put_async(
            self.location.prefix + key,
            body,
            attributes={"Content-Type": kind},
            tags=dict(tags) if tags else None,
            mode=mode,
            use_multipart=False,
        )


def _parse_put_result(response: PutResult) -> WrittenObject:
    return WrittenObject(response["e_tag"] or "", _parse_version(response["version"]))


def _parse_version(version: str | None) -> str | None:
    """Parse the version of an object; unversioned buckets have none, or "null"."""
    return None if version == "null" else version
