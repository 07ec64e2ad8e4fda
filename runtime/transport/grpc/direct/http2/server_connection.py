"""The server's side of an HTTP/2 connection: requests for an application, responses, graceful shutdown."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from functools import partial
from typing import Any, Generic

from runtime.transport.grpc.direct.http2 import frames
from runtime.transport.grpc.direct.http2.base_connection import Http2Connection
from runtime.transport.grpc.direct.http2.frames import ErrorCode, Http2ConnectionError, Setting, StreamError
from runtime.transport.grpc.direct.http2.header_blocks import (
    EMPTY_TABLE_UPDATE,
    TABLE_BYTES,
    HeaderDecoder,
    HeaderListTooLarge,
)
from runtime.transport.grpc.direct.http2.header_fields import check_request_fields, parse_request
from runtime.transport.grpc.direct.http2.streams import Application, HeadersT, Limits, Stream

_WRONG_CONTENT_LENGTH = "content-length is not the length of the data"
_DRAIN_PING = b"draining"
_DRAIN_S = 2.0
"""Timeout of the acknowledgement of the first GOAWAY; then the second names the last stream."""
_LINGER_S = 0.5
"""Timeout of the close of a connection by the client after a GOAWAY, with no streams left. Some lose
responses that they have not read yet where the server closes first."""
_AGE_JITTER = 0.1
"""Clients that connected together, as after a restart, do not come back together."""
_MAX_SKIPPED_RANGES = 64
"""Ranges of skipped stream identifiers that are remembered. Known clients skip none; of a client that skips
more, HEADERS on the oldest are discarded, as on closed streams."""


class ServerConnection(Http2Connection, Generic[HeadersT]):
    """A connection of one client."""

    def __init__(self, application: Application[HeadersT], limits: Limits) -> None:
        super().__init__(limits, frames.CONNECTION_PREFACE, application.buffer_budget)
        self._application = application
        self._header_decoder: HeaderDecoder[tuple[HeadersT, int | None] | None] = HeaderDecoder(
            partial(parse_request, application.parse_headers), check_request_fields
        )
        self._last_served_stream = 0
        """The last stream that is served, once no new ones are."""
        self._skipped: deque[range] = deque(maxlen=_MAX_SKIPPED_RANGES)
        """Identifiers that the client has skipped: they are closed, and no request may come on them."""
        self.cancelled_calls = 0
        """Calls that the client has cancelled and that still run."""
        self.buffered_request_bytes = 0
        """Bytes of incomplete messages that the application buffers."""
        self.streaming_calls = 0
        """Calls of streaming methods, which last for as long as the client wants."""
        self._closed: asyncio.Future[None] | None = None
        self._has_updated_table_size = False
        """Whether the client knows that blocks are encoded without a dynamic table."""
        self._drain_timer: asyncio.TimerHandle | None = None
        """Runs between the two GOAWAYs of a graceful shutdown."""
        self._age_timer: asyncio.TimerHandle | None = None
        """Runs until the connection is old enough to be replaced."""
        self._linger_timer: asyncio.TimerHandle | None = None
        """Runs while the client has its turn to close the connection."""

    # Callbacks of the transport.

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if self._application.accept_connection(self):
            self._send_preface(b"", {Setting.MAX_CONCURRENT_STREAMS: self._limits.streams})
            if (age := self._limits.connection_age_s) is not None:
                age *= random.uniform(1 - _AGE_JITTER, 1 + _AGE_JITTER)
                self._age_timer = self._loop.call_later(age, self.shut_down_gracefully)
        else:
            self.abort()

    def pause_writing(self) -> None:
        """Read nothing from a client that does not read: each of its frames could need a response."""
        super().pause_writing()
        self._frame_reader.is_paused = True
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self._has_yielded:
            self._resume_reading()

    def _resume_reading(self) -> None:
        if self._frame_writer.is_paused:
            self._has_yielded = False
        else:
            super()._resume_reading()

    # The interface of the application.

    def send(self, stream: Stream, headers: bytes | None, data: bytes, trailers: bytes | None) -> bool:
        """Send headers, data and, with `trailers`, the end of a stream, as soon as flow control allows it.

        Returns whether the stream is still open.
        """
        if not self.is_response_open(stream):
            return False
        self._frame_writer.send(stream, headers, data, trailers)
        return stream.id in self._streams

    def count_work(self, work: int) -> None:
        """Count work that was done for the client, in bytes of header blocks."""
        self._frame_reader.count_work(work)

    def is_response_open(self, stream: Stream) -> bool:
        """Whether the end of the response of a stream has not been sent or buffered."""
        return stream.id in self._streams and stream.trailers is None

    def reset_stream(self, stream: Stream, code: ErrorCode) -> None:
        """End a stream with an RST_STREAM."""
        if stream.id in self._streams:
            self._frame_writer.write_frame(frames.encode_rst_stream(stream.id, code))
            self._remove_stream(stream)

    def shut_down_gracefully(self) -> asyncio.Future[None]:
        """Shut down gracefully (RFC 9113, section 6.8); done when the connection is closed.

        The first GOAWAY asks the client to open no more streams, and those that it opens until it has read
        it are served. When it has acknowledged the PING that follows, or did not in time, the second
        GOAWAY names the last stream, and the connection closes when the streams have ended.
        """
        if self._closed is None:
            self._closed = self._loop.create_future()
        if self._is_going_away or self._drain_timer is not None or self._frame_reader.is_closed:
            return self._closed
        if self._frame_reader.has_preface:
            self._drain_timer = self._loop.call_later(_DRAIN_S, self._refuse_new_streams)
            self._frame_writer.write_frame(frames.encode_goaway(frames.MAX_STREAM_ID, ErrorCode.NO_ERROR))
            self._frame_writer.write_frame(frames.encode_frame(frames.PING, 0, 0, _DRAIN_PING))
        else:
            self._refuse_new_streams()
        return self._closed

    def close(self) -> None:
        if self._drain_timer is not None:
            self._refuse_new_streams()
        super().close()

    def _refuse_new_streams(self) -> None:
        """Send the last GOAWAY, and close when the open streams have ended."""
        if not self._is_going_away and not self._frame_reader.is_closed:
            self._is_going_away, self._last_served_stream = True, self._last_stream_id
            self._frame_writer.write_frame(frames.encode_goaway(self._last_stream_id, ErrorCode.NO_ERROR))
            self._close_if_drained()

    def _close_if_drained(self) -> None:
        if not self._streams and not self._frame_reader.is_closed and self._linger_timer is None:
            self._linger_timer = self._loop.call_later(_LINGER_S, super()._close_if_drained)

    def _fail_connection(self, code: ErrorCode, reason: str) -> None:
        # No other GOAWAY follows one with an error.
        self._last_served_stream, self._is_going_away = self._get_last_processed_stream(), True
        super()._fail_connection(code, reason)

    # Handlers of what is received.

    def _on_header_block(self, flags: int, stream_id: int, block: bytes) -> None:
        # Decoded whatever its stream is: it may change the dynamic table that the next one is decoded by.
        try:
            request = self._header_decoder.decode(block)
        except StreamError as error:
            self._refuse_headers(flags, stream_id, error)
            return
        stream = self._streams.get(stream_id)
        if stream is not None:
            if stream.is_remote_closed:
                raise StreamError(ErrorCode.STREAM_CLOSED, "HEADERS on a stream that is half-closed (remote)")
            if request is not None or not flags & frames.END_STREAM:
                raise StreamError(ErrorCode.PROTOCOL_ERROR, "a second HEADERS that are no trailers")
            stream.is_remote_closed = True
            self._on_data(stream, b"")
        elif stream_id <= self._last_stream_id:
            self._discard_headers(stream_id)
        else:
            self._advance_to(stream_id)
            if self._is_going_away:
                # The client knows by our GOAWAY, or soon will, that it was not processed.
                self._flood_guard.count_suspicious()
            elif request is None:
                raise StreamError(ErrorCode.PROTOCOL_ERROR, "a request without pseudo-header fields")
            else:
                headers, length = request
                self._open_stream(stream_id, headers, length, bool(flags & frames.END_STREAM))

    def _refuse_headers(self, flags: int, stream_id: int, error: StreamError) -> None:
        """End the stream of headers that were decoded and are malformed or too large."""
        is_new = stream_id > self._last_stream_id
        if is_new:
            self._advance_to(stream_id)
        if not is_new and stream_id not in self._streams:
            self._discard_headers(stream_id)
        elif is_new and self._is_going_away:
            self._flood_guard.count_suspicious()
        elif is_new and isinstance(error, HeaderListTooLarge):
            headers = self._application.parse_oversized_headers(error.headers)
            self._open_stream(stream_id, headers, None, bool(flags & frames.END_STREAM))
        else:
            raise error

    def _advance_to(self, stream_id: int) -> None:
        """Note the identifier of a new stream, which closes all idle ones before it (RFC 9113, 5.1.1)."""
        if stream_id - self._last_stream_id > 2:
            self._skipped.append(range(self._last_stream_id + 1, stream_id))
        self._last_stream_id = stream_id

    def _discard_headers(self, stream_id: int) -> None:
        """Discard headers on a closed stream; they are a connection error if it was never opened."""
        if any(stream_id in each for each in self._skipped):
            raise Http2ConnectionError(
                ErrorCode.PROTOCOL_ERROR, "HEADERS on a stream whose identifier is smaller than others before"
            )
        self._flood_guard.count_suspicious()

    def _open_stream(
        self, stream_id: int, headers: HeadersT, content_length: int | None, is_remote_closed: bool
    ) -> None:
        if is_remote_closed and content_length:
            raise StreamError(ErrorCode.PROTOCOL_ERROR, _WRONG_CONTENT_LENGTH)
        if len(self._streams) + self.cancelled_calls >= self._limits.streams:
            self._flood_guard.count_suspicious()
            self._frame_writer.write_frame(frames.encode_rst_stream(stream_id, ErrorCode.REFUSED_STREAM))
            return
        stream = Stream(stream_id, self._initial_receive_window, self._frame_writer.initial_send_window)
        stream.content_length_left = content_length
        self._streams[stream_id] = stream
        self._streams_opened += 1
        self._application.on_stream_opened(self, stream, headers)
        if is_remote_closed and stream_id in self._streams:
            stream.is_remote_closed = True
            self._application.on_data(self, stream, b"")

    def _on_data(self, stream: Stream, data: bytes) -> None:
        if stream.content_length_left is not None:
            stream.content_length_left -= len(data)
            if stream.content_length_left < 0 or (stream.is_remote_closed and stream.content_length_left):
                raise StreamError(ErrorCode.PROTOCOL_ERROR, _WRONG_CONTENT_LENGTH)
        self._application.on_data(self, stream, data)

    def _on_stream_aborted(self, stream: Stream, _code: int | None) -> None:
        self._application.on_stream_aborted(self, stream)

    def _on_setting(self, name: int, value: int) -> None:
        if name == Setting.HEADER_TABLE_SIZE and value < TABLE_BYTES and not self._has_updated_table_size:
            # Blocks are encoded without a dynamic table, but a smaller one has to be acknowledged.
            self._has_updated_table_size = True
            self._frame_writer.table_size_update = EMPTY_TABLE_UPDATE

    def _on_ping_ack(self, opaque_data: bytes) -> None:
        if opaque_data == _DRAIN_PING and self._drain_timer is not None:
            self._refuse_new_streams()

    def _on_closed(self) -> None:
        for timer in (self._drain_timer, self._age_timer, self._linger_timer):
            if timer is not None:
                timer.cancel()
        self._application.on_connection_closed(self)
        if self._closed is not None and not self._closed.done():
            self._closed.set_result(None)

    def _get_last_processed_stream(self) -> int:
        return self._last_served_stream if self._is_going_away else self._last_stream_id
