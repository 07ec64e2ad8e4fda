"""Talks to the store over HTTP: content goes and comes in pieces, and what comes is checked."""

from __future__ import annotations

import hashlib
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from urllib.parse import quote
from uuid import uuid4

import httpx

from generated.queuey import errors
from handlers.queuey.blobs import is_address

_PIECE = 1 << 18
_TRANSFERS = 3
"""How often content is fetched that comes whole and wrong: a store checks it, but what is between may not."""
_CORRUPT = errors.BlobCorrupt.code.upper()
_TIMEOUTS = httpx.Timeout(30.0, connect=5.0)


class BlobMissing(Exception):
    """The store has nothing under an address."""


class BlobCorrupt(Exception):
    """What the store has under an address is not its content any more; uploading it again repairs it."""


class BlobRefused(Exception):
    """The store will never take a content."""


class StoreAway(Exception):
    """The store does not answer as it should; later it may."""


class BlobClient:
    """A client of one store."""

    def __init__(self, url: str, token: str | None = None, tls: ssl.SSLContext | None = None) -> None:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.AsyncClient(
            base_url=url.rstrip("/"), headers=headers, timeout=_TIMEOUTS, verify=trusted(url, tls)
        )

    async def __aenter__(self) -> BlobClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def put(self, path: Path) -> str:
        """Stores a file; its address."""
        try:
            answer = await self._client.post("/blobs", content=_pieces(path))
        except httpx.HTTPError as error:
            raise StoreAway(f"{type(error).__name__}: {error}") from None
        if answer.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
            raise BlobRefused(f"the store does not take {path.stat().st_size} bytes")
        try:
            address: str = answer.raise_for_status().json()["address"]
        except (httpx.HTTPError, ValueError, LookupError, TypeError):
            raise StoreAway(f"the store answered {answer.status_code}: {answer.text[:200]}") from None
        return address

    async def get(self, address: str, target: Path) -> None:
        """Writes content to a file, which is there when all of it has come and is what it should be."""
        if not is_address(address):
            raise BlobMissing(address)
        making = target.with_name(f"coming-{uuid4().hex}")
        try:
            for _ in range(_TRANSFERS):
                if await self._get(address, making):
                    making.replace(target)
                    return
        finally:
            making.unlink(missing_ok=True)
        raise BlobCorrupt(address)

    async def _get(self, address: str, making: Path) -> bool:
        """Write content to a file; False where all of it came and it is not what it should be."""
        digest = hashlib.sha256()
        try:
            async with self._client.stream("GET", f"/blobs/{quote(address, safe='')}") as answer:
                if answer.status_code in (400, 404):
                    raise BlobCorrupt(address) if await _code(answer) == _CORRUPT else BlobMissing(address)
                if answer.status_code != 200:
                    raise StoreAway(f"the store answered {answer.status_code}")
                with making.open("wb") as writing:
                    async for piece in answer.aiter_bytes(_PIECE):
                        digest.update(piece)
                        writing.write(piece)
        except httpx.HTTPError as error:
            raise StoreAway(f"{type(error).__name__}: {error}") from None
        return digest.hexdigest() == address


async def _code(answer: httpx.Response) -> str:
    """The code of a refusal; empty where it has none."""
    try:
        code: str = json.loads(await answer.aread())["error"]["code"]
    except (ValueError, LookupError, TypeError):
        return ""
    return code


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as source:
        while piece := source.read(_PIECE):
            yield piece


def trusted(url: str, tls: ssl.SSLContext | None) -> ssl.SSLContext | bool:
    """Whom a client trusts. Plain HTTP has no use for the authorities of the web, 30 ms to load."""
    return tls or url.startswith("https:")
