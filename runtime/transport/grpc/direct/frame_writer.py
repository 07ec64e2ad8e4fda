"""What is sent on a connection: as much as the peer takes, and what is sent at once together."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable

from runtime.transport.grpc.direct import frames
from runtime.transport.grpc.direct.frames import Broken, Code, StreamError
from runtime.transport.grpc.direct.streams import Held, Stream

_MANY = 256
"""Frames that are not kept for those that follow: they show whether the client reads."""
_WORTH_A_FRAME = 1024
"""What a frame of data has at least whose client enlarges its windows sensibly."""
_TOO_LARGE = "a window that is too large"


class Sender:
    """Sends frames. Data that a client does not take yet waits with its stream."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, most_held: int, together: Held, over: Callable[[Stream], None]
    ) -> None:
        """`together` has what waits on this connection and others, and `over` hears of each stream whose last
        frame is on its way.
        """
        self._loop = loop
        self._most_held = most_held
        self._together = together
        self.over = over
        self.transport: asyncio.Transport
        self.paused = False
        self.sent = 0
        """How often something was sent for which a client may well ask or thank."""
        self._sent_bytes = 0
        """Of data."""
        self.stream_window = frames.DEFAULT_WINDOW
        """Of streams that are opened from now on."""
        self.table_update = b""
        """What the next header block has to begin with: the size of the table that it is written by."""
        self.frame_bytes = frames.LARGEST_FRAME
        self._window = frames.DEFAULT_WINDOW
        self._held = 0
        self._waiting: OrderedDict[int, Stream] = OrderedDict()
        """Streams with something to send that wait for the connection, not for a window of their own."""
        self._out: list[bytes] = []
        self._flushes = False

    @property
    def parts(self) -> int:
        """The messages that were sent, and each kibibyte of data: a peer may widen its windows after each."""
        return self.sent + self._sent_bytes // _WORTH_A_FRAME

    def hold(self) -> None:
        """Keeps what is written from now on until the next flush, which has to follow."""
        self._flushes = True

    def write(self, frame: bytes) -> None:
        """Sends a frame that is not data."""
        self._out.append(frame)
        self._flush_soon()

    def send(self, stream: Stream, headers: bytes | None, data: bytes, trailers: bytes | None) -> None:
        """Sends headers, data and, with `trailers`, the end of a stream, as soon as the peer takes them.

        Where there are none to send they are empty, and the end goes with the data.
        """
        self.sent += 1
        number, size = stream.id, len(data)
        if headers is not None:
            if self.table_update:
                headers = self._update_table(headers)
            self._out.append(frames.frame(frames.HEADERS, frames.END_HEADERS, number, headers))
        if stream.outgoing or size > self._room(stream):
            self._queue(stream, data, trailers)
        else:
            if size:
                self._window -= size
                self._sent_bytes += size
                stream.window -= size
                self._out.append(frames.frame(frames.DATA, _ending(trailers), number, data))
            if trailers:
                self._finish(stream, trailers)
        if not self._flushes:
            self._flush_soon()
        elif len(self._out) >= _MANY:
            self._write()

    def forget(self, stream: Stream) -> None:
        """Sends nothing more of a stream."""
        self._waiting.pop(stream.id, None)
        self._hold(stream.gone - len(stream.outgoing))
        stream.outgoing, stream.gone = b"", 0

    def may_send(self, increment: int, stream: Stream | None = None) -> None:
        """The client takes so many bytes more, of a stream or of all together."""
        if stream is None:
            self._window += increment
            if self._window > frames.LARGEST_WINDOW:
                raise Broken(Code.FLOW_CONTROL_ERROR, _TOO_LARGE)
            self.go_on()
        else:
            stream.window += increment
            if stream.window > frames.LARGEST_WINDOW:
                raise StreamError(Code.FLOW_CONTROL_ERROR, _TOO_LARGE)
            if stream.outgoing:
                self._send_some(stream)
                self._flush_soon()

    def resize(self, window: int, streams: Iterable[Stream]) -> None:
        """The client takes so many bytes of each stream, also of those that there are."""
        grown, self.stream_window = window - self.stream_window, window
        if grown:
            for stream in list(streams):
                if stream.window + grown > frames.LARGEST_WINDOW:
                    raise Broken(Code.FLOW_CONTROL_ERROR, _TOO_LARGE)
                self.may_send(grown, stream)

    def go_on(self) -> None:
        """Sends what had to wait for the connection."""
        while self._waiting and self._window > 0 and not self.paused:
            self._send_some(next(iter(self._waiting.values())))
        self._flush_soon()

    def flush(self) -> None:
        """Lets what was written leave."""
        self._flushes = False
        self._write()

    def _write(self) -> None:
        if self._out:
            out, self._out = self._out, []
            if not self.transport.is_closing():
                self.transport.write(b"".join(out))

    def _flush_soon(self) -> None:
        if not self._flushes:
            self._flushes = True
            self._loop.call_soon(self.flush)

    def _room(self, stream: Stream) -> int:
        """How much of a stream may be sent in one frame."""
        return 0 if self.paused else min(self._window, stream.window, self.frame_bytes)

    def _queue(self, stream: Stream, data: bytes, trailers: bytes | None) -> None:
        if data:
            stream.outgoing = stream.outgoing[stream.gone :] + data
            stream.gone = 0
            self._hold(len(data))
        stream.trailers = trailers
        self._send_some(stream)
        is_full = self._held > self._most_held or self._together.size > self._together.most
        if stream.outgoing and is_full:
            # Whoever asks on without reading what was answered is not answered on.
            self._out.append(frames.reset(stream.id, Code.ENHANCE_YOUR_CALM))
            self.over(stream)

    def _hold(self, size: int) -> None:
        """Count so many bytes more that wait to be taken."""
        self._held += size
        self._together.size += size

    def _send_some(self, stream: Stream) -> None:
        data, begin, end = stream.outgoing, stream.gone, len(stream.outgoing)
        while begin < end and (room := self._room(stream)) > 0:
            part = data[begin : begin + room]
            size = len(part)
            begin += size
            stream.gone = begin
            stream.window -= size
            self._window -= size
            self._sent_bytes += size
            self._hold(-size)
            ends = _ending(stream.trailers) if begin == end else 0
            self._out.append(frames.frame(frames.DATA, ends, stream.id, part))
            if size >= _WORTH_A_FRAME or begin == end:
                self.sent += 1
        if begin < end and stream.window > 0:
            self._waiting[stream.id] = stream
            return
        self._waiting.pop(stream.id, None)
        if begin == end:
            stream.outgoing, stream.gone = b"", 0
            if stream.trailers:
                self._finish(stream, stream.trailers)

    def _update_table(self, block: bytes) -> bytes:
        block, self.table_update = self.table_update + block, b""
        return block

    def _finish(self, stream: Stream, trailers: bytes) -> None:
        if self.table_update:
            trailers = self._update_table(trailers)
        flags = frames.END_HEADERS | frames.END_STREAM
        self._out.append(frames.frame(frames.HEADERS, flags, stream.id, trailers))
        if not stream.ended:
            self._out.append(frames.reset(stream.id, Code.NO_ERROR))
        self.over(stream)


def _ending(trailers: bytes | None) -> int:
    """Whether data is the last of a stream."""
    return frames.END_STREAM if trailers == b"" else 0
