"""Handlers of control frames: SETTINGS, PING, GOAWAY, PRIORITY and PUSH_PROMISE."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from runtime.transport.grpc.direct.http2 import frames
from runtime.transport.grpc.direct.http2.flood_guard import FloodGuard
from runtime.transport.grpc.direct.http2.frame_reader import FrameHandler
from runtime.transport.grpc.direct.http2.frame_writer import FrameWriter
from runtime.transport.grpc.direct.http2.frames import ErrorCode, Http2ConnectionError, Setting, StreamError
from runtime.transport.grpc.direct.http2.streams import Stream

_STREAMS_PER_FRAME = 8
"""Number of changed send windows that costs as much as another frame."""


class ControlFrames:
    """Handlers of the frames that carry neither headers nor data."""

    def __init__(
        self,
        writer: FrameWriter,
        flood_guard: FloodGuard,
        streams: Mapping[int, Stream],
        on_setting: Callable[[int, int], None],
        on_goaway: Callable[[int], None],
        on_ping_ack: Callable[[bytes], None],
    ) -> None:
        """`on_setting` gets the settings that are not about flow control or frame sizes, `on_goaway` the last
        stream that the peer serves, and `on_ping_ack` the opaque data of a PING that was acknowledged.
        """
        self._writer = writer
        self._flood_guard = flood_guard
        self._streams = streams
        self._on_setting = on_setting
        self._on_goaway = on_goaway
        self._on_ping_ack = on_ping_ack
        self._sends_at_last_ping = 0

    @property
    def handlers(self) -> Mapping[int, FrameHandler]:
        """The handlers by type of frame."""
        return {
            frames.PRIORITY: self._on_priority_frame,
            frames.SETTINGS: self._on_settings_frame,
            frames.PUSH_PROMISE: self._on_push_promise_frame,
            frames.PING: self._on_ping_frame,
            frames.GOAWAY: self._on_goaway_frame,
        }

    def _on_settings_frame(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise Http2ConnectionError(ErrorCode.PROTOCOL_ERROR, "SETTINGS on a stream")
        if flags & frames.ACK:
            if payload:
                raise Http2ConnectionError(ErrorCode.FRAME_SIZE_ERROR, "SETTINGS with ACK has a payload")
            self._flood_guard.count_suspicious()
            return
        self._flood_guard.count_suspicious(1 + len(self._streams) // _STREAMS_PER_FRAME)
        writer, initial_window = self._writer, self._writer.initial_send_window
        for name, value in frames.parse_settings(payload):
            if name == Setting.INITIAL_WINDOW_SIZE:
                if value > frames.MAX_WINDOW:
                    raise Http2ConnectionError(
                        ErrorCode.FLOW_CONTROL_ERROR, "SETTINGS_INITIAL_WINDOW_SIZE is larger than 2^31-1"
                    )
                initial_window = value
            elif name == Setting.MAX_FRAME_SIZE:
                if not frames.MAX_FRAME_BYTES <= value < 2**24:
                    raise Http2ConnectionError(
                        ErrorCode.PROTOCOL_ERROR, "SETTINGS_MAX_FRAME_SIZE is not within 2^14 to 2^24-1"
                    )
                writer.max_frame_bytes = value
            elif name == Setting.ENABLE_PUSH and value > 1:
                raise Http2ConnectionError(ErrorCode.PROTOCOL_ERROR, "SETTINGS_ENABLE_PUSH is not 0 or 1")
            else:
                self._on_setting(name, value)
        writer.write_frame(frames.encode_frame(frames.SETTINGS, frames.ACK, 0))
        # Once for the whole frame: it may have thousands of settings, and each would change every stream.
        writer.change_initial_window(initial_window, self._streams.values())

    def _on_ping_frame(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise Http2ConnectionError(ErrorCode.PROTOCOL_ERROR, "PING on a stream")
        if len(payload) != 8:
            raise Http2ConnectionError(ErrorCode.FRAME_SIZE_ERROR, "the length of a PING frame is not 8")
        if flags & frames.ACK:
            self._flood_guard.count_suspicious()
            self._on_ping_ack(payload)
            return
        sends = self._writer.sends
        self._flood_guard.count_ping(sends != self._sends_at_last_ping)
        self._sends_at_last_ping = sends
        self._writer.write_frame(frames.encode_frame(frames.PING, frames.ACK, 0, payload))

    def _on_priority_frame(self, _flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id == 0:
            raise Http2ConnectionError(ErrorCode.PROTOCOL_ERROR, "PRIORITY on stream 0")
        if len(payload) != frames.PRIORITY_BYTES:
            # An idle or closed stream cannot be reset.
            error = StreamError if stream_id in self._streams else Http2ConnectionError
            raise error(ErrorCode.FRAME_SIZE_ERROR, "the length of a PRIORITY frame is not 5")
        self._flood_guard.count_suspicious()

    def _on_goaway_frame(self, _flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise Http2ConnectionError(ErrorCode.PROTOCOL_ERROR, "GOAWAY on a stream")
        if len(payload) < 8:
            raise Http2ConnectionError(
                ErrorCode.FRAME_SIZE_ERROR, "the length of a GOAWAY frame is less than 8"
            )
        self._flood_guard.count_suspicious()
        self._on_goaway(frames.unpack_uint32(payload)[0] & frames.MAX_STREAM_ID)

    def _on_push_promise_frame(self, _flags: int, _stream_id: int, _payload: bytes) -> None:
        raise Http2ConnectionError(ErrorCode.PROTOCOL_ERROR, "PUSH_PROMISE, and server push is not enabled")
