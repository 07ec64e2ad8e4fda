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
from runtime.stores.s3.client.permissions import permission
from runtime.stores.s3.client.place import BucketPlace
from runtime.stores.s3.client.responses import NoStore, NotKnown, NotSent, Undescribed, explain_obstore
from runtime.stores.s3.client.retries import retry
from runtime.stores.s3.client.signed_requests import BucketRequest, SignedRequests

if TYPE_CHECKING:
    from obstore import GetOptions, PutMode, PutResult
    from obstore.store import S3Store

__all__ = ["BucketPlace", "Found", "ListedObject", "Objects", "Page", "Version", "WrittenObject"]

_AS_URL = {"encoding-type": "url"}
"""Keys may have characters that XML has no way to write."""
_Answer = TypeVar("_Answer")


class Found(NamedTuple):
    """An object as it was when it was read."""

    body: bytes
    etag: str
    version: str | None
    changed: datetime


class WrittenObject(NamedTuple):
    """What a write left behind."""

    etag: str
    version: str | None


class Version(NamedTuple):
    """One of the bodies that an object has had."""

    version: str
    etag: str
    changed: datetime
    is_latest: bool


class Objects:
    """The client. What can be repeated without harm is, a few times; a conditional write never."""

    def __init__(self, place: BucketPlace, credentials: KeySource | None = None) -> None:
        self.place = place
        self.credentials = credentials or KeySource()
        self.api = ApiClient(place, self.credentials)
        self._data = DataClient(place, self.credentials)
        self._signed = SignedRequests(place, self.credentials)
        self._turn = asyncio.Semaphore(place.connections)
        self._deletes_plainly = False

    @property
    def clock_offset_s(self) -> float | None:
        """How far the clock of the store is ahead of ours; None before the first answer that tells."""
        return self._signed.clock.offset_s

    async def get(self, key: str, version: str | None = None) -> Found | None:
        """An object, or one of its versions; None where there is none."""
        operation = "get_object" if version is None else "get_object_version"
        try:
            return await self._ask(operation, partial(self._read, key, version))
        except Gone:
            return None

    async def create(self, key: str, body: bytes, tags: Mapping[str, str] | None = None) -> WrittenObject:
        """Adds an object; raises NotMatched where there is one."""
        return await self._write(key, body, "create", tags)

    async def replace(
        self, key: str, body: bytes, etag: str, tags: Mapping[str, str] | None = None
    ) -> WrittenObject:
        """Replaces an object that is still the one of this ETag, else raises NotMatched."""
        return await self._write(key, body, {"e_tag": etag}, tags)

    async def put(self, key: str, body: bytes, *, content_type: str | None = None) -> WrittenObject:
        """Writes an object whatever was there. What type it is of follows from its key unless it is given."""
        kind = content_type or kind_of(key)
        put = partial(self._put, key, body, "overwrite", kind, None)
        return _written(await self._ask("put_object", put, size=len(body)))

    async def tag(self, key: str, tags: Mapping[str, str] | None, version: str | None = None) -> None:
        """Gives an object, or one of its versions, these tags and no others."""
        which = {"Key": self.place.prefix + key} | ({} if version is None else {"VersionId": version})
        if not tags:
            await self.api.call("delete_object_tagging", **which)
            return
        told = [{"Key": name, "Value": value} for name, value in tags.items()]
        await self.api.call("put_object_tagging", Tagging={"TagSet": told}, **which)

    async def delete(self, key: str, etag: str | None = None) -> bool:
        """Removes an object, if it is still the one of this ETag where the store can tell; whether it did."""
        if etag is not None and not self._deletes_plainly:
            try:
                needed = permission("delete_object")
                await self._signed.ask(BucketRequest("DELETE", needed, key, headers={"If-Match": etag}))
            except NotMatched:
                return False
            except NotKnown:
                self._deletes_plainly = True
            else:
                return True
        # obstore does not repeat a deletion that timed out, though it does no harm.
        plainly = partial(self._ask, "delete_object", partial(self._remove, key), repeats=False)
        await retry(self.place.tries, Away, plainly)
        return True

    async def page(
        self, prefix: str, *, after: str | None = None, token: str | None = None, most: int
    ) -> Page:
        """The next lines of a listing: the first ones, those after a key, or those that follow a page."""
        query = {"list-type": "2", "prefix": self.place.prefix + prefix, "max-keys": str(most), **_AS_URL}
        if token is not None:
            query["continuation-token"] = token
        elif after is not None:
            query["start-after"] = self.place.prefix + after
        return parse_page(await self.describe("list_objects_v2", query), self.place)

    async def versions(self, key: str, *, most: int = 1000) -> AsyncIterator[Version]:
        """Every body that the object has had, newest first, asked for in pages; deletions are left out."""
        path = self.place.prefix + key
        query = {"Prefix": path, "MaxKeys": most}
        while True:
            try:
                told = await self.api.call("list_object_versions", **query)
            except Gone as error:
                raise NoStore(self.place, str(error)) from None
            if "IsTruncated" not in told:
                # botocore reads any other document as one that says nothing.
                raise NoStore(self.place, "it sends no ListVersionsResult")
            for line in told.get("Versions", ()):
                if line["Key"] == path:
                    changed = line["LastModified"].astimezone(UTC)
                    yield Version(line["VersionId"], line["ETag"], changed, line["IsLatest"])
            marker = told.get("NextKeyMarker", "")
            if not told.get("IsTruncated") or marker > path:
                return
            query |= {"KeyMarker": marker, "VersionIdMarker": told.get("NextVersionIdMarker", "")}

    async def describe(self, operation: str, query: Mapping[str, str]) -> bytes:
        """What the bucket says to a question that every bucket has an answer to."""
        try:
            return await self._signed.ask(BucketRequest("GET", permission(operation), query=query))
        except Gone as error:
            # It is not the bucket that is missing: a store says so.
            raise NoStore(self.place, str(error)) from None

    async def close(self) -> None:
        """Ends the connections. What is asked after that opens new ones."""
        self._data.close()
        self._signed.close()
        self.api.close()

    async def _write(
        self, key: str, body: bytes, mode: PutMode, tags: Mapping[str, str] | None
    ) -> WrittenObject:
        put = partial(self._put, key, body, mode, kind_of(key), tags)
        try:
            written = await retry(
                self.place.tries,
                NotSent,
                partial(self._ask, "put_object", put, repeats=False, size=len(body)),
            )
        except NotSent:
            raise
        except (Away, Undescribed) as lost:
            raise Unsure(str(lost)) from None
        return _written(written)

    async def _ask(
        self,
        operation: str,
        ask: Callable[[S3Store], Awaitable[_Answer]],
        *,
        repeats: bool = True,
        size: int = 0,
    ) -> _Answer:
        """An answer of obstore, else what its failure means."""
        from obstore.exceptions import BaseError

        store = await self._data.store(repeats=repeats, size=size)
        async with self._turn:
            try:
                return await ask(store)
            except (BaseError, FileNotFoundError) as error:
                raise explain_obstore(error, self.place, permission(operation)) from None

    async def _read(self, key: str, version: str | None, store: S3Store) -> Found:
        options: GetOptions | None = None if version is None else {"version": version}
        found = await store.get_async(self.place.prefix + key, options=options)
        body, meta = bytes(await found.bytes_async()), found.meta
        return Found(body, meta["e_tag"] or "", _version(meta["version"]), meta["last_modified"])

    async def _remove(self, key: str, store: S3Store) -> None:
        await store.delete_async(self.place.prefix + key)

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
            self.place.prefix + key,
            body,
            attributes={"Content-Type": kind},
            tags=dict(tags) if tags else None,
            mode=mode,
            use_multipart=False,
        )


def _written(told: PutResult) -> WrittenObject:
    return WrittenObject(told["e_tag"] or "", _version(told["version"]))


def _version(version: str | None) -> str | None:
    """The version of an object; buckets without versions have none, or a word for it."""
    return None if version == "null" else version
