"""The HTTP client of the store: streams content in chunks, and verifies downloads by their hash."""

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

_CHUNK_BYTES = 1 << 18
_MAX_DOWNLOADS = 3
"""Attempts to download content whose hash is wrong: the store verifies it, but a proxy may not."""
_CORRUPT = errors.BlobCorrupt.code.upper()
_TIMEOUTS = httpx.Timeout(30.0, connect=5.0)


class BlobMissing(Exception):
    """The store has nothing under an address."""


class BlobCorrupt(Exception):
    """The content that the store has under an address is corrupt; uploading it again repairs it."""


class BlobRefused(Exception):
    """The store refuses content for good."""


class StoreUnavailable(Exception):
    """The store is unavailable for now; a retry may succeed."""


class BlobClient:
    """An HTTP client of one store."""

    def __init__(self, url: str, token: str | None = None, tls: ssl.SSLContext | None = None) -> None:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.AsyncClient(
            base_url=url.rstrip("/"),
            headers=headers,
            timeout=_TIMEOUTS,
            verify=choose_tls_verification(url, tls),
        )

    async def __aenter__(self) -> BlobClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def put(self, path: Path) -> str:
        """Store a file; return its address."""
        try:
            response = await self._client.post("/blobs", content=_read_chunks(path))
        except httpx.HTTPError as error:
            raise StoreUnavailable(f"{type(error).__name__}: {error}") from None
        if response.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
            raise BlobRefused(f"the store does not take {path.stat().st_size} bytes")
        try:
            address: str = response.raise_for_status().json()["address"]
        except (httpx.HTTPError, ValueError, LookupError, TypeError):
            raise StoreUnavailable(
                f"the store answered {response.status_code}: {response.text[:200]}"
            ) from None
        return address

    async def get(self, address: str, target: Path) -> None:
        """Download content to a file atomically: it exists only when it is complete and its hash is right."""
        if not is_address(address):
            raise BlobMissing(address)
        partial = target.with_name(f"coming-{uuid4().hex}")
        try:
            for _ in range(_MAX_DOWNLOADS):
                if await self._download(address, partial):
                    partial.replace(target)
                    return
        finally:
            partial.unlink(missing_ok=True)
        raise BlobCorrupt(address)

    async def _download(self, address: str, partial: Path) -> bool:
        """Download content to a file; False where it is complete and its hash is wrong."""
        digest = hashlib.sha256()
        try:
            async with self._client.stream("GET", f"/blobs/{quote(address, safe='')}") as response:
                if response.status_code in (400, 404):
                    raise (
                        BlobCorrupt(address)
                        if await _read_error_code(response) == _CORRUPT
                        else BlobMissing(address)
                    )
                if response.status_code != 200:
                    raise StoreUnavailable(f"the store answered {response.status_code}")
                with partial.open("wb") as file:
                    async for chunk in response.aiter_bytes(_CHUNK_BYTES):
                        digest.update(chunk)
                        file.write(chunk)
        except httpx.HTTPError as error:
            raise StoreUnavailable(f"{type(error).__name__}: {error}") from None
        return digest.hexdigest() == address


async def _read_error_code(response: httpx.Response) -> str:
    """Read the error code of a response; empty where it has none."""
    try:
        code: str = json.loads(await response.aread())["error"]["code"]
    except (ValueError, LookupError, TypeError):
        return ""
    return code


async def _read_chunks(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as source:
        while chunk := source.read(_CHUNK_BYTES):
            yield chunk


def choose_tls_verification(url: str, tls: ssl.SSLContext | None) -> ssl.SSLContext | bool:
    """Choose the TLS verification of a client. Plain HTTP needs no CA bundle, which takes 30 ms to load."""
    return tls or url.startswith("https:")
