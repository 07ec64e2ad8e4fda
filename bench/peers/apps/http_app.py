"""Submits to our API over HTTP, by a client that does no more than keep its connections open.

A client library would cost more than the API, and it is the API that is measured.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import httptools

from bench.peers.apps.producer import main

ACCEPTED = 202
JOB_TYPES = {"noop": "echo", "pickup": "pickup"}
"""`echo` is a job type that every worker of the system has; it returns its payload."""


class _Connection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._body = bytearray()

    async def post(self, host: str, path: str, body: bytes) -> bytes:
        """Sends, waits, and raises unless the answer is as wanted."""
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        self._transport.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        status, content = await self._answer
        if status != ACCEPTED:
            raise RuntimeError(f"the API answered {status}: {content.decode(errors='replace')[:300]}")
        return content

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

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


class Producer:
    """Posts jobs, each under a key of its own."""

    def __init__(self, address: str) -> None:
        place = urlsplit(address)
        self._host, self._port = place.hostname or "127.0.0.1", place.port or 80
        self._free: list[_Connection] = []

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return await self._post("/jobs", _job(task, payload))

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object:
        return await self._post("/jobs/batch", {"jobs": [_job(task, each) for each in payloads]})

    async def _post(self, path: str, content: dict[str, object]) -> bytes:
        connection = self._free.pop() if self._free else await self._connect()
        answer = await connection.post(self._host, path, json.dumps(content).encode())
        self._free.append(connection)
        return answer

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(_Connection, self._host, self._port)
        return connection

    def close(self) -> None:
        for each in self._free:
            each.close()


def _job(task: str, payload: dict[str, float]) -> dict[str, object]:
    return {"jobType": JOB_TYPES[task], "payload": payload, "idempotencyKey": str(uuid.uuid4())}


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Producer]:
    """A producer for the API at the address."""
    producer = Producer(address)
    try:
        yield producer
    finally:
        producer.close()


if __name__ == "__main__":
    main(opened)
