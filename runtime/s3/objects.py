"""The objects of one bucket: read, written under conditions, and listed page by page."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, TypeVar

from runtime.s3.errors import Away, Gone, NotMatched, Refused, Unsure

Answer = TypeVar("Answer")


class Found(NamedTuple):
    """An object as it was when it was read."""

    body: bytes
    etag: str
    version: str | None
    changed: datetime


class Written(NamedTuple):
    """What a write left behind."""

    etag: str
    version: str | None


class Entry(NamedTuple):
    """A line of a listing."""

    key: str
    etag: str
    size: int
    changed: datetime


class Page(NamedTuple):
    """Some lines of a listing in the order of their keys; without a token nothing follows."""

    entries: Sequence[Entry]
    token: str | None


class Version(NamedTuple):
    """One of the bodies that an object has had."""

    version: str
    etag: str
    changed: datetime
    is_latest: bool


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the objects are. The key comes from where every S3 client looks for it."""

    bucket: str
    endpoint: str | None = None
    region: str = "us-east-1"
    prefix: str = ""
    """What all keys begin with, `/` included; callers never see it."""
    timeout_s: float = 10.0
    tries: int = 4


class Objects:
    """One bucket, or what of it is below a prefix."""

    def __init__(self, place: Place) -> None:
        import botocore.config
        import botocore.session
        from obstore.store import S3Store

        self.place = place
        self.clock_offset_s: float | None = None
        """How far the clock of the store is ahead of ours."""
        session = botocore.session.get_session()
        found = session.get_credentials()
        if found is None:
            raise Refused("There is no key for the store: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.")
        key = found.get_frozen_credentials()
        self.client = session.create_client(
            "s3",
            endpoint_url=place.endpoint,
            region_name=place.region,
            config=botocore.config.Config(
                retries={"total_max_attempts": 1},
                connect_timeout=place.timeout_s,
                read_timeout=place.timeout_s,
                s3={"addressing_style": "path"},
                max_pool_connections=32,
            ),
        )
        self._store = S3Store(
            place.bucket,
            endpoint=place.endpoint,
            region=place.region,
            access_key_id=key.access_key,
            secret_access_key=key.secret_key,
            **({"session_token": key.token} if key.token else {}),
            virtual_hosted_style_request=False,
            client_options={"allow_http": True, "timeout": f"{place.timeout_s:g}s"},
            retry_config={"max_retries": 0},
        )
        self._deletes_plainly = False

    async def get(self, key: str, version: str | None = None) -> Found | None:
        async def read() -> Found | None:
            try:
                got = await self._store.get_async(
                    self._path(key), options={"version": version} if version else None
                )
                meta = got.meta
                body = bytes(await got.bytes_async())
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise
                return None
            return Found(body, meta["e_tag"] or "", meta["version"], meta["last_modified"])

        return await self._repeated(read)

    async def create(self, key: str, body: bytes, tags: Mapping[str, str] | None = None) -> Written:
        """Adds an object; raises NotMatched where there is one."""
        return await self._once(self._put(key, body, "create", tags))

    async def replace(
        self, key: str, body: bytes, etag: str, tags: Mapping[str, str] | None = None
    ) -> Written:
        """Replaces an object that is still the one of this ETag."""
        return await self._once(self._put(key, body, {"e_tag": etag}, tags))

    async def put(self, key: str, body: bytes) -> Written:
        """Writes an object whatever was there."""
        return await self._repeated(lambda: self._put(key, body, "overwrite", None))

    async def delete(self, key: str, etag: str | None = None) -> bool:
        """Removes an object, if it is still the one of this ETag where the store can tell; whether it did."""
        if etag is not None and not self._deletes_plainly:
            try:
                await self._called("delete_object", Key=self._path(key), IfMatch=etag)
                return True
            except NotMatched:
                return False
            except _NotImplemented:
                self._deletes_plainly = True
        await self._called("delete_object", Key=self._path(key))
        return True

    async def page(
        self, prefix: str, *, after: str | None = None, token: str | None = None, most: int
    ) -> Page:
        """The next lines of a listing: the first ones, those after a key, or those that follow a page."""
        more: dict[str, Any] = {}
        if token is not None:
            more["ContinuationToken"] = token
        elif after is not None:
            more["StartAfter"] = self._path(after)
        told = await self._called("list_objects_v2", Prefix=self._path(prefix), MaxKeys=most, **more)
        cut = len(self.place.prefix)
        return Page(
            [
                Entry(each["Key"][cut:], each["ETag"], each["Size"], each["LastModified"])
                for each in told.get("Contents", ())
            ],
            told.get("NextContinuationToken") if told.get("IsTruncated") else None,
        )

    async def versions(self, key: str) -> AsyncIterator[Version]:
        """Every body that the object has had, newest first."""
        more: dict[str, Any] = {}
        path = self._path(key)
        while True:
            told = await self._called("list_object_versions", Prefix=path, **more)
            for each in told.get("Versions", ()):
                if each["Key"] == path:
                    yield Version(each["VersionId"], each["ETag"], each["LastModified"], each["IsLatest"])
            if not told.get("IsTruncated") or told.get("NextKeyMarker", path) > path:
                return
            more = {
                "KeyMarker": told["NextKeyMarker"],
                "VersionIdMarker": told.get("NextVersionIdMarker", ""),
            }

    async def close(self) -> None:
        await asyncio.to_thread(self.client.close)

    def _path(self, key: str) -> str:
        return self.place.prefix + key

    async def _put(self, key: str, body: bytes, mode: Any, tags: Mapping[str, str] | None) -> Written:
        done = await self._store.put_async(
            self._path(key), body, mode=mode, tags=dict(tags) if tags else None, use_multipart=False
        )
        return Written(done["e_tag"] or "", done["version"])

    async def _called(self, operation: str, **given: Any) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError

        def call() -> Any:
            try:
                told = getattr(self.client, operation)(Bucket=self.place.bucket, **given)
            except ClientError as error:
                meta = error.response["ResponseMetadata"]
                status, code = meta["HTTPStatusCode"], error.response["Error"].get("Code", "")
                raise _meaning(status, code, str(error)) from None
            except BotoCoreError as error:
                raise Away(str(error)) from None
            when = told["ResponseMetadata"]["HTTPHeaders"].get("date")
            if when:
                self.clock_offset_s = parsedate_to_datetime(when).timestamp() + 0.5 - time.time()
            return told

        return await self._repeated(lambda: asyncio.to_thread(call))

    async def _once(self, asked: Awaitable[Answer]) -> Answer:
        try:
            return await asked
        except Exception as error:
            meant = _read(error)
            raise (Unsure(str(meant)) if isinstance(meant, Away) else meant) from None

    async def _repeated(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        for number in range(self.place.tries):
            try:
                return await ask()
            except Exception as error:
                meant = _read(error)
                if not isinstance(meant, Away) or number + 1 == self.place.tries:
                    raise meant from None
            await asyncio.sleep(random.uniform(0.5, 1) * 0.1 * 2**number)
        raise AssertionError


class _NotImplemented(Refused):
    """The store does not know this kind of request."""


_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w+)</Code>")


def _read(error: Exception) -> Exception:
    from obstore.exceptions import BaseError

    if not isinstance(error, (BaseError, FileNotFoundError)):
        return error
    text = str(error)
    status, code = _STATUS.search(text), _CODE.search(text)
    if status is None:
        return Away(text.splitlines()[0])
    return _meaning(int(status[1]), code[1] if code else "", text.splitlines()[0])


def _meaning(status: int, code: str, text: str) -> Exception:
    if status in {409, 412}:
        return NotMatched(text)
    if status == 404 and code != "NoSuchBucket":
        return Gone(text)
    if status == 501:
        return _NotImplemented(text)
    if status >= 500 or status in {408, 429}:
        return Away(text)
    return Refused(text)
