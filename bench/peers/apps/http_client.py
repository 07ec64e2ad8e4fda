"""Minimal HTTP client with keep-alive connections.

A client library would cost more than the API, and it is the API that is measured.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Container
from typing import cast
from urllib.parse import urlsplit

import httptools


class HttpPoster:
    """Client that posts JSON to one address, over as many connections as there are requests at a time."""

    def __init__(self, address: str, accepted: Container[int], token: str = "") -> None:
        url = urlsplit(address)
        self._host, self._port = url.hostname or "127.0.0.1", url.port or 80
        self._head = f"Host: {self._host}\r\n" + (f"Authorization: Bearer {token}\r\n" if token else "")
        self._wanted = accepted
        self._free: list[PostConnection] = []

    async def post(self, path: str, content: object) -> bytes:
        connection = self._free.pop() if self._free else await self._connect()
        answer = await connection.post(self._head, path, json.dumps(content).encode(), self._wanted)
        self._free.append(connection)
        return answer

    async def _connect(self) -> PostConnection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(PostConnection, self._host, self._port)
        return connection

    def close(self) -> None:
        for each in self._free:
            each.close()


class PostConnection(asyncio.Protocol):
    """Connection with one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._body = bytearray()

    async def post(self, head: str, path: str, body: bytes, accepted: Container[int]) -> bytes:
        """Send a request, wait, and raise unless the status is an accepted one."""
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        start = f"POST {path} HTTP/1.1\r\n{head}Content-Type: application/json\r\n"
        self._transport.write(f"{start}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        status, content = await self._answer
        if status not in accepted:
            raise RuntimeError(f"the API answered {status}: {content.decode(errors='replace')[:300]}")
        return content

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop has transports of its own kind.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error or ConnectionError("the API closed the connection"))

    def on_message_begin(self) -> None:
        self._body.clear()

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((self._parser.get_status_code(), bytes(self._body)))
