"""A small HTTP/2 application on server connections, served in the process of a test."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any

from runtime.transport.grpc.direct.http2.header_blocks import encode_headers
from runtime.transport.grpc.direct.http2.header_fields import Header
from runtime.transport.grpc.direct.http2.server_connection import ServerConnection
from runtime.transport.grpc.direct.http2.streams import BufferBudget, Limits, Stream

Headers = dict[bytes, bytes]
PATIENCE_S = 60.0
"""After which a test has failed that waits for something; far more than anything takes on a busy machine."""
GROWING_S = (0.01, 0.2, 2.0, 20.0, 60.0)
"""Deadlines to be tried one after the other, where a call has to be in flight before its deadline passes: the
first does, unless the process stands still at that moment."""
MOST_STREAMS = 64
MESSAGE_BYTES = 2**20


def limits(**changed: Any) -> Limits:
    """Limits that no test meets unless it wants to."""
    usual: dict[str, Any] = {
        "streams": MOST_STREAMS,
        "message_bytes": MESSAGE_BYTES,
        "ping_every_s": 60.0,
        "ping_timeout_s": 60.0,
        "shortest_ping_s": 0.0,
        "idle_pings": True,
    }
    return Limits(**{**usual, **changed})


class EchoApplication:
    """Responds by path, and records what happens to it."""

    def __init__(self, max_connections: int = 100) -> None:
        self._max_connections = max_connections
        self.buffer_budget = BufferBudget(2**30)
        self.connections: list[ServerConnection[Headers]] = []
        self.request_headers: dict[int, Headers] = {}
        self.bodies: dict[int, bytearray] = {}
        self.waiting: dict[int, tuple[ServerConnection[Headers], Stream]] = {}
        self.aborted_streams: list[int] = []
        self._changed = asyncio.Event()

    def parse_headers(self, headers: list[Header]) -> Headers:
        return dict(headers)

    def parse_oversized_headers(self, headers: list[Header]) -> Headers:
        return {**dict(headers), b":path": b"/oversized"}

    def accept_connection(self, connection: ServerConnection[Headers]) -> bool:
        if len(self.connections) >= self._max_connections:
            return False
        self.connections.append(connection)
        return True

    def on_connection_closed(self, connection: ServerConnection[Headers]) -> None:
        if connection in self.connections:
            self.connections.remove(connection)
        self._changed.set()

    def on_stream_opened(
        self, connection: ServerConnection[Headers], stream: Stream, headers: Headers
    ) -> None:
        stream.context = headers.get(b":path", b"")
        self.request_headers[stream.id] = headers
        self.bodies[stream.id] = bytearray()
        if stream.context == b"/early":
            respond(connection, stream, b"no more, please")
        elif stream.context == b"/oversized":
            connection.send(stream, None, b"", encode_headers([(b":status", b"431")]))
        elif stream.context == b"/bare":
            block = encode_headers([(b":status", b"200"), (b"x-long", b"x" * 4000)])
            connection.send(stream, None, b"", block)
        self._changed.set()

    def on_data(self, connection: ServerConnection[Headers], stream: Stream, data: bytes) -> None:
        body = self.bodies[stream.id]
        body += data
        if not stream.is_remote_closed:
            return
        path: bytes = stream.context
        if path == b"/echo":
            respond(connection, stream, bytes(body))
        elif path.startswith(b"/large/"):
            respond(connection, stream, make_body(int(path[7:])))
        elif path == b"/wait":
            self.waiting[stream.id] = (connection, stream)
        else:
            raise RuntimeError("a fault of the application")
        self._changed.set()

    def on_stream_aborted(self, connection: ServerConnection[Headers], stream: Stream) -> None:
        self.aborted_streams.append(stream.id)
        self._changed.set()

    async def wait_until(self, is_met: Callable[[], object]) -> None:
        """Wait until a condition is true after one of the recorded events."""
        async with asyncio.timeout(PATIENCE_S):
            while not is_met():
                self._changed.clear()
                await self._changed.wait()


@lru_cache
def make_body(size: int) -> bytes:
    """So many bytes, of which no two parts are mistaken for each other."""
    return b"".join(b"%08d" % number for number in range(-(-size // 8)))[:size]


def respond(connection: ServerConnection[Headers], stream: Stream, body: bytes) -> None:
    """Respond with headers, a body and trailers."""
    connection.send(
        stream, encode_headers([(b":status", b"200")]), body, encode_headers([(b"ended", b"well")])
    )


@asynccontextmanager
async def start_server(application: Any, given: Limits | None = None) -> AsyncIterator[int]:
    """The port of a server; afterwards nothing of it is left, and the exception handler got nothing."""
    loop = asyncio.get_running_loop()
    faults: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _loop, context: faults.append(context))
    before = asyncio.all_tasks()
    made: list[ServerConnection[Any]] = []
    asked = given or limits()

    def make_connection() -> ServerConnection[Any]:
        made.append(ServerConnection(application, asked))
        return made[-1]

    listener = socket.socket()
    # So little that a client that stops reading is soon noticed.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)
    listener.bind(("127.0.0.1", 0))
    server = await loop.create_server(make_connection, sock=listener)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        closed = [each.shut_down_gracefully() for each in application.connections]
        for each in list(application.connections):
            each.close()
        if closed:
            await asyncio.wait(closed, timeout=PATIENCE_S)
        if left := asyncio.all_tasks() - before:
            await asyncio.wait(left, timeout=PATIENCE_S)
    assert asyncio.all_tasks() <= before
    assert (faults, application.buffer_budget.used) == ([], 0)
    for each in made:
        buffered = (each.buffered_request_bytes, each._frame_writer._buffered_bytes)
        assert (each._streams, each.cancelled_calls, buffered) == ({}, 0, (0, 0))
