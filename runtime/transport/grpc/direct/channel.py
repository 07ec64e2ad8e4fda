"""A channel to one address: a connection that is made when it is needed, and again when it is lost."""

from __future__ import annotations

import asyncio
import errno
import random
import ssl
import time

from runtime.transport.grpc.direct.http2.client_connection import (
    ClientConnection,
    ConnectionLost,
    PendingResponse,
    RefusedStream,
    StreamReset,
)
from runtime.transport.grpc.direct.http2.frames import ErrorCode
from runtime.transport.grpc.direct.http2.header_fields import Header
from runtime.transport.grpc.direct.http2.streams import Limits
from runtime.transport.grpc.direct.messages import (
    GrpcStatusError,
    is_grpc,
    message_length,
    parse_message,
    parse_status,
    parse_status_message,
)

_CONNECT_S = 10.0
_CLOSE_S = 1.0
_FIRST_BACKOFF_S = 0.1
_MAX_BACKOFF_S = 1.0
"""Short, so that a node that comes back is found again soon."""
_PROVEN_S = 1.0
"""After which a connection has proven good, even without a response on it."""
_MAX_ATTEMPTS = 10
_RETRY_S = 0.001
"""A server that counts a call as long as it cleans up after it refuses the next one, and takes it soon after:
the first retry is made at once, the others after this, and twice as much each time."""
_STATUS_BY_HTTP = {
    "400": "INTERNAL",
    "401": "UNAUTHENTICATED",
    "403": "PERMISSION_DENIED",
    "404": "UNIMPLEMENTED",
    **dict.fromkeys(("429", "502", "503", "504"), "UNAVAILABLE"),
}
_STATUS_BY_CODE: dict[int, str] = {
    ErrorCode.REFUSED_STREAM: "UNAVAILABLE",
    ErrorCode.CANCEL: "CANCELLED",
    ErrorCode.ENHANCE_YOUR_CALM: "RESOURCE_EXHAUSTED",
    ErrorCode.INADEQUATE_SECURITY: "PERMISSION_DENIED",
}
"""All other error codes of RST_STREAM, also unknown ones, are INTERNAL."""


class ResponseHeaders:
    """The parsed headers or trailers of a response."""

    __slots__ = ("encoding", "headers", "http_status", "is_grpc", "is_informational", "message", "status")

    def __init__(self, headers: list[Header]) -> None:
        found = dict(headers)
        self.headers = headers
        self.http_status = found.get(b":status", b"200").decode(errors="replace")
        self.is_informational = self.http_status.startswith("1")
        self.is_grpc = self.http_status == "200" and is_grpc(found.get(b"content-type", b""))
        """Whether the body can be a gRPC message; a proxy may respond with a page instead."""
        self.encoding = found.get(b"grpc-encoding", b"identity")
        status = found.get(b"grpc-status")
        self.status = None if status is None else parse_status(status)
        self.message = parse_status_message(found.get(b"grpc-message", b""))


class Channel:
    """Sends unary calls to one address, and reconnects with a backoff."""

    def __init__(
        self,
        address: str,
        limits: Limits,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
        wait_for_ready: bool = False,
    ) -> None:
        """`server_name` is the name that the server's certificate has to have. With `wait_for_ready` a call
        waits for a connection until its deadline, instead of failing when there is none.
        """
        self._wait_for_ready = wait_for_ready
        host, _, port = address.rpartition(":")
        self._address = address
        self._host, self._port = host.strip("[]"), port
        self._limits = limits
        self._tls = tls
        self._server_name = server_name
        self._connection: ClientConnection[ResponseHeaders] | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._connections: dict[ClientConnection[ResponseHeaders], asyncio.Future[None]] = {}
        """All connections that are not closed yet, with the future of their end."""
        self._backoff_s = _FIRST_BACKOFF_S
        self._connect_not_before = 0.0
        self._connected_at = 0.0
        self._unproven = 0
        """Connections in a row that ended soon, without a response."""
        self._connect_error = ""
        self._is_closed = False

    async def call(
        self, headers: tuple[Header, ...], varying: bytes, message: bytes, timeout_s: float
    ) -> bytes:
        """Send a message and return the response's; raises GrpcStatusError where there is none in time.

        `varying` is the header block of headers that hardly ever come again.
        """
        deadline = time.monotonic() + timeout_s
        for attempt in range(_MAX_ATTEMPTS):
            if attempt > 1:
                pause = random.uniform(0.5, 1.0) * _RETRY_S * 2 ** (attempt - 2)
                await asyncio.sleep(min(pause, deadline - time.monotonic()))
            connection = self._connection
            if connection is None or not connection.is_open or connection.is_full:
                connection = await self._get_connection(deadline)
            try:
                return await self._call_once(connection, headers, varying, message, deadline)
            except RefusedStream:
                continue
        raise GrpcStatusError("UNAVAILABLE", f"{self._address} refuses all streams")

    async def close(self) -> None:
        """Close all connections; calls in flight fail."""
        self._is_closed = True
        if self._connecting is not None:
            self._connecting.cancel()
        closing = dict(self._connections)
        for connection in closing:
            connection.close()
        if closing:
            # Under TLS the peer has to take part, and may not.
            await asyncio.wait(closing.values(), timeout=_CLOSE_S)
        for connection in self._connections:
            connection.abort()

    async def _call_once(
        self,
        connection: ClientConnection[ResponseHeaders],
        headers: tuple[Header, ...],
        varying: bytes,
        message: bytes,
        deadline: float,
    ) -> bytes:
        stream = connection.send_request(headers, varying, message)
        future: asyncio.Future[bytes] = stream.context.future
        timer = future.get_loop().call_later(deadline - time.monotonic(), _expire, future)
        try:
            return await future
        except ConnectionLost:
            raise GrpcStatusError("UNAVAILABLE", f"the connection to {self._address} is lost") from None
        except StreamReset as reset:
            raise GrpcStatusError(_STATUS_BY_CODE.get(reset.code, "INTERNAL"), str(reset)) from None
        finally:
            timer.cancel()
            connection.cancel_call(stream)

    # Connecting.

    async def _get_connection(self, deadline: float) -> ClientConnection[ResponseHeaders]:
        """Wait for a connection on which a stream can be opened now."""
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                return await self._wait_for_connection()
        except TimeoutError:
            raise GrpcStatusError(
                "DEADLINE_EXCEEDED", f"no connection to {self._address} before the deadline"
            ) from None

    async def _wait_for_connection(self) -> ClientConnection[ResponseHeaders]:
        while True:
            try:
                return await self._try_connection()
            except GrpcStatusError as error:
                if not self._wait_for_ready or self._is_closed or error.status != "UNAVAILABLE":
                    raise
                await asyncio.sleep(max(self._connect_not_before - time.monotonic(), 0.0))

    async def _try_connection(self) -> ClientConnection[ResponseHeaders]:
        while True:
            connection = self._connection
            if connection is not None and connection.is_open:
                if not connection.is_full:
                    return connection
                await connection.wait_for_capacity()
                continue
            if connection is not None:
                self.on_going_away(connection)
            if self._is_closed:
                raise GrpcStatusError("CANCELLED", "the channel is closed")
            if self._connecting is None:
                if time.monotonic() < self._connect_not_before:
                    raise GrpcStatusError("UNAVAILABLE", self._connect_error)
                self._connecting = asyncio.create_task(self._connect())
                self._connecting.add_done_callback(_retrieve_exception)
            # A call that is cancelled does not cancel the connection that others wait for.
            await asyncio.shield(self._connecting)

    async def _connect(self) -> None:
        try:
            connection = await self._open_connection()
        except asyncio.CancelledError:
            if not self._is_closed:
                raise
            # The calls that wait for it are not cancelled themselves.
            raise GrpcStatusError("CANCELLED", "the channel is closed") from None
        finally:
            self._connecting = None
        self._connected_at = time.monotonic()
        self._connection = connection

    async def _open_connection(self) -> ClientConnection[ResponseHeaders]:
        try:
            async with asyncio.timeout(_CONNECT_S):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: ClientConnection(self, self._limits),
                    self._host,
                    int(self._port),
                    ssl=self._tls,
                    server_hostname=self._server_name if self._tls is not None else None,
                )
            # What listens may be no HTTP/2 server, or one that is full: it counts after its SETTINGS.
            await connection.wait_for_settings()
        except (OSError, TimeoutError, ValueError) as error:
            raise self._back_off(_format_connect_error(error)) from None
        return connection

    def _back_off(self, reason: str) -> GrpcStatusError:
        """Make no connection for a while, which grows each time; returns the error of calls meanwhile."""
        self._connect_error = f"cannot connect to {self._address}: {reason}"
        # Jitter: not all clients of a node come back at the same moment.
        self._connect_not_before = time.monotonic() + random.uniform(0.5, 1.0) * self._backoff_s
        self._backoff_s = min(2 * self._backoff_s, _MAX_BACKOFF_S)
        return GrpcStatusError("UNAVAILABLE", self._connect_error)

    def on_connected(self, connection: ClientConnection[ResponseHeaders]) -> None:
        self._connections[connection] = asyncio.get_running_loop().create_future()

    def on_going_away(self, connection: ClientConnection[ResponseHeaders]) -> None:
        if self._connection is not connection:
            return
        self._connection = None
        if connection.has_had_response or time.monotonic() - self._connected_at >= _PROVEN_S:
            self._unproven = 0
            self._backoff_s = _FIRST_BACKOFF_S
            return
        self._unproven += 1
        # One alone is a server that stops: calls that it has not processed are retried at once, at its
        # successor.
        if self._unproven > 1:
            self._back_off("it ends each connection before it responds")

    def on_closed(self, connection: ClientConnection[ResponseHeaders]) -> None:
        self._connections.pop(connection).set_result(None)

    # Parsing responses.

    def parse_headers(self, headers: list[Header]) -> ResponseHeaders:
        return ResponseHeaders(headers)

    def append_data(self, response: PendingResponse[ResponseHeaders], data: bytes) -> None:
        headers = response.headers
        if headers is not None and not headers.is_grpc:
            raise self._make_status_error(headers, headers)
        if isinstance(response.body, bytearray):
            response.body += data
        else:
            response.body = bytearray(response.body + data) if response.body else data
        length = message_length(response.body, self._limits.message_bytes)
        if length and len(response.body) > length:
            raise GrpcStatusError("UNIMPLEMENTED", f"{self._address} answered with more than one message")

    def parse_response(self, response: PendingResponse[ResponseHeaders], trailers: ResponseHeaders) -> bytes:
        if trailers.status == "OK":
            return self._parse_body(response.body, (response.headers or trailers).encoding)
        raise self._make_status_error(response.headers or trailers, trailers)

    def _parse_body(self, body: bytes | bytearray, encoding: bytes) -> bytes:
        if not body:
            raise GrpcStatusError("UNIMPLEMENTED", f"{self._address} answered without a message")
        try:
            return parse_message(body, encoding, self._limits.message_bytes)
        except GrpcStatusError as error:
            if error.status == "RESOURCE_EXHAUSTED":
                raise
            # Other statuses blame the caller, as for a request; here the server is at fault.
            reason = f"the response of {self._address} cannot be parsed: {error.message}"
            raise GrpcStatusError("INTERNAL", reason) from None

    def _make_status_error(self, headers: ResponseHeaders, trailers: ResponseHeaders) -> GrpcStatusError:
        """Map the end of a call to a status: its grpc-status, or without one by its HTTP status."""
        if trailers.status is None or trailers.status == "OK":
            reason = f"{self._address} answered with HTTP status {headers.http_status} and no grpc-status"
            return GrpcStatusError(_STATUS_BY_HTTP.get(headers.http_status, "UNKNOWN"), reason)
        return GrpcStatusError(trailers.status, trailers.message, tuple(trailers.headers))


def _retrieve_exception(task: asyncio.Task[None]) -> None:
    """Mark the exception of a task as retrieved: all calls that waited for it may have gone."""
    if not task.cancelled():
        task.exception()


def _format_connect_error(error: OSError | ValueError) -> str:
    """Why a connection cannot be made. An error has many words where a name has several addresses."""
    if isinstance(error, ConnectionRefusedError) or f"[Errno {errno.ECONNREFUSED}]" in str(error):
        return "the connection is refused"
    if isinstance(error, TimeoutError):
        return f"no answer within {_CONNECT_S:g} s"
    return str(error) or type(error).__name__


def _expire(future: asyncio.Future[bytes]) -> None:
    if not future.done():
        future.set_exception(GrpcStatusError("DEADLINE_EXCEEDED", "no response before the deadline"))
