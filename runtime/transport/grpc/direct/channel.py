"""A line to another node: one connection, which is made when it is needed and again when it is lost."""

from __future__ import annotations

import asyncio
import errno
import random
import ssl
import time

from runtime.transport.grpc.direct.client_connection import Calling, Cut, Exchange, Unserved
from runtime.transport.grpc.direct.frames import Code
from runtime.transport.grpc.direct.header_blocks import Header
from runtime.transport.grpc.direct.messages import Refused, announced, is_grpc, message_in, status_of, text_of
from runtime.transport.grpc.direct.streams import Limits

_CONNECT_S = 10.0
_CLOSE_S = 1.0
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 1.0
"""A node that comes back is found again soon."""
_PROVEN_S = 1.0
"""After which a connection has proven good, even if nothing was answered over it."""
_MOST_TRIES = 10
_RETRY_S = 0.001
"""A server that counts a call as long as it tidies up after it refuses the next one, and takes it soon after:
the first retry is made at once, the others after this, and twice as much each time."""
_BY_HTTP = {"400": "INTERNAL", "401": "UNAUTHENTICATED", "403": "PERMISSION_DENIED", "404": "UNIMPLEMENTED"}
_BY_HTTP |= dict.fromkeys(("429", "502", "503", "504"), "UNAVAILABLE")
_BY_CODE: dict[int, str] = {
    Code.REFUSED_STREAM: "UNAVAILABLE",
    Code.CANCEL: "CANCELLED",
    Code.ENHANCE_YOUR_CALM: "RESOURCE_EXHAUSTED",
    Code.INADEQUATE_SECURITY: "PERMISSION_DENIED",
}
"""All other codes of RST_STREAM, also those that nobody knows, are INTERNAL."""


class Said:
    """What headers or trailers of an answer say."""

    __slots__ = ("encoding", "headers", "http", "is_grpc", "is_informational", "message", "status")

    def __init__(self, headers: list[Header]) -> None:
        found = dict(headers)
        self.headers = headers
        self.http = found.get(b":status", b"200").decode(errors="replace")
        self.is_informational = self.http.startswith("1")
        self.is_grpc = self.http == "200" and is_grpc(found.get(b"content-type", b""))
        """Whether a body that follows can be messages of gRPC; a proxy may answer with a page instead."""
        self.encoding = found.get(b"grpc-encoding", b"identity")
        status = found.get(b"grpc-status")
        self.status = None if status is None else status_of(status)
        self.message = text_of(found.get(b"grpc-message", b""))


class Line:
    """Sends calls to one address and waits for what is answered."""

    def __init__(
        self,
        address: str,
        limits: Limits,
        tls: ssl.SSLContext | None = None,
        name: str | None = None,
        wait_for_ready: bool = False,
    ) -> None:
        """`name` is what the certificate of the other side has to have. With `wait_for_ready` a call waits
        for a connection as long as its time lets it, instead of failing when there is none.
        """
        self._wait_for_ready = wait_for_ready
        host, _, port = address.rpartition(":")
        self._address = address
        self._host, self._port = host.strip("[]"), port
        self._limits = limits
        self._tls = tls
        self._name = name
        self._connection: Calling[Said] | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._alive: dict[Calling[Said], asyncio.Future[None]] = {}
        self._pause_s = _FIRST_PAUSE_S
        self._not_before = 0.0
        self._made_at = 0.0
        self._unproven = 0
        """Connections in a row that ended soon, without an answer."""
        self._problem = ""
        self._closed = False

    async def call(
        self, headers: tuple[Header, ...], varying: bytes, message: bytes, patience: float
    ) -> bytes:
        """The message that answers one, within so many seconds; raises Refused where there is none."""
        until = time.monotonic() + patience
        for tried in range(_MOST_TRIES):
            if tried > 1:
                pause = random.uniform(0.5, 1.0) * _RETRY_S * 2 ** (tried - 2)
                await asyncio.sleep(min(pause, until - time.monotonic()))
            connection = self._connection
            if connection is None or not connection.is_open or connection.is_full:
                connection = await self._ready(until)
            try:
                return await self._exchange(connection, headers, varying, message, until)
            except Unserved:
                continue
        raise Refused("UNAVAILABLE", f"{self._address} takes no calls")

    async def close(self) -> None:
        """Ends the connection."""
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
        alive = dict(self._alive)
        for connection in alive:
            connection.cut()
        if alive:
            # Under TLS the other side has to agree, and may not.
            await asyncio.wait(alive.values(), timeout=_CLOSE_S)
        for connection in self._alive:
            connection.abort()

    async def _exchange(
        self,
        connection: Calling[Said],
        headers: tuple[Header, ...],
        varying: bytes,
        message: bytes,
        until: float,
    ) -> bytes:
        stream = connection.begin(headers, varying, message)
        answer: asyncio.Future[bytes] = stream.state.answer
        timer = answer.get_loop().call_later(until - time.monotonic(), _expire, answer)
        try:
            return await answer
        except Cut as cut:
            if cut.code is None:
                raise Refused("UNAVAILABLE", f"the connection to {self._address} is lost") from None
            raise Refused(_BY_CODE.get(cut.code, "INTERNAL"), str(cut)) from None
        finally:
            timer.cancel()
            connection.give_up(stream)

    # Connecting.

    async def _ready(self, until: float) -> Calling[Said]:
        """A connection that takes a call now."""
        try:
            async with asyncio.timeout(until - time.monotonic()):
                return await self._open()
        except TimeoutError:
            raise Refused("DEADLINE_EXCEEDED", f"no connection to {self._address} in time") from None

    async def _open(self) -> Calling[Said]:
        while True:
            try:
                return await self._open_once()
            except Refused as refused:
                if not self._wait_for_ready or self._closed or refused.status != "UNAVAILABLE":
                    raise
                await asyncio.sleep(max(self._not_before - time.monotonic(), 0.0))

    async def _open_once(self) -> Calling[Said]:
        while True:
            connection = self._connection
            if connection is not None and connection.is_open:
                if not connection.is_full:
                    return connection
                await connection.room()
                continue
            if connection is not None:
                self.leaving(connection)
            if self._closed:
                raise Refused("CANCELLED", "the channel is closed")
            if self._connecting is None:
                if time.monotonic() < self._not_before:
                    raise Refused("UNAVAILABLE", self._problem)
                self._connecting = asyncio.create_task(self._connect())
                self._connecting.add_done_callback(_seen)
            # Whoever gives up leaves the others their connection.
            await asyncio.shield(self._connecting)

    async def _connect(self) -> None:
        try:
            connection = await self._reach()
        except asyncio.CancelledError:
            if not self._closed:
                raise
            # Those who wait for it are not cancelled themselves.
            raise Refused("CANCELLED", "the channel is closed") from None
        finally:
            self._connecting = None
        self._made_at = time.monotonic()
        self._connection = connection

    async def _reach(self) -> Calling[Said]:
        try:
            async with asyncio.timeout(_CONNECT_S):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: Calling(self, self._limits),
                    self._host,
                    int(self._port),
                    ssl=self._tls,
                    server_hostname=self._name if self._tls is not None else None,
                )
            # What listens may be no server, or one that is full: a connection counts when the server speaks.
            await connection.introduced()
        except (OSError, TimeoutError, ValueError) as error:
            raise self._back_off(_why(error)) from None
        return connection

    def _back_off(self, why: str) -> Refused:
        """Make no connection for a while, which grows each time; returns how calls end meanwhile."""
        self._problem = f"cannot connect to {self._address}: {why}"
        # Those who wait for a node must not all come back at the same moment.
        self._not_before = time.monotonic() + random.uniform(0.5, 1.0) * self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        return Refused("UNAVAILABLE", self._problem)

    def connected(self, connection: Calling[Said]) -> None:
        self._alive[connection] = asyncio.get_running_loop().create_future()

    def leaving(self, connection: Calling[Said]) -> None:
        if self._connection is not connection:
            return
        self._connection = None
        if connection.has_answered or time.monotonic() - self._made_at >= _PROVEN_S:
            self._unproven = 0
            self._pause_s = _FIRST_PAUSE_S
            return
        self._unproven += 1
        # One alone is a server that stops: what it has not begun is made again at once, at its successor.
        if self._unproven > 1:
            self._back_off("it ends each connection before it answers")

    def gone(self, connection: Calling[Said]) -> None:
        self._alive.pop(connection).set_result(None)

    # What is made of answers.

    def head(self, headers: list[Header]) -> Said:
        return Said(headers)

    def take(self, exchange: Exchange[Said], data: bytes) -> None:
        head = exchange.head
        if head is not None and not head.is_grpc:
            raise self._failure(head, head)
        if isinstance(exchange.body, bytearray):
            exchange.body += data
        else:
            exchange.body = bytearray(exchange.body + data) if exchange.body else data
        length = announced(exchange.body, self._limits.message_bytes)
        if length and len(exchange.body) > length:
            raise Refused("UNIMPLEMENTED", f"{self._address} answered with more than one message")

    def answer(self, exchange: Exchange[Said], trailers: Said) -> bytes:
        if trailers.status == "OK":
            return self._message(exchange.body, (exchange.head or trailers).encoding)
        raise self._failure(exchange.head or trailers, trailers)

    def _message(self, body: bytes | bytearray, encoding: bytes) -> bytes:
        if not body:
            raise Refused("UNIMPLEMENTED", f"{self._address} answered without a message")
        try:
            return message_in(body, encoding, self._limits.message_bytes)
        except Refused as refused:
            if refused.status == "RESOURCE_EXHAUSTED":
                raise
            # What is wrong with a request is told otherwise: there the fault is the caller's.
            why = f"the answer of {self._address} cannot be read: {refused.message}"
            raise Refused("INTERNAL", why) from None

    def _failure(self, head: Said, trailers: Said) -> Refused:
        """Map the end of a call to a status: that of gRPC, or without one what its HTTP status stands for."""
        if trailers.status is None or trailers.status == "OK":
            why = f"{self._address} answered with HTTP status {head.http} and no grpc-status"
            return Refused(_BY_HTTP.get(head.http, "UNKNOWN"), why)
        return Refused(trailers.status, trailers.message, tuple(trailers.headers))


def _seen(task: asyncio.Task[None]) -> None:
    """Whoever waited for a connection may have gone, and then nobody hears why there is none."""
    if not task.cancelled():
        task.exception()


def _why(error: OSError | ValueError) -> str:
    """What keeps a connection from being made. An error has many words where a name has several addresses."""
    if isinstance(error, ConnectionRefusedError) or f"[Errno {errno.ECONNREFUSED}]" in str(error):
        return "the connection is refused"
    if isinstance(error, TimeoutError):
        return "nobody answers"
    return str(error) or type(error).__name__


def _expire(answer: asyncio.Future[bytes]) -> None:
    if not answer.done():
        answer.set_exception(Refused("DEADLINE_EXCEEDED", "no answer came in time"))
