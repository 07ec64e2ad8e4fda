"""The objects of one bucket: read, written under conditions, and listed page by page."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape

from runtime.s3.answers import NoStore, NotKnown, ServerClock, TooSkewed, document, listed, moment, refusal
from runtime.s3.credentials import Credentials
from runtime.s3.errors import Away, Gone, NotMatched, Refused, Unsure
from runtime.s3.kinds import kind_of
from runtime.s3.permissions import permission
from runtime.s3.place import Place, address_of
from runtime.s3.signing import Signer, path_of, query_of
from runtime.s3.wire import NoAnswer, NotSent, Told, Wire

__all__ = ["Entry", "Found", "Objects", "Page", "Place", "Version", "Written"]

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0
_NONE: Mapping[str, str] = {}
_AS_URL = {"encoding-type": "url"}
"""Keys may have characters that XML has no way to write."""


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


class Objects:
    """The client. What can be repeated without harm is, a few times; a conditional write never."""

    def __init__(self, place: Place, credentials: Credentials | None = None) -> None:
        self.place = place
        address = address_of(place)
        self._root = address.root
        self._origin = address.origin
        self._credentials = credentials or Credentials()
        self._signer = Signer(address.authority, place.region)
        self._wire = Wire(
            address.host, address.port, tls=address.tls, timeout_s=place.timeout_s, most=place.connections
        )
        self._clock = ServerClock()
        self._signs_ahead_s = 0.0
        self._deletes_plainly = False

    @property
    def clock_offset_s(self) -> float | None:
        """How far the clock of the store is ahead of ours; None before the first answer."""
        return self._clock.offset_s

    async def get(self, key: str, version: str | None = None) -> Found | None:
        """An object, or one of its versions; None where there is none."""
        query = {} if version is None else {"versionId": version}
        try:
            told = await self.request("GET", key, query=query)
        except Gone:
            return None
        etag, changed = told.header(b"etag"), told.header(b"last-modified")
        if etag is None or changed is None:
            raise Refused("The store does not say which version of an object it gives, or from when it is.")
        return Found(told.body, etag, _version(told), moment(changed))

    async def create(self, key: str, body: bytes, tags: Mapping[str, str] | None = None) -> Written:
        """Adds an object; raises NotMatched where there is one."""
        return await self._write(key, body, {"if-none-match": "*"}, tags)

    async def replace(
        self, key: str, body: bytes, etag: str, tags: Mapping[str, str] | None = None
    ) -> Written:
        """Replaces an object that is still the one of this ETag, else raises NotMatched."""
        return await self._write(key, body, {"if-match": etag}, tags)

    async def put(self, key: str, body: bytes, *, content_type: str | None = None) -> Written:
        """Writes an object whatever was there. What type it is of follows from its key unless it is given."""
        told = await self.request("PUT", key, {"content-type": content_type or kind_of(key)}, body)
        return Written(told.header(b"etag") or "", _version(told))

    async def tag(self, key: str, tags: Mapping[str, str] | None, version: str | None = None) -> None:
        """Gives an object, or one of its versions, these tags and no others."""
        query = {"tagging": ""} if version is None else {"tagging": "", "versionId": version}
        if not tags:
            await self.request("DELETE", key, query=query)
            return
        told = "".join(
            f"<Tag><Key>{escape(name)}</Key><Value>{escape(value)}</Value></Tag>"
            for name, value in tags.items()
        )
        await self.request(
            "PUT", key, body=f"<Tagging><TagSet>{told}</TagSet></Tagging>".encode(), query=query
        )

    async def delete(self, key: str, etag: str | None = None) -> bool:
        """Removes an object, if it is still the one of this ETag where the store can tell; whether it did."""
        if etag is not None and not self._deletes_plainly:
            try:
                await self.request("DELETE", key, {"if-match": etag})
            except NotMatched:
                return False
            except NotKnown:
                self._deletes_plainly = True
            else:
                return True
        await self.request("DELETE", key)
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
        told = listed(await self.answer(query, "ListBucketResult"), "Contents")
        cut = len(self.place.prefix)
        entries = [
            Entry(line["Key"][cut:], line["ETag"], int(line["Size"]), moment(line["LastModified"]))
            for line in told.lines
        ]
        return Page(entries, told.tags.get("NextContinuationToken") or None)

    async def versions(self, key: str, *, most: int = 1000) -> AsyncIterator[Version]:
        """Every body that the object has had, newest first, asked for in pages; deletions are left out."""
        path = self.place.prefix + key
        query = {"versions": "", "prefix": path, "max-keys": str(most), **_AS_URL}
        while True:
            told = listed(await self.answer(query, "ListVersionsResult"), "Version")
            for line in told.of(path):
                yield Version(
                    line["VersionId"], line["ETag"], moment(line["LastModified"]), line["IsLatest"] == "true"
                )
            marker = told.key("NextKeyMarker")
            if told.tags.get("IsTruncated") != "true" or marker > path:
                return
            query |= {"key-marker": marker, "version-id-marker": told.tags.get("NextVersionIdMarker", "")}

    async def lent_address(self, key: str, seconds: int, query: Mapping[str, str] = _NONE) -> str:
        """Where whoever has the address may read an object for so many seconds, in place of our key."""
        path = f"{self._root}/{path_of(self.place.prefix + key)}"
        now = time.time() + self._signs_ahead_s
        lent = self._signer.lent_query(path, query, await self._credentials.key(), now, seconds)
        return f"{self._origin}{path}?{lent}"

    async def answer(self, query: Mapping[str, str], tag: str) -> Element:
        """What the bucket says to a question that every bucket has an answer to, a document of this tag."""
        try:
            told = await self.request("GET", None, query=query)
        except Gone as error:
            # It is not the bucket that is missing: a store says so.
            raise NoStore(self.place, str(error)) from None
        return document(told.body, tag, self.place)

    async def close(self) -> None:
        """Ends the connections. What is asked after that opens new ones."""
        self._wire.close()
        # Their sockets are closed in the next turn of the loop, which may be its last.
        await asyncio.sleep(0)

    async def _write(
        self, key: str, body: bytes, condition: Mapping[str, str], tags: Mapping[str, str] | None
    ) -> Written:
        headers = {**condition, "content-type": kind_of(key)}
        if tags:
            headers["x-amz-tagging"] = query_of(tags)
        try:
            told = await self.request("PUT", key, headers, body, harmless=False)
        except _Lost as lost:
            raise Unsure(str(lost)) from None
        if (etag := told.header(b"etag")) is None:
            raise Unsure("The store does not say what it has written.")
        return Written(etag, _version(told))

    async def request(
        self,
        method: str,
        key: str | None,
        headers: Mapping[str, str] = _NONE,
        body: bytes = b"",
        *,
        query: Mapping[str, str] = _NONE,
        harmless: bool = True,
    ) -> Told:
        """Anything else: one answer with a status of success, else an error says what the store meant.

        Without a key it is about the bucket. `harmless` is a request that may be carried out twice.
        """
        tries = 0
        while True:
            tries += 1
            try:
                return await self._once(method, key, headers, body, query)
            except TooSkewed:
                # Our clock is far off. The store has just told the time, so this happens once.
                if tries > 1 or not self._learned_the_time():
                    raise
                continue
            except NotSent as error:
                lost, sent = Away(f"The store is away: {error}."), False
            except NoAnswer as error:
                lost, sent = Away(f"The store does not answer: {error}."), True
            except Away as error:
                lost, sent = error, True
            if sent and not harmless:
                raise _Lost(str(lost))
            if tries >= self.place.tries:
                raise lost
            longest = min(_FIRST_PAUSE_S * 2 ** (tries - 1), _LONGEST_PAUSE_S)
            await asyncio.sleep(random.uniform(longest / 2, longest))

    async def _once(
        self,
        method: str,
        key: str | None,
        headers: Mapping[str, str],
        body: bytes,
        query: Mapping[str, str],
    ) -> Told:
        path = (self._root if key is None else f"{self._root}/{path_of(self.place.prefix + key)}") or "/"
        known = await self._credentials.key()
        began = time.time()
        request = self._signer.request(
            method, path, query_of(query) if query else "", headers, body, known, began + self._signs_ahead_s
        )
        told = await self._wire.ask(request)
        if (date := told.header(b"date")) is not None:
            self._clock.heard(date, began, time.time())
        if 200 <= told.status < 300:
            return told
        raise refusal(told, self.place, permission(method, query, of_bucket=key is None))

    def _learned_the_time(self) -> bool:
        offset = self._clock.offset_s
        if offset is None or offset == self._signs_ahead_s:
            return False
        self._signs_ahead_s = offset
        return True


class _Lost(Refused):
    """A conditional write went out, and nothing tells what became of it."""


def _version(told: Told) -> str | None:
    """The version of an object; buckets without versions have none, or a word for it."""
    version = told.header(b"x-amz-version-id")
    return None if version == "null" else version
