"""Connections to an HTTP server that are kept open and used again; one request at a time on each."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from typing import NamedTuple, cast

import httptools

from runtime.s3.errors import Refused

_IDLE_S = 20.0
"""A connection that was not used for so long is not trusted any more."""
_BYTES_PER_S = 1e6
"""What a slow network carries; a long body has that much more time."""


class NotSent(Exception):
    """There was no connection, so the server has seen nothing of the request."""


class NoAnswer(Exception):
    """The request went out, and no whole answer came back."""


class Told(NamedTuple):
    """An answer. The names of its headers are in small letters."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")


class Wire:
    """A server's address and the connections to it that are idle."""

    def __init__(
        self, host: str, port: int, *, tls: ssl.SSLContext | None, timeout_s: float, most: int
    ) -> None:
        self._address = (host, port)
        self._tls = tls
        self._timeout_s = timeout_s
        self._turn = asyncio.Semaphore(most)
        self._idle: list[_Connection] = []

    async def ask(self, request: bytes) -> Told:
        """Sends a request and waits for its answer."""
        async with self._turn:
            connection = self._kept() or await self._connected()
            try:
                told = await connection.ask(request, self._timeout_s + len(request) / _BYTES_PER_S)
            except BaseException:
                connection.abort()
                raise
            if connection.usable:
                self._idle.append(connection)
            return told

    def close(self) -> None:
        for connection in self._idle:
            connection.abort()
        self._idle.clear()

    def _kept(self) -> _Connection | None:
        """The one that was used last. Others are left to grow old when fewer are needed."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and now - connection.idle_since < _IDLE_S:
                return connection
            connection.abort()
        return None

    async def _connected(self) -> _Connection:
        loop = asyncio.get_running_loop()
        host, port = self._address
        try:
            async with asyncio.timeout(self._timeout_s):
                _, made = await loop.create_connection(lambda: _Connection(loop), host, port, ssl=self._tls)
        except TimeoutError:
            raise NotSent(f"no connection to {host}:{port} within {self._timeout_s:g} s") from None
        except ssl.SSLCertVerificationError as error:
            raise Refused(
                f"The store at {host}:{port} cannot be trusted: {error.verify_message}. "
                "AWS_CA_BUNDLE may name a file with its authority."
            ) from None
        except OSError as error:
            raise NotSent(f"no connection to {host}:{port}: {_reason(error)}") from None
        return made


class _Connection(asyncio.Protocol):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Told] | None = None
        self.idle_since = 0.0
        self._begin()

    @property
    def usable(self) -> bool:
        return self._transport is not None and not self._transport.is_closing() and self._keeps

    async def ask(self, request: bytes, patience_s: float) -> Told:
        if self._transport is None:
            raise NotSent("the connection has just ended")
        self._begin()
        waiter: asyncio.Future[Told] = self._loop.create_future()
        self._waiter = waiter
        self._transport.write(request)
        timer = self._loop.call_later(patience_s, self._fail, f"no answer within {patience_s:.3g} s")
        try:
            return await waiter
        finally:
            timer.cancel()
            self._waiter = None
            self.idle_since = self._loop.time()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[bytes, bytes] = {}
        self._parts: list[bytes] = []
        self._keeps = True

    def _fail(self, why: str) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(NoAnswer(why))

    # What the loop calls.
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._waiter is None:
            # Nothing was asked: whatever this is, no later answer could be trusted.
            self.abort()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(f"an answer that is no HTTP: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._fail(f"the connection ended: {_reason(exc)}" if exc else "the connection ended")

    # What the parser calls.
    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_body(self, data: bytes) -> None:
        self._parts.append(data)

    def on_message_complete(self) -> None:
        status: int = self._parser.get_status_code()
        if status < 200:
            self._headers.clear()
            return
        self._keeps = self._parser.should_keep_alive()
        if self._waiter is not None and not self._waiter.done():
            parts = self._parts
            body = parts[0] if len(parts) == 1 else b"".join(parts)
            self._waiter.set_result(Told(status, self._headers, body))


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno and not isinstance(error, socket.gaierror | ssl.SSLError):
        return os.strerror(error.errno).lower()
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
