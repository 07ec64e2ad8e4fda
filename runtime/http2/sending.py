"""What a server sends on a connection: as much as the client takes, and what is sent at once together."""

from __future__ import annotations

import asyncio

from runtime.http2 import frames
from runtime.http2.frames import Broken, Code
from runtime.http2.streams import Stream


class Sender:
    """Sends frames. Data that a client does not take yet waits with its stream."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.transport: asyncio.Transport
        self.paused = False
        self.spoken = False
        """Whether something was answered since somebody last set it back."""
        self.stream_window = frames.DEFAULT_WINDOW
        """Of streams that are opened from now on."""
        self.frame_bytes = frames.LARGEST_FRAME
        self._window = frames.DEFAULT_WINDOW
        self._waiting: dict[int, Stream] = {}
        self._out: list[bytes] = []
        self._flushes = False

    def hold(self) -> None:
        """Keeps what is written from now on until the next flush, which has to follow."""
        self._flushes = True

    def write(self, frame: bytes) -> None:
        """Sends a frame that is not data."""
        self._out.append(frame)
        self._flush_soon()

    def send(self, stream: Stream, headers: bytes | None, data: bytes, trailers: bytes | None) -> bool:
        """Sends headers, data and, with `trailers`, the end of a stream; whether all of it is on its way."""
        self.spoken = True
        number, size = stream.id, len(data)
        if headers is not None:
            self._out.append(frames.frame(frames.HEADERS, frames.END_HEADERS, number, headers))
        if stream.outgoing or size > self._room(stream):
            stream.outgoing += data
            stream.trailers = trailers
            self._waiting[number] = stream
            sent = self._send_some(stream)
        else:
            if size:
                self._window -= size
                stream.window -= size
                self._out.append(frames.frame(frames.DATA, 0, number, data))
            if trailers is not None:
                self._finish(stream, trailers)
            sent = True
        self._flush_soon()
        return sent

    def forget(self, stream: Stream) -> None:
        """Sends nothing more of a stream."""
        self._waiting.pop(stream.id, None)

    def is_waiting(self, stream: Stream) -> bool:
        """Whether something of a stream is still to be sent."""
        return stream.id in self._waiting

    def may_send(self, increment: int, stream: Stream | None = None) -> None:
        """The client takes so many bytes more, of a stream or of all together."""
        if stream is None:
            self._window += increment
            window = self._window
        else:
            stream.window += increment
            window = stream.window
        if window > frames.LARGEST_WINDOW:
            raise Broken(Code.FLOW_CONTROL_ERROR, "a window that is too large")

    def go_on(self) -> list[Stream]:
        """Sends what had to wait and may be sent now; the streams that have ended with it."""
        waiting = list(self._waiting.values())
        ended = [each for each in waiting if self._send_some(each) and each.trailers is not None]
        self._flush_soon()
        return ended

    def flush(self) -> None:
        """Lets what was written leave."""
        self._flushes = False
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

    def _send_some(self, stream: Stream) -> bool:
        while stream.outgoing and (room := self._room(stream)) > 0:
            part, stream.outgoing = stream.outgoing[:room], stream.outgoing[room:]
            self._window -= len(part)
            stream.window -= len(part)
            self._out.append(frames.frame(frames.DATA, 0, stream.id, part))
        if stream.outgoing:
            return False
        del self._waiting[stream.id]
        if stream.trailers is not None:
            self._finish(stream, stream.trailers)
        return True

    def _finish(self, stream: Stream, trailers: bytes) -> None:
        flags = frames.END_HEADERS | frames.END_STREAM
        self._out.append(frames.frame(frames.HEADERS, flags, stream.id, trailers))
        if not stream.ended:
            self._out.append(frames.reset(stream.id, Code.NO_ERROR))
