"""A small application over HTTP/2, served in the process of a test."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any

from runtime.transport.grpc.direct.header_blocks import Header, written
from runtime.transport.grpc.direct.server_connection import Connection
from runtime.transport.grpc.direct.streams import Held, Limits, Stream

Head = dict[bytes, bytes]
PATIENCE_S = 60.0
"""After which a test has failed that waits for something; far more than anything takes on a busy machine."""
GROWING_S = (0.01, 0.2, 2.0, 20.0, 60.0)
"""Deadlines to be tried one after the other, where a call has to be under way before its deadline passes: the
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


class Tiny:
    """Answers by path, and writes down what happens to it."""

    def __init__(self, most: int = 100) -> None:
        self._most = most
        self.held = Held(2**30)
        self.connections: list[Connection[Head]] = []
        self.heads: dict[int, Head] = {}
        self.bodies: dict[int, bytearray] = {}
        self.waiting: dict[int, tuple[Connection[Head], Stream]] = {}
        self.lost_streams: list[int] = []
        self._changed = asyncio.Event()

    def head(self, headers: list[Header]) -> Head:
        return dict(headers)

    def oversized(self, headers: list[Header]) -> Head:
        return {**dict(headers), b":path": b"/oversized"}

    def connected(self, connection: Connection[Head]) -> bool:
        if len(self.connections) >= self._most:
            return False
        self.connections.append(connection)
        return True

    def disconnected(self, connection: Connection[Head]) -> None:
        if connection in self.connections:
            self.connections.remove(connection)
        self._changed.set()

    def opened(self, connection: Connection[Head], stream: Stream, head: Head) -> None:
        stream.state = head[b":path"]
        self.heads[stream.id] = head
        self.bodies[stream.id] = bytearray()
        if stream.state == b"/early":
            answer(connection, stream, b"no more, please")
        elif stream.state == b"/oversized":
            connection.send(stream, None, b"", written([(b":status", b"431")]))
        elif stream.state == b"/bare":
            connection.send(stream, None, b"", written([(b":status", b"200"), (b"x-long", b"x" * 4000)]))
        self._changed.set()

    def received(self, connection: Connection[Head], stream: Stream, data: bytes) -> None:
        body = self.bodies[stream.id]
        body += data
        if not stream.ended:
            return
        path: bytes = stream.state
        if path == b"/echo":
            answer(connection, stream, bytes(body))
        elif path.startswith(b"/large/"):
            answer(connection, stream, large(int(path[7:])))
        elif path == b"/wait":
            self.waiting[stream.id] = (connection, stream)
        else:
            raise RuntimeError("a fault of the application")
        self._changed.set()

    def lost(self, connection: Connection[Head], stream: Stream) -> None:
        self.lost_streams.append(stream.id)
        self._changed.set()

    async def until(self, holds: Callable[[], object]) -> None:
        """Returns when something holds after one of the things that are written down."""
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                self._changed.clear()
                await self._changed.wait()


@lru_cache
def large(size: int) -> bytes:
    """So many bytes, of which no two parts are mistaken for each other."""
    return b"".join(b"%08d" % number for number in range(-(-size // 8)))[:size]


def answer(connection: Connection[Head], stream: Stream, body: bytes) -> None:
    """Answers with headers, a body and trailers."""
    connection.send(stream, written([(b":status", b"200")]), body, written([(b"ended", b"well")]))


@asynccontextmanager
async def served(application: Any, given: Limits | None = None) -> AsyncIterator[int]:
    """The port of a server; nothing of it is left when it is over, and nothing was told to the loop."""
    loop = asyncio.get_running_loop()
    faults: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _loop, context: faults.append(context))
    before = asyncio.all_tasks()
    made: list[Connection[Any]] = []
    asked = given or limits()

    def connection() -> Connection[Any]:
        made.append(Connection(application, asked))
        return made[-1]

    listener = socket.socket()
    # So little that a client that stops reading is soon noticed.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)
    listener.bind(("127.0.0.1", 0))
    server = await loop.create_server(connection, sock=listener)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        gone = [each.leave() for each in application.connections]
        for each in list(application.connections):
            each.cut()
        if gone:
            await asyncio.wait(gone, timeout=PATIENCE_S)
        if left := asyncio.all_tasks() - before:
            await asyncio.wait(left, timeout=PATIENCE_S)
    assert asyncio.all_tasks() <= before
    assert (faults, application.held.size) == ([], 0)
    for each in made:
        assert (each._streams, each.unfinished, each.unread, each._sender._held) == ({}, 0, 0, 0)
