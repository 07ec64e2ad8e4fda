"""Writer of frames: flow control of what is sent (RFC 9113, section 5.2), and one write for many frames."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable

from runtime.transport.grpc.direct.http2 import frames
from runtime.transport.grpc.direct.http2.frames import ErrorCode, Http2ConnectionError, StreamError
from runtime.transport.grpc.direct.http2.streams import BufferBudget, Stream

_MAX_FRAMES_PER_WRITE = 256
"""Frames that are coalesced while a flush is held: after that, a write shows whether the peer reads."""
_USEFUL_DATA_BYTES = 1024
"""The least data in a frame for which a peer enlarges its windows sensibly."""
_WINDOW_TOO_LARGE = "a flow-control window is larger than 2^31-1"


class FrameWriter:
    """Sends frames. Data that exceeds a flow-control window is buffered with its stream."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        max_buffered_bytes: int,
        budget: BufferBudget,
        on_stream_done: Callable[[Stream], None],
    ) -> None:
        """`budget` counts what this connection and others buffer, and `on_stream_done` is called for each
        stream whose last frame was written.
        """
        self._loop = loop
        self._max_buffered_bytes = max_buffered_bytes
        self._budget = budget
        self.on_stream_done = on_stream_done
        self.transport: asyncio.Transport
        self.is_paused = False
        self.sends = 0
        """Number of sent frames that a peer may answer with a PING or a WINDOW_UPDATE."""
        self._data_bytes_sent = 0
        self.initial_send_window = frames.DEFAULT_WINDOW
        """The send window of streams that are opened from now on."""
        self.table_size_update = b""
        """The dynamic table size update that the next header block has to begin with (RFC 7541, 6.3)."""
        self.max_frame_bytes = frames.MAX_FRAME_BYTES
        self._send_window = frames.DEFAULT_WINDOW
        self._buffered_bytes = 0
        self._blocked: OrderedDict[int, Stream] = OrderedDict()
        """Streams with buffered data that the connection holds back, not a window of their own."""
        self._pending: list[bytes] = []
        self._is_flush_due = False

    @property
    def update_worthy_sends(self) -> int:
        """The messages and kibibytes of data that were sent: a peer may enlarge its windows after each."""
        return self.sends + self._data_bytes_sent // _USEFUL_DATA_BYTES

    def hold_flush(self) -> None:
        """Keep what is written from now on until the next flush, which has to follow."""
        self._is_flush_due = True

    def write_frame(self, frame: bytes) -> None:
        """Send a frame that is not flow-controlled."""
        self._pending.append(frame)
        self._flush_soon()

    def send(self, stream: Stream, headers: bytes | None, data: bytes, trailers: bytes | None) -> None:
        """Send headers, data and, with `trailers`, the end of a stream, as soon as flow control allows it.

        Trailers that are empty are not sent: the data ends the stream.
        """
        self.sends += 1
        stream_id, size = stream.id, len(data)
        if headers is not None:
            if self.table_size_update:
                headers = self._prepend_table_size(headers)
            self._pending.append(frames.encode_frame(frames.HEADERS, frames.END_HEADERS, stream_id, headers))
        if stream.send_buffer or size > self._sendable_bytes(stream):
            self._buffer(stream, data, trailers)
        else:
            if size:
                self._send_window -= size
                self._data_bytes_sent += size
                stream.send_window -= size
                flags = _get_data_flags(trailers)
                self._pending.append(frames.encode_frame(frames.DATA, flags, stream_id, data))
            if trailers:
                self._write_trailers(stream, trailers)
        if not self._is_flush_due:
            self._flush_soon()
        elif len(self._pending) >= _MAX_FRAMES_PER_WRITE:
            self._write_pending()

    def discard(self, stream: Stream) -> None:
        """Drop the buffered data of a stream."""
        self._blocked.pop(stream.id, None)
        self._count_buffered(stream.sent_offset - len(stream.send_buffer))
        stream.send_buffer, stream.sent_offset = b"", 0

    def enlarge_window(self, increment: int, stream: Stream | None = None) -> None:
        """Enlarge the send window of a stream or, without one, of the connection."""
        if stream is None:
            self._send_window += increment
            if self._send_window > frames.MAX_WINDOW:
                raise Http2ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, _WINDOW_TOO_LARGE)
            self.send_blocked()
        else:
            stream.send_window += increment
            if stream.send_window > frames.MAX_WINDOW:
                raise StreamError(ErrorCode.FLOW_CONTROL_ERROR, _WINDOW_TOO_LARGE)
            if stream.send_buffer:
                self._send_buffered(stream)
                self._flush_soon()

    def change_initial_window(self, window: int, streams: Iterable[Stream]) -> None:
        """Change the initial send window, and with it the windows of open streams (RFC 9113, 6.9.2)."""
        difference, self.initial_send_window = window - self.initial_send_window, window
        if difference:
            for stream in list(streams):
                if stream.send_window + difference > frames.MAX_WINDOW:
                    raise Http2ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, _WINDOW_TOO_LARGE)
                self.enlarge_window(difference, stream)

    def send_blocked(self) -> None:
        """Send buffered data that the connection held back."""
        while self._blocked and self._send_window > 0 and not self.is_paused:
            self._send_buffered(next(iter(self._blocked.values())))
        self._flush_soon()

    def flush(self) -> None:
        """Pass all written frames to the transport."""
        self._is_flush_due = False
        self._write_pending()

    def _write_pending(self) -> None:
        if self._pending:
            pending, self._pending = self._pending, []
            if not self.transport.is_closing():
                self.transport.write(b"".join(pending))

    def _flush_soon(self) -> None:
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self.flush)

    def _sendable_bytes(self, stream: Stream) -> int:
        """Most data of a stream in one frame."""
        return 0 if self.is_paused else min(self._send_window, stream.send_window, self.max_frame_bytes)

    def _buffer(self, stream: Stream, data: bytes, trailers: bytes | None) -> None:
        if data:
            stream.send_buffer = stream.send_buffer[stream.sent_offset :] + data
            stream.sent_offset = 0
            self._count_buffered(len(data))
        stream.trailers = trailers
        self._send_buffered(stream)
        is_full = self._buffered_bytes > self._max_buffered_bytes or self._budget.used > self._budget.limit
        if stream.send_buffer and is_full:
            # A peer that sends requests without reading the responses gets no more of them.
            self._pending.append(frames.encode_rst_stream(stream.id, ErrorCode.ENHANCE_YOUR_CALM))
            self.on_stream_done(stream)

    def _count_buffered(self, size: int) -> None:
        self._buffered_bytes += size
        self._budget.used += size

    def _send_buffered(self, stream: Stream) -> None:
        data, begin, end = stream.send_buffer, stream.sent_offset, len(stream.send_buffer)
        while begin < end and (sendable := self._sendable_bytes(stream)) > 0:
            part = data[begin : begin + sendable]
            size = len(part)
            begin += size
            stream.sent_offset = begin
            stream.send_window -= size
            self._send_window -= size
            self._data_bytes_sent += size
            self._count_buffered(-size)
            flags = _get_data_flags(stream.trailers) if begin == end else 0
            self._pending.append(frames.encode_frame(frames.DATA, flags, stream.id, part))
            if size >= _USEFUL_DATA_BYTES or begin == end:
                self.sends += 1
        if begin < end and stream.send_window > 0:
            self._blocked[stream.id] = stream
            return
        self._blocked.pop(stream.id, None)
        if begin == end:
            stream.send_buffer, stream.sent_offset = b"", 0
            if stream.trailers:
                self._write_trailers(stream, stream.trailers)

    def _prepend_table_size(self, block: bytes) -> bytes:
        block, self.table_size_update = self.table_size_update + block, b""
        return block

    def _write_trailers(self, stream: Stream, trailers: bytes) -> None:
        if self.table_size_update:
            trailers = self._prepend_table_size(trailers)
        flags = frames.END_HEADERS | frames.END_STREAM
        self._pending.append(frames.encode_frame(frames.HEADERS, flags, stream.id, trailers))
        if not stream.is_remote_closed:
            self._pending.append(frames.encode_rst_stream(stream.id, ErrorCode.NO_ERROR))
        self.on_stream_done(stream)


def _get_data_flags(trailers: bytes | None) -> int:
    """The flags of the last DATA frame before some trailers: END_STREAM where they are empty."""
    return frames.END_STREAM if trailers == b"" else 0
