"""An HTTP/2 connection (RFC 9113): what the client's and the server's side have in common."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import Any

from runtime.transport.grpc.direct.http2 import frames
from runtime.transport.grpc.direct.http2.control_frames import ControlFrames
from runtime.transport.grpc.direct.http2.flood_guard import FloodGuard
from runtime.transport.grpc.direct.http2.frame_reader import FrameHandler, FrameReader
from runtime.transport.grpc.direct.http2.frame_writer import FrameWriter
from runtime.transport.grpc.direct.http2.frames import (
    ErrorCode,
    Http2ConnectionError,
    Http2Error,
    Setting,
    StreamError,
)
from runtime.transport.grpc.direct.http2.header_blocks import MAX_HEADER_LIST_BYTES
from runtime.transport.grpc.direct.http2.keepalive import Keepalive
from runtime.transport.grpc.direct.http2.streams import BufferBudget, Limits, Stream

_CONNECTION_WINDOW = 16 * 2**20
"""The receive window of all streams of a connection together."""
_UPDATES_PER_STREAM = 3
"""WINDOW_UPDATEs that a stream explains: a client may enlarge it as it opens, reads and ends it."""
_UPDATES_PER_SEND = 2
"""WINDOW_UPDATEs that each part of the sent data explains: of its stream, and of the connection."""
_USEFUL_DATA_BYTES = 256
"""The least payload of a DATA frame on a closed stream that is not suspicious."""


class Http2Connection(asyncio.Protocol):
    """One HTTP/2 connection: frames, streams, flow control and its end."""

    transport: asyncio.Transport

    def __init__(self, limits: Limits, preface: bytes = b"", budget: BufferBudget | None = None) -> None:
        """`preface` is the connection preface that the peer has to send, `budget` counts what this connection
        and others buffer.
        """
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._limits = limits
        max_buffered = limits.max_buffered_bytes
        self._frame_writer = FrameWriter(
            loop, max_buffered, budget or BufferBudget(max_buffered), self._remove_stream
        )
        self._flood_guard = FloodGuard(loop, limits)
        self._keepalive = Keepalive(loop, limits, self._send_keepalive_ping, self.abort)
        self._streams: dict[int, Stream] = {}
        self._last_stream_id = 0
        """The last stream that was opened, whether it was served or not."""
        self._is_going_away = False
        """Whether no more streams are opened: a GOAWAY was sent or received."""
        self._has_yielded = False
        """Whether the other connections have their turn before more is read."""
        self._window_updates = 0
        """WINDOW_UPDATEs that were received."""
        self._streams_opened = 0
        """Streams that were opened and served."""
        self._receive_window = frames.DEFAULT_WINDOW
        self._initial_receive_window = min(
            max(limits.message_bytes + 64, frames.DEFAULT_WINDOW), frames.MAX_WINDOW
        )
        control_frames = ControlFrames(
            self._frame_writer,
            self._flood_guard,
            self._streams,
            self._on_setting,
            self._on_goaway,
            self._on_ping_ack,
        )
        handlers: dict[int, FrameHandler] = {
            **control_frames.handlers,
            frames.DATA: self._on_data_frame,
            frames.RST_STREAM: self._on_rst_stream_frame,
            frames.WINDOW_UPDATE: self._on_window_update_frame,
        }
        self._frame_reader = FrameReader(
            handlers,
            self._on_header_block,
            self._on_preface,
            self._flood_guard.count_suspicious,
            self._on_stream_error,
            self._yield_turn,
            preface=preface,
        )

    # Hooks of the client's and the server's side.

    @abstractmethod
    def _on_header_block(self, flags: int, stream_id: int, block: bytes) -> None:
        """Handle a complete header block."""

    @abstractmethod
    def _on_data(self, stream: Stream, data: bytes) -> None:
        """Handle data without its padding; the last of it where `stream.is_remote_closed`."""

    @abstractmethod
    def _on_stream_aborted(self, stream: Stream, code: int | None) -> None:
        """Handle a stream that was reset with a code or, with None, whose connection is lost."""

    @abstractmethod
    def _on_closed(self) -> None:
        """Handle the end of the connection."""

    def _on_preface(self) -> None:
        """Handle the first SETTINGS frame of the peer."""
        self._keepalive.start()

    def _on_setting(self, name: int, value: int) -> None:
        """Handle a setting that only one side has a use for."""

    def _on_goaway(self, last_stream_id: int) -> None:
        """Handle a GOAWAY of the peer."""

    def _on_ping_ack(self, opaque_data: bytes) -> None:
        """Handle a PING that was acknowledged: the peer has read all that was sent before it."""

    # Callbacks of the transport.

    def connection_made(self, transport: Any) -> None:
        self.transport = self._frame_writer.transport = transport
        self._keepalive.start_grace_period()

    def _send_preface(self, preface: bytes, settings: dict[Setting, int]) -> None:
        settings |= {
            Setting.INITIAL_WINDOW_SIZE: self._initial_receive_window,
            Setting.MAX_HEADER_LIST_SIZE: MAX_HEADER_LIST_BYTES,
        }
        self._receive_window += _CONNECTION_WINDOW
        self.transport.write(
            preface + frames.encode_settings(settings) + frames.encode_window_update(0, _CONNECTION_WINDOW)
        )

    def data_received(self, data: bytes) -> None:
        reader = self._frame_reader
        if reader.is_closed:
            return
        self._keepalive.has_received = True
        self._frame_writer.hold_flush()
        try:
            reader.feed(data)
        except Http2Error as error:
            self._fail_connection(error.code, str(error))
        except Exception as error:
            # A fault of this side: all other connections go on, and the loop's exception handler reports it.
            context = {"message": "an HTTP/2 connection has failed", "exception": error, "protocol": self}
            self._loop.call_exception_handler(context)
            self._fail_connection(ErrorCode.INTERNAL_ERROR, "an internal error")
        self._frame_writer.flush()

    def _yield_turn(self) -> None:
        """Read on in the next turn of the event loop: one peer must not keep all others waiting."""
        self._has_yielded = True
        self.transport.pause_reading()
        self._loop.call_soon(self._resume_reading)

    def _resume_reading(self) -> None:
        self._has_yielded = False
        if not self._frame_reader.is_closed and not self.transport.is_closing():
            self._frame_reader.is_paused = False
            self.transport.resume_reading()
            self.data_received(b"")

    def connection_lost(self, _error: Exception | None) -> None:
        self._frame_reader.close()
        self._keepalive.stop()
        for stream in list(self._streams.values()):
            self._abort_stream(stream, None)
        self._on_closed()
        # A reference cycle would keep the connection until the next garbage collection.
        self._frame_writer.on_stream_done = _ignore_stream

    def pause_writing(self) -> None:
        self._frame_writer.is_paused = True

    def resume_writing(self) -> None:
        self._keepalive.has_received = True
        self._frame_writer.is_paused = False
        self._frame_writer.send_blocked()

    # The end of streams and of the connection.

    def close(self) -> None:
        """Close; of what is buffered, only what the peer reads at once reaches it."""
        if self._frame_writer.is_paused:
            self.abort()
        else:
            self._close_transport()

    def abort(self) -> None:
        """Close at once."""
        self._frame_reader.close()
        self.transport.abort()

    def _remove_stream(self, stream: Stream) -> None:
        del self._streams[stream.id]
        if stream.send_buffer:
            self._frame_writer.discard(stream)
        if self._is_going_away:
            self._close_if_drained()

    def _abort_stream(self, stream: Stream, code: int | None) -> None:
        self._remove_stream(stream)
        self._on_stream_aborted(stream, code)

    def _on_stream_error(self, stream_id: int, error: StreamError) -> None:
        """Reset a stream on which the peer violated the protocol."""
        self._flood_guard.count_suspicious()
        self._frame_writer.write_frame(frames.encode_rst_stream(stream_id, error.code))
        if (stream := self._streams.get(stream_id)) is not None:
            self._abort_stream(stream, error.code)

    def _get_last_processed_stream(self) -> int:
        """The last stream of the peer that is served, for a GOAWAY."""
        return 0

    def _fail_connection(self, code: ErrorCode, reason: str) -> None:
        """Send a GOAWAY with an error code, and close."""
        self._frame_writer.write_frame(frames.encode_goaway(self._get_last_processed_stream(), code, reason))
        self.close()

    def _close_if_drained(self) -> None:
        if not self._streams and not self._frame_reader.is_closed:
            self._frame_reader.close()
            # Later, so that the frames that are being written are sent before.
            self._loop.call_soon(self._close_transport)

    def _close_transport(self) -> None:
        self._frame_reader.close()
        if not self.transport.is_closing():
            self._frame_writer.flush()
            self.transport.close()
            # A peer that does not read what is left would keep the connection for ever.
            self._keepalive.start_grace_period()

    # Handlers of frames.

    def _on_data_frame(self, flags: int, stream_id: int, payload: bytes) -> None:
        stream, size = self._streams.get(stream_id), len(payload)
        if stream is None and (stream_id == 0 or stream_id > self._last_stream_id):
            raise Http2ConnectionError(ErrorCode.PROTOCOL_ERROR, "DATA on stream 0 or an idle stream")
        self._receive_window -= size
        if self._receive_window < _CONNECTION_WINDOW // 2:
            self._refill_window()
        if stream is None:
            if size < _USEFUL_DATA_BYTES:
                self._flood_guard.count_suspicious()
            return
        if stream.is_remote_closed:
            raise StreamError(ErrorCode.STREAM_CLOSED, "DATA on a stream that is half-closed (remote)")
        stream.receive_window -= size
        data = frames.strip_padding(flags, payload) if flags else payload
        if flags & frames.END_STREAM:
            stream.is_remote_closed = True
        elif not data:
            self._flood_guard.count_suspicious()
        if stream.receive_window < self._initial_receive_window // 2:
            self._refill_stream_window(stream)
        self._on_data(stream, data)

    # Half of a window is more than a frame, so it is enlarged before the peer could exceed it.

    def _refill_window(self) -> None:
        increment = _CONNECTION_WINDOW - self._receive_window
        self._frame_writer.write_frame(frames.encode_window_update(0, increment))
        self._receive_window = _CONNECTION_WINDOW

    def _refill_stream_window(self, stream: Stream) -> None:
        if not stream.is_remote_closed:
            increment = self._initial_receive_window - stream.receive_window
            self._frame_writer.write_frame(frames.encode_window_update(stream.id, increment))
            stream.receive_window = self._initial_receive_window

    def _on_rst_stream_frame(self, _flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id == 0 or stream_id > self._last_stream_id:
            raise Http2ConnectionError(ErrorCode.PROTOCOL_ERROR, "RST_STREAM on stream 0 or an idle stream")
        if len(payload) != 4:
            raise Http2ConnectionError(
                ErrorCode.FRAME_SIZE_ERROR, "the length of an RST_STREAM frame is not 4"
            )
        self._flood_guard.count_suspicious()
        if (stream := self._streams.get(stream_id)) is not None:
            self._abort_stream(stream, frames.unpack_uint32(payload)[0])

    def _on_window_update_frame(self, _flags: int, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise Http2ConnectionError(
                ErrorCode.FRAME_SIZE_ERROR, "the length of a WINDOW_UPDATE frame is not 4"
            )
        increment = frames.unpack_uint32(payload)[0] & frames.MAX_WINDOW
        if stream_id > self._last_stream_id:
            raise Http2ConnectionError(ErrorCode.PROTOCOL_ERROR, "WINDOW_UPDATE on an idle stream")
        self._window_updates += 1
        if self._window_updates > self._count_explained_updates():
            self._flood_guard.count_suspicious()
        stream = self._streams.get(stream_id)
        if increment == 0 and stream_id == 0:
            raise Http2ConnectionError(ErrorCode.PROTOCOL_ERROR, "a WINDOW_UPDATE with an increment of 0")
        if increment == 0 and stream is not None:
            raise StreamError(ErrorCode.PROTOCOL_ERROR, "a WINDOW_UPDATE with an increment of 0")
        if stream_id == 0 or stream is not None:
            self._frame_writer.enlarge_window(increment, stream)

    def _count_explained_updates(self) -> int:
        """Count the WINDOW_UPDATEs that an honest peer may have sent for its streams and the data it got."""
        return (
            _UPDATES_PER_STREAM * self._streams_opened
            + _UPDATES_PER_SEND * self._frame_writer.update_worthy_sends
        )

    def _send_keepalive_ping(self) -> bool:
        if not self._streams and not self._limits.idle_pings:
            return False
        self._frame_writer.write_frame(frames.encode_frame(frames.PING, 0, 0, bytes(8)))
        return True


def _ignore_stream(_stream: Stream) -> None:
    pass
