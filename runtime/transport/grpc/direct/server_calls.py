"""gRPC calls on the connections of a server: dispatch to methods, deadlines, limits, and their end."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Coroutine, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

from runtime.transport.grpc.direct.http2.frames import ErrorCode
from runtime.transport.grpc.direct.http2.header_fields import Header
from runtime.transport.grpc.direct.http2.server_connection import ServerConnection
from runtime.transport.grpc.direct.http2.streams import BufferBudget, Stream
from runtime.transport.grpc.direct.messages import (
    OK_TRAILERS,
    OVERSIZED_HEADERS,
    RESPONSE_HEADERS,
    GrpcStatusError,
    RequestHeaders,
    encode_trailers,
    encode_trailers_only,
    format_response_too_large,
    frame_message,
    message_length,
    parse_message,
)

UnaryMethod = Callable[[RequestHeaders, bytes, tuple[bytes, ...]], Coroutine[Any, Any, bytes]]
"""Takes the headers of a call, its message and the names in the client's certificate; returns a message."""
StreamingMethod = Callable[[AsyncIterator[bytes]], AsyncGenerator[bytes, None]]
"""Takes the messages of a call as they arrive, and yields messages."""
Report = Callable[[RequestHeaders, tuple[bytes, ...], str, str], None]
"""Takes the headers of a call that ended without its method, the names in the client's certificate, and the
status and message that it ended with."""
LimitMessage = Callable[[RequestHeaders, tuple[bytes, ...]], int]
"""The message limit of a call in bytes, by its headers and the names in the client's certificate; 0
where its guard refuses it, whatever it contains."""
ExplainError = Callable[[BaseException], GrpcStatusError | None]
"""The status of a call whose method has raised an exception; None for a fault."""
Connection = ServerConnection[RequestHeaders]

_COMPRESSED_FLAG = b"\x01"
_DECOMPRESSED_BYTES_PER_WORK = 128
"""Bytes of a message that are decompressed with as much work as one byte of a header block is decoded."""
_STOPPING = "the server stops"
_MAX_UNREAD_MESSAGES = 16
"""Messages of a streaming call that may wait for its method."""
MAX_STREAMED_MESSAGE_BYTES = 4096
"""Of a message to health and reflection, which has the name of a service or a symbol."""
_MAX_STREAMING_CALLS = 64
"""Of a connection; every client may begin them where health and reflection are open to anyone."""
_MAX_UNSENT_BYTES = 2**20
"""Bytes of a streaming call that flow control may hold back."""


class ServerCall:
    """A call that is being received or processed."""

    __slots__ = ("body", "has_begun", "headers", "message_limit", "messages", "method", "task", "timer")

    def __init__(self, headers: RequestHeaders, method: UnaryMethod | None) -> None:
        self.headers = headers
        self.method = method
        self.body = bytearray()
        self.message_limit: int | None = None
        """The limit of its message in bytes; None before it is known."""
        self.has_begun = False
        """Whether its method runs, which reports its end itself."""
        self.messages: asyncio.Queue[bytes | None] | None = None
        """The messages of a streaming call."""
        self.task: asyncio.Task[Any] | None = None
        self.timer: asyncio.TimerHandle | None = None


class ServerCalls:
    """All calls of a server: the application of its connections."""

    def __init__(
        self,
        unary_methods: Mapping[bytes, UnaryMethod],
        streaming_methods: Mapping[bytes, StreamingMethod],
        get_certificate_names: Callable[[asyncio.Transport], tuple[bytes, ...]],
        report: Report,
        *,
        message_bytes: int,
        connections: int,
        max_buffered_bytes: int,
        buffer_budget: BufferBudget,
        certified: Collection[bytes] = (),
        limit_message: LimitMessage | None = None,
        parse_metadata: Callable[[list[Header]], Any] = list,
        explain_error: ExplainError = lambda _error: None,
    ) -> None:
        """`limit_message` is called before parts of a message are buffered, or one is decompressed.
        `parse_metadata` converts the metadata for methods, and `explain_error` converts what they raise to
        a status; methods report that themselves.
        """
        self._unary_methods = unary_methods
        self._streaming_methods = streaming_methods
        self._get_certificate_names = get_certificate_names
        self._report = report
        self._certified = frozenset(certified)
        """Paths that only clients with a certificate may call."""
        self._message_bytes = message_bytes
        self._limit_message = limit_message or (lambda _headers, _names: message_bytes)
        self._parse_metadata = parse_metadata
        self._explain_error = explain_error
        self._max_connections = connections
        self._max_buffered_bytes = max_buffered_bytes
        self.buffer_budget = buffer_budget
        self._context = contextvars.copy_context()
        """The context variables that every call begins with; what one call sets, no other call sees."""
        self.is_stopping = False
        self.connections: dict[Connection, tuple[bytes, ...]] = {}
        """The open connections, with the names in their clients' certificates."""
        self.tasks: set[asyncio.Task[Any]] = set()
        self.streaming_tasks: set[asyncio.Task[Any]] = set()
        """Those of the tasks that may last for as long as the server does."""

    def parse_headers(self, headers: list[Header]) -> RequestHeaders:
        return RequestHeaders(headers, self._parse_metadata)

    def parse_oversized_headers(self, headers: list[Header]) -> RequestHeaders:
        parsed = RequestHeaders(headers, self._parse_metadata)
        parsed.refusal = OVERSIZED_HEADERS
        return parsed

    def accept_connection(self, connection: Connection) -> bool:
        if self.is_stopping or len(self.connections) >= self._max_connections:
            return False
        self.connections[connection] = self._get_certificate_names(connection.transport)
        return True

    def on_connection_closed(self, connection: Connection) -> None:
        self.connections.pop(connection, None)

    def on_stream_opened(self, connection: Connection, stream: Stream, headers: RequestHeaders) -> None:
        method = self._unary_methods.get(headers.path)
        if headers.path in self._certified and not self.connections[connection]:
            # Refused after its message: a client that is reset before may take that for another failure.
            stream.context = ServerCall(headers, _refuse_uncertified)
        elif method is not None and headers.refusal is None:
            stream.context = ServerCall(headers, method)
        elif headers.refusal is not None:
            refusal = headers.refusal
            connection.send(stream, None, b"", refusal.header_block)
            self._report(headers, self.connections[connection], refusal.status, refusal.message)
        elif (streaming_method := self._streaming_methods.get(headers.path)) is None:
            path = headers.path.decode(errors="replace")
            self._refuse_stream(connection, stream, headers, "UNIMPLEMENTED", f"no method {path}")
        elif connection.streaming_calls >= _MAX_STREAMING_CALLS:
            message = f"more than {_MAX_STREAMING_CALLS} streaming calls on this connection"
            self._refuse_stream(connection, stream, headers, "RESOURCE_EXHAUSTED", message)
        elif self.is_stopping:
            # It could last for as long as the server does.
            self._refuse_stream(connection, stream, headers, "UNAVAILABLE", _STOPPING)
        else:
            self._begin_streaming(connection, stream, headers, streaming_method)

    def _refuse_stream(
        self, connection: Connection, stream: Stream, headers: RequestHeaders, status: str, message: str
    ) -> None:
        connection.send(stream, None, b"", encode_trailers_only(status, message))
        self._report(headers, self.connections[connection], status, message)

    def on_data(self, connection: Connection, stream: Stream, data: bytes) -> None:
        call: ServerCall = stream.context
        try:
            if call.messages is not None:
                self._queue_messages(call, call.messages, data, stream.is_remote_closed)
            elif not stream.is_remote_closed:
                self._buffer_data(connection, stream, call, data)
            elif call.body:
                body = call.body + data
                self._discard_body(connection, call)
                self._begin_unary(connection, stream, call, body)
            else:
                self._begin_unary(connection, stream, call, data)
        except (Exception, asyncio.CancelledError) as error:
            self._end_with_error(connection, stream, call, error)
            self._cancel(connection, call)

    def on_stream_aborted(self, connection: Connection, stream: Stream) -> None:
        call: ServerCall | None = stream.context
        if call is not None:
            self._cancel(connection, call)

    def _buffer_data(self, connection: Connection, stream: Stream, call: ServerCall, data: bytes) -> None:
        """Buffer a part of a message, unless the guard of its method refuses it anyway."""
        if limit := self._get_message_limit(connection, call):
            call.body += data
            connection.buffered_request_bytes += len(data)
            self.buffer_budget.used += len(data)
            length = message_length(call.body, limit)
            if length and len(call.body) > length:
                raise GrpcStatusError("INVALID_ARGUMENT", "a unary call has exactly one complete message")
            if connection.buffered_request_bytes > self._max_buffered_bytes:
                raise GrpcStatusError(
                    "RESOURCE_EXHAUSTED", "too many bytes of incomplete messages on this connection"
                )
            if self.buffer_budget.used > self.buffer_budget.limit:
                raise GrpcStatusError(
                    "RESOURCE_EXHAUSTED", "too many bytes of incomplete messages on this server"
                )
        self._start_timer(connection, stream, call)

    def _get_message_limit(self, connection: Connection, call: ServerCall) -> int:
        if call.message_limit is None:
            call.message_limit = self._limit_message(call.headers, self.connections[connection])
        return call.message_limit

    def _begin_unary(
        self, connection: Connection, stream: Stream, call: ServerCall, data: bytes | bytearray
    ) -> None:
        if call.message_limit is None and data[:1] != _COMPRESSED_FLAG:
            message = parse_message(data, call.headers.encoding, self._message_bytes)
        elif limit := self._get_message_limit(connection, call):
            message = parse_message(data, call.headers.encoding, limit)
            connection.count_work(len(message) // _DECOMPRESSED_BYTES_PER_WORK)
        else:
            # Its guard refuses it, and says why.
            message = b""
        running = self._run_method(call, message, self.connections[connection])
        task = asyncio.get_running_loop().create_task(running, context=self._context.copy())
        self._track_task(connection, stream, call, task)

    async def _run_method(self, call: ServerCall, message: bytes, names: tuple[bytes, ...]) -> bytes:
        assert call.method is not None
        call.has_begun = True
        return await call.method(call.headers, message, names)

    def _track_task(
        self, connection: Connection, stream: Stream, call: ServerCall, task: asyncio.Task[Any]
    ) -> None:
        call.task = task
        self.tasks.add(task)
        task.add_done_callback(partial(self._on_task_done, connection, stream, call))
        self._start_timer(connection, stream, call)

    def _start_timer(self, connection: Connection, stream: Stream, call: ServerCall) -> None:
        if call.headers.timeout is not None and call.timer is None:
            loop = asyncio.get_running_loop()
            call.timer = loop.call_later(call.headers.timeout, self._expire, connection, stream, call)

    def _expire(self, connection: Connection, stream: Stream, call: ServerCall) -> None:
        """End a call whose deadline has passed."""
        self._cancel(connection, call)
        self._end(connection, stream, call, "DEADLINE_EXCEEDED", "the deadline has passed")

    def _on_task_done(
        self, connection: Connection, stream: Stream, call: ServerCall, task: asyncio.Task[Any]
    ) -> None:
        self.tasks.discard(task)
        if call.messages is not None:
            self.streaming_tasks.discard(task)
            connection.streaming_calls -= 1
        if call.timer is not None:
            call.timer.cancel()
        if task.cancelled():
            self._end_with_error(connection, stream, call, asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            self._end_with_error(connection, stream, call, error)
        elif call.messages is None:
            self._respond(connection, stream, call, task.result())
        else:
            connection.send(stream, None, b"", OK_TRAILERS)

    def _respond(self, connection: Connection, stream: Stream, call: ServerCall, message: bytes) -> None:
        if len(message) > self._message_bytes:
            reason = format_response_too_large(len(message), self._message_bytes)
            self._end_with_error(connection, stream, call, GrpcStatusError("RESOURCE_EXHAUSTED", reason))
        else:
            connection.send(stream, RESPONSE_HEADERS, frame_message(message), OK_TRAILERS)

    def _end_with_error(
        self, connection: Connection, stream: Stream, call: ServerCall, error: BaseException
    ) -> None:
        trailers: tuple[Header, ...] = ()
        is_reported = False
        if isinstance(error, GrpcStatusError):
            status, message, trailers = error.status, error.message, error.trailers
        elif (explained := self._explain_error(error)) is not None:
            status, message, trailers = explained.status, explained.message, explained.trailers
            is_reported = True
        elif isinstance(error, asyncio.CancelledError):
            is_reported = call.has_begun
            status, message = "CANCELLED", "the call was cancelled"
            if self.is_stopping:
                status, message = "UNAVAILABLE", _STOPPING
        else:
            context = {"message": "a call has failed outside its method", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            status, message = "INTERNAL", "the server has a fault"
        self._end(connection, stream, call, status, message, trailers, is_reported=is_reported)

    def _end(
        self,
        connection: Connection,
        stream: Stream,
        call: ServerCall,
        status: str,
        message: str,
        trailers: tuple[Header, ...] = (),
        *,
        is_reported: bool | None = None,
    ) -> None:
        """End a call with a status other than OK, and report that unless its method has done so."""
        if not connection.is_response_open(stream):
            return
        block = encode_trailers(status, message, trailers)
        connection.send(stream, None, b"", block if call.messages is not None else RESPONSE_HEADERS + block)
        if not (call.has_begun if is_reported is None else is_reported):
            self._report(call.headers, self.connections.get(connection, ()), status, message)

    def _discard_body(self, connection: Connection, call: ServerCall) -> None:
        """Drop what is buffered of the message of a call."""
        if call.messages is None:
            connection.buffered_request_bytes -= len(call.body)
            self.buffer_budget.used -= len(call.body)
        call.body = bytearray()

    def _cancel(self, connection: Connection, call: ServerCall) -> None:
        """Cancel the method of a call; until it has ended, it counts as one of its connection's calls."""
        self._discard_body(connection, call)
        if call.task is not None and not call.task.done():
            connection.cancelled_calls += 1
            call.task.add_done_callback(partial(_forget_cancelled, connection))
            call.task.cancel()
        elif call.timer is not None:
            call.timer.cancel()

    # Streaming calls.

    def _begin_streaming(
        self, connection: Connection, stream: Stream, headers: RequestHeaders, method: StreamingMethod
    ) -> None:
        call = stream.context = ServerCall(headers, None)
        call.messages = asyncio.Queue()
        connection.send(stream, RESPONSE_HEADERS, b"", None)
        task = asyncio.create_task(self._run_streaming(connection, stream, call.messages, method))
        self.streaming_tasks.add(task)
        connection.streaming_calls += 1
        self._track_task(connection, stream, call, task)

    async def _run_streaming(
        self,
        connection: Connection,
        stream: Stream,
        messages: asyncio.Queue[bytes | None],
        method: StreamingMethod,
    ) -> None:
        async with aclosing(method(_iterate_queue(messages))) as responses:
            async for message in responses:
                if len(stream.send_buffer) - stream.sent_offset > _MAX_UNSENT_BYTES:
                    # A client that sends messages without reading the responses gets no more of them.
                    connection.reset_stream(stream, ErrorCode.ENHANCE_YOUR_CALM)
                if not connection.send(stream, None, frame_message(message), None):
                    return

    def _queue_messages(
        self, call: ServerCall, messages: asyncio.Queue[bytes | None], data: bytes, is_last: bool
    ) -> None:
        call.body += data
        limit = MAX_STREAMED_MESSAGE_BYTES
        while (length := message_length(call.body, limit)) and length <= len(call.body):
            if messages.qsize() >= _MAX_UNREAD_MESSAGES:
                raise GrpcStatusError(
                    "RESOURCE_EXHAUSTED", f"more than {_MAX_UNREAD_MESSAGES} messages wait to be read"
                )
            messages.put_nowait(parse_message(bytes(call.body[:length]), call.headers.encoding, limit))
            del call.body[:length]
        if is_last:
            if call.body:
                raise GrpcStatusError("INVALID_ARGUMENT", "the last message is incomplete")
            messages.put_nowait(None)


async def _refuse_uncertified(_headers: RequestHeaders, _message: bytes, _names: tuple[bytes, ...]) -> bytes:
    raise GrpcStatusError("UNAUTHENTICATED", "no certificate")


async def _iterate_queue(messages: asyncio.Queue[bytes | None]) -> AsyncIterator[bytes]:
    while (message := await messages.get()) is not None:
        yield message


def _forget_cancelled(connection: Connection, _task: asyncio.Task[Any]) -> None:
    connection.cancelled_calls -= 1
