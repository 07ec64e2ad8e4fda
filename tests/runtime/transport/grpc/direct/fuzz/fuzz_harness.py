"""Both sides of a connection without a socket: feed bytes, and check that nothing is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from typing import Any

from runtime.transport.grpc.direct.channel import Channel, ResponseHeaders
from runtime.transport.grpc.direct.http2.base_connection import Http2Connection
from runtime.transport.grpc.direct.http2.client_connection import (
    ClientConnection,
    ConnectionLost,
    RefusedStream,
    StreamReset,
)
from runtime.transport.grpc.direct.http2.server_connection import ServerConnection
from runtime.transport.grpc.direct.http2.streams import BufferBudget
from runtime.transport.grpc.direct.messages import GrpcStatusError, RequestHeaders
from runtime.transport.grpc.direct.server_calls import ServerCalls
from tests.runtime.transport.grpc.direct.support.echo_application import PATIENCE_S, limits
from tests.runtime.transport.grpc.direct.support.raw_peer import ACK, PING, frame

MESSAGE_BYTES = 1000
REQUEST = (
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/any"),
    (b"content-type", b"application/grpc"),
)


class MemoryTransport:
    """A transport that records written bytes."""

    def __init__(self) -> None:
        self.written = b""
        self.is_closed = False

    def write(self, data: bytes) -> None:
        assert not self.is_closed
        self.written += data

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


async def return_at_once(_headers: RequestHeaders, message: bytes, _names: tuple[bytes, ...]) -> bytes:
    return message


async def return_later(_headers: RequestHeaders, message: bytes, _names: tuple[bytes, ...]) -> bytes:
    await asyncio.sleep(0)
    return message


async def never_return(_headers: RequestHeaders, _message: bytes, _names: tuple[bytes, ...]) -> bytes:
    await asyncio.Event().wait()
    raise AssertionError


async def echo_stream(messages: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    async for message in messages:
        yield message


async def feed_server(pieces: Iterable[bytes]) -> bytes:
    """Feed bytes of a client to a server connection, and lose it; return its written bytes."""
    calls = ServerCalls(
        {b"/at-once": return_at_once, b"/later": return_later, b"/never": never_return},
        {b"/again": echo_stream},
        lambda _: (),
        lambda *_: None,
        message_bytes=MESSAGE_BYTES,
        connections=1,
        max_buffered_bytes=2 * MESSAGE_BYTES,
        buffer_budget=BufferBudget(4 * MESSAGE_BYTES),
    )
    connection = ServerConnection(calls, limits(message_bytes=MESSAGE_BYTES))
    written = await _feed(connection, pieces)
    assert (connection.cancelled_calls, connection.buffered_request_bytes) == (0, 0)
    assert (calls.buffer_budget.used, calls.connections) == (0, {})
    assert (calls.tasks, calls.streaming_tasks) == (set(), set())
    return written


async def feed_client(pieces: Iterable[bytes]) -> list[bytes | BaseException]:
    """Feed bytes of a server to a client connection with four calls, and lose it; returns how they ended."""
    given = limits(message_bytes=MESSAGE_BYTES)
    channel = Channel("127.0.0.1:9", given)
    connection: ClientConnection[ResponseHeaders] = ClientConnection(channel, given)
    futures: list[asyncio.Future[bytes]] = []

    def send_requests() -> None:
        for size in (0, 10, 100, 900):
            stream = connection.send_request(REQUEST, b"", b"\0\0\0\0\x00" + bytes(size))
            futures.append(stream.context.future)

    await _feed(connection, pieces, send_requests)
    assert channel._connections == {}
    async with asyncio.timeout(PATIENCE_S):
        ends = await asyncio.gather(*futures, return_exceptions=True)
    for end in ends:
        assert isinstance(end, bytes | GrpcStatusError | StreamReset | ConnectionLost | RefusedStream)
    return ends


async def _feed(connection: Http2Connection, pieces: Iterable[bytes], begin: Any = lambda: None) -> bytes:
    loop, before, faults = asyncio.get_running_loop(), asyncio.all_tasks(), list[dict[str, Any]]()
    handler = loop.get_exception_handler()
    loop.set_exception_handler(lambda _loop, context: faults.append(context))
    transport = MemoryTransport()
    try:
        connection.connection_made(transport)
        begin()
        for piece in pieces:
            connection.data_received(piece)
        await _run_turns(connection)
        await _check_alive(connection, transport)
        connection.connection_lost(None)
        async with asyncio.timeout(PATIENCE_S):
            while asyncio.all_tasks() - before:
                await asyncio.sleep(0)
        # Callbacks of tasks that have ended run in the next turn.
        await asyncio.sleep(0)
    finally:
        loop.set_exception_handler(handler)
    assert faults == []
    assert connection._streams == {}
    assert (connection._frame_writer._buffered_bytes, connection._frame_writer._budget.used) == (0, 0)
    assert connection._keepalive._timer is None or connection._keepalive._timer.cancelled()
    return transport.written


async def _run_turns(connection: Http2Connection) -> None:
    for _ in range(5):
        await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE_S):
        while connection._has_yielded:
            await asyncio.sleep(0)


async def _check_alive(connection: Http2Connection, transport: MemoryTransport) -> None:
    """A connection that is not closed, and not in the middle of a frame, answers a PING or closes then."""
    reader = connection._frame_reader
    is_between_frames = reader.has_preface and not reader._unread and reader._header_block is None
    if transport.is_closing() or not is_between_frames:
        return
    connection.data_received(frame(PING, payload=b"alive?!?"))
    await _run_turns(connection)
    assert transport.is_closing() or frame(PING, ACK, payload=b"alive?!?") in transport.written
