"""The client's side of an HTTP/2 connection: unary calls, and how each of them ends."""

from __future__ import annotations

import asyncio
from typing import Any, Generic, Protocol, TypeVar

from runtime.transport.grpc.direct.http2 import frames
from runtime.transport.grpc.direct.http2.base_connection import Http2Connection
from runtime.transport.grpc.direct.http2.frames import ErrorCode, Http2ConnectionError, Setting
from runtime.transport.grpc.direct.http2.header_blocks import TABLE_BYTES, HeaderDecoder, HeaderEncoder
from runtime.transport.grpc.direct.http2.header_fields import Header
from runtime.transport.grpc.direct.http2.streams import Limits, Stream


class ParsedHeaders(Protocol):
    """The headers of a response as far as a client connection needs them."""

    is_informational: bool
    """Whether the status is 1xx: the headers of the final response are still to come."""


HeadersT = TypeVar("HeadersT", bound=ParsedHeaders)
_KNOWN_CODES = frozenset(ErrorCode)


class RefusedStream(Exception):
    """The server has not processed a call: it may be retried (RFC 9113, section 8.7)."""


class StreamReset(Exception):
    """The server has reset the stream of a call."""

    def __init__(self, code: int) -> None:
        name = ErrorCode(code).name if code in _KNOWN_CODES else f"code {code}"
        super().__init__(f"the stream was reset with {name}")
        self.code = code


class ConnectionLost(Exception):
    """The connection of a call has ended before its response."""


class PendingResponse(Generic[HeadersT]):
    """A call whose response is not complete."""

    __slots__ = ("body", "future", "headers")

    def __init__(self, future: asyncio.Future[bytes]) -> None:
        self.future = future
        self.headers: HeadersT | None = None
        self.body: bytes | bytearray = b""


class ResponseHandler(Protocol[HeadersT]):
    """The owner of client connections, which parses their responses."""

    def parse_headers(self, headers: list[Header]) -> HeadersT:
        """Parse headers or trailers. Not called again for a header block that is known."""
        ...

    def append_data(self, response: PendingResponse[HeadersT], data: bytes) -> None:
        """Append data to the body of a response. Raises if there may not be more of it."""
        ...

    def parse_response(self, response: PendingResponse[HeadersT], trailers: HeadersT) -> bytes:
        """Return the message of a complete response, or raise the error that the call ended with."""
        ...

    def on_connected(self, connection: ClientConnection[HeadersT]) -> None:
        """Handle a new connection, which can be used after the server's SETTINGS."""
        ...

    def on_going_away(self, connection: ClientConnection[HeadersT]) -> None:
        """Handle a connection on which no new streams can be opened."""
        ...

    def on_closed(self, connection: ClientConnection[HeadersT]) -> None:
        """Handle the end of a connection."""
        ...


class ClientConnection(Http2Connection, Generic[HeadersT]):
    """A connection to one server."""

    def __init__(self, handler: ResponseHandler[HeadersT], limits: Limits) -> None:
        super().__init__(limits)
        self._handler = handler
        self._header_decoder: HeaderDecoder[HeadersT] = HeaderDecoder(handler.parse_headers)
        self._header_encoder = HeaderEncoder()
        self._max_streams = limits.streams
        self._capacity_freed: asyncio.Event | None = None
        self._settings_received: asyncio.Future[None] = self._loop.create_future()
        self._lost_with: Exception | None = None
        self.has_had_response = False
        """Whether a call on it has had a response, of whatever status."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._send_preface(frames.CONNECTION_PREFACE, {Setting.ENABLE_PUSH: 0})
        self._handler.on_connected(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._lost_with = error
        super().connection_lost(error)

    # Sending requests.

    async def wait_for_settings(self) -> None:
        """Wait until the server has sent its SETTINGS; raises ConnectionError if the connection has ended."""
        await self._settings_received
        if not self.is_open:
            reason = "the connection ends before a call can be sent"
            raise ConnectionError(f"{reason} ({self._lost_with})" if self._lost_with else reason)

    @property
    def is_open(self) -> bool:
        """Whether new streams can be opened."""
        return not self._is_going_away and not self._frame_reader.is_closed

    @property
    def is_full(self) -> bool:
        """Whether the server's limit of concurrent streams is reached."""
        return len(self._streams) >= self._max_streams

    async def wait_for_capacity(self) -> None:
        """Wait until one more stream can be opened, or none any more."""
        while self.is_open and self.is_full:
            self._capacity_freed = self._capacity_freed or asyncio.Event()
            await self._capacity_freed.wait()

    def send_request(self, headers: tuple[Header, ...], varying: bytes, message: bytes) -> Stream:
        """Send a call; the `context` of its stream is a PendingResponse.

        `varying` is the header block of headers that hardly ever come again.
        """
        self._last_stream_id = stream_id = self._last_stream_id + 2 if self._last_stream_id else 1
        if stream_id == frames.MAX_STREAM_ID:
            self._go_away()
        stream = Stream(stream_id, self._initial_receive_window, self._frame_writer.initial_send_window)
        stream.context = PendingResponse(self._loop.create_future())
        self._streams[stream_id] = stream
        self._streams_opened += 1
        self._frame_writer.send(stream, self._header_encoder.encode(headers) + varying, message, b"")
        return stream

    def cancel_call(self, stream: Stream) -> None:
        """Reset the stream of a call that has no response yet."""
        if stream.id in self._streams:
            stream.context.future.cancel()
            self._reset_stream(stream)

    # The end of calls.

    def _reset_stream(self, stream: Stream, code: ErrorCode = ErrorCode.CANCEL) -> None:
        self._frame_writer.write_frame(frames.encode_rst_stream(stream.id, code))
        self._remove_stream(stream)

    def _reject_response(self, stream: Stream) -> None:
        """End a call whose response is malformed; others on the connection go on (RFC 9113, 8.1.1)."""
        self._fail_call(stream, StreamReset(ErrorCode.PROTOCOL_ERROR))
        self._reset_stream(stream, ErrorCode.PROTOCOL_ERROR)

    def _fail_call(self, stream: Stream, error: Exception) -> None:
        future: asyncio.Future[bytes] = stream.context.future
        if not future.done():
            future.set_exception(error)

    def _remove_stream(self, stream: Stream) -> None:
        super()._remove_stream(stream)
        self._fail_call(stream, ConnectionLost())
        self._notify_capacity()

    def _notify_capacity(self) -> None:
        if self._capacity_freed is not None:
            self._capacity_freed.set()
            self._capacity_freed = None

    # Handlers of what is received.

    def _on_header_block(self, flags: int, stream_id: int, block: bytes) -> None:
        if stream_id > self._last_stream_id:
            raise Http2ConnectionError(ErrorCode.PROTOCOL_ERROR, "HEADERS on an idle stream")
        headers = self._header_decoder.decode(block)
        stream = self._streams.get(stream_id)
        if stream is None:
            self._flood_guard.count_suspicious()
        elif flags & frames.END_STREAM:
            self._finish_call(stream, headers)
        elif stream.context.headers is not None:
            self._reject_response(stream)
        elif headers.is_informational:
            self._flood_guard.count_suspicious()
        else:
            stream.context.headers = headers

    def _finish_call(self, stream: Stream, trailers: HeadersT) -> None:
        response: PendingResponse[HeadersT] = stream.context
        self.has_had_response = True
        try:
            message = self._handler.parse_response(response, trailers)
        except Exception as error:
            self._fail_call(stream, error)
        else:
            if not response.future.done():
                response.future.set_result(message)
        self._close_stream(stream)

    def _close_stream(self, stream: Stream) -> None:
        """Remove a stream that the server has ended; reset it if the request was not sent completely."""
        if stream.send_buffer:
            self._reset_stream(stream)
        else:
            self._remove_stream(stream)

    def _on_data(self, stream: Stream, data: bytes) -> None:
        if stream.context.headers is None:
            self._reject_response(stream)
            return
        try:
            self._handler.append_data(stream.context, data)
        except Exception as error:
            self._fail_call(stream, error)
            if stream.is_remote_closed:
                self._close_stream(stream)
            else:
                self._reset_stream(stream)
        else:
            if stream.is_remote_closed:
                # Without trailers, the status is in the headers, if anywhere.
                self._finish_call(stream, stream.context.headers)

    def _on_stream_aborted(self, stream: Stream, code: int | None) -> None:
        """Do nothing: `_abort_stream` has failed the call."""

    def _abort_stream(self, stream: Stream, code: int | None) -> None:
        if code is None:
            self._fail_call(stream, ConnectionLost())
        elif code == ErrorCode.REFUSED_STREAM and stream.context.headers is None:
            self._fail_call(stream, RefusedStream())
        else:
            # After its headers a response has begun: the call was processed, whatever the code says.
            self._fail_call(stream, StreamReset(code))
        super()._abort_stream(stream, code)

    def _on_preface(self) -> None:
        super()._on_preface()
        self._notify_settings()

    def _notify_settings(self) -> None:
        if not self._settings_received.done():
            self._settings_received.set_result(None)

    def _on_setting(self, name: int, value: int) -> None:
        if name == Setting.MAX_CONCURRENT_STREAMS:
            self._max_streams = min(value, self._limits.streams)
            self._notify_capacity()
        elif name == Setting.HEADER_TABLE_SIZE and value < TABLE_BYTES:
            self._header_encoder.disable_dynamic_table()

    def _on_goaway(self, last_stream_id: int) -> None:
        self._go_away()
        for stream in [each for each in self._streams.values() if each.id > last_stream_id]:
            self._fail_call(stream, RefusedStream())
            self._remove_stream(stream)
        self._close_if_drained()

    def _go_away(self) -> None:
        """Open no new streams."""
        if not self._is_going_away:
            self._is_going_away = True
            self._handler.on_going_away(self)
            # Calls that wait for capacity go to another connection.
            self._notify_capacity()

    def _on_closed(self) -> None:
        self._go_away()
        self._notify_settings()
        self._handler.on_closed(self)
