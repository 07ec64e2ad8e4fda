"""One connection of a client: its frames, the streams that they are of, and how much it may send."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Generic

from runtime.http2 import frames
from runtime.http2.calm import Restraint, Vigil
from runtime.http2.frames import Broken, Code, Setting
from runtime.http2.headers import LARGEST_LIST, HeaderReader
from runtime.http2.sending import Sender
from runtime.http2.streams import Application, Head, Limits, Stream

_WINDOW = 16 * 2**20
"""What a client may have sent on all streams together before it hears that it was taken in."""


class Connection(asyncio.Protocol, Generic[Head]):
    """Speaks HTTP/2 with one client."""

    transport: asyncio.Transport

    def __init__(self, application: Application[Head], limits: Limits) -> None:
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._application = application
        self._limits = limits
        self._sender = Sender(loop)
        self._restraint = Restraint(loop, limits)
        self._vigil = Vigil(loop, limits, self._ask, self._give_up)
        self._reader: HeaderReader[Head] = HeaderReader(application.head)
        self._streams: dict[int, Stream] = {}
        self._latest = 0
        self.unfinished = 0
        """Calls that the client has given up and that are not over yet."""
        self._read: Callable[[bytes], int] = self._read_preface
        self._held = b""
        self._block: tuple[int, int, bytes] | None = None
        """Stream, flags and bytes of a header block that goes on with the next frame."""
        self._credit = frames.DEFAULT_WINDOW
        self._stream_credit = max(limits.message_bytes + 64, frames.DEFAULT_WINDOW)
        self._leaving = False
        self._over = False
        self._frames: dict[int, Callable[[int, int, bytes], None]] = {
            frames.DATA: self._on_data,
            frames.HEADERS: self._on_headers,
            frames.RST_STREAM: self._on_reset,
            frames.SETTINGS: self._on_settings,
            frames.PUSH_PROMISE: self._on_push,
            frames.PING: self._on_ping,
            frames.WINDOW_UPDATE: self._on_window_update,
            frames.CONTINUATION: self._on_continuation,
        }

    # What the transport tells.

    def connection_made(self, transport: Any) -> None:
        self.transport = self._sender.transport = transport
        if not self._application.connected(self):
            self._over = True
            transport.close()
            return
        said = {
            Setting.MAX_CONCURRENT_STREAMS: self._limits.streams,
            Setting.INITIAL_WINDOW_SIZE: self._stream_credit,
            Setting.MAX_HEADER_LIST_SIZE: LARGEST_LIST,
        }
        self._credit += _WINDOW
        transport.write(frames.settings(said) + frames.window_update(0, _WINDOW))

    def data_received(self, data: bytes) -> None:
        if self._over:
            return
        self._vigil.heard = True
        self._sender.hold()
        if self._held:
            data = self._held + data
        try:
            read = self._read(data)
            self._held = data[read:]
        except Broken as broken:
            self._end(broken.code, str(broken))
        self._sender.flush()

    def connection_lost(self, _error: Exception | None) -> None:
        self._over = True
        self._vigil.end()
        for stream in list(self._streams.values()):
            self._lose(stream)
        self._application.disconnected(self)

    def pause_writing(self) -> None:
        self._sender.paused = True

    def resume_writing(self) -> None:
        self._sender.paused = False
        self._go_on()

    # What the application does.

    def send(self, stream: Stream, headers: bytes | None, data: bytes, trailers: bytes | None) -> None:
        """Sends headers, data and, with `trailers`, the end of a stream, as soon as the client takes them."""
        if stream.id not in self._streams:
            return
        if self._sender.send(stream, headers, data, trailers) and trailers is not None:
            self._drop(stream)

    def abandon(self, stream: Stream, code: Code) -> None:
        """Ends a stream without an answer."""
        if stream.id in self._streams:
            self._sender.write(frames.reset(stream.id, code))
            self._drop(stream)

    def is_waiting(self, stream: Stream) -> bool:
        """Whether something of a stream is still to be sent."""
        return self._sender.is_waiting(stream)

    def leave(self) -> None:
        """Takes no new streams, and closes when those that there are have ended."""
        if not self._leaving and not self._over:
            self._leaving = True
            self._sender.write(frames.go_away(self._latest, Code.NO_ERROR))
            self._close_if_done()

    def close(self) -> None:
        """Closes; of what is under way, only what a client takes at once reaches it."""
        self._over = True
        self._sender.flush()
        if self._sender.paused:
            self.transport.abort()
        else:
            self.transport.close()

    # How streams end.

    def _drop(self, stream: Stream) -> None:
        del self._streams[stream.id]
        self._sender.forget(stream)
        if self._leaving:
            self._close_if_done()

    def _lose(self, stream: Stream) -> None:
        self._drop(stream)
        self._application.lost(self, stream)

    def _go_on(self) -> None:
        """Sends what had to wait."""
        for stream in self._sender.go_on():
            self._drop(stream)

    def _end(self, code: Code, why: str) -> None:
        """Says why, and closes."""
        self._sender.write(frames.go_away(self._latest, code, why))
        self.close()

    def _close_if_done(self) -> None:
        if not self._streams and not self._over:
            self._over = True
            self._loop.call_soon(self.close)

    # What is received.

    def _read_preface(self, data: bytes) -> int:
        preface = frames.PREFACE
        if not data.startswith(preface[: len(data)]):
            raise Broken(Code.PROTOCOL_ERROR, "this port speaks gRPC, over HTTP/2")
        if len(data) < len(preface):
            return 0
        self._read = self._read_frames
        self._vigil.begin()
        return len(preface) + self._read_frames(data[len(preface) :])

    def _read_frames(self, data: bytes) -> int:
        position, end, on = 0, len(data), self._frames
        while end - position >= frames.HEAD_BYTES:
            high, low, kind, flags, number = frames.head_at(data, position)
            length = high << 16 | low
            if length > frames.LARGEST_FRAME:
                raise Broken(Code.FRAME_SIZE_ERROR, f"a frame of more than {frames.LARGEST_FRAME} bytes")
            begin = position + frames.HEAD_BYTES
            if begin + length > end:
                break
            position = begin + length
            if self._block is not None and kind != frames.CONTINUATION:
                raise Broken(Code.PROTOCOL_ERROR, "another frame within a header block")
            if (take := on.get(kind)) is not None:
                take(flags, number & frames.LARGEST_WINDOW, data[begin:position])
            else:
                self._restraint.odd()
            if self._over:
                return end
        return position

    def _on_headers(self, flags: int, number: int, payload: bytes) -> None:
        if not number & 1:
            raise Broken(Code.PROTOCOL_ERROR, "headers of a stream that no client may open")
        block = frames.unpadded(flags, payload)
        if flags & frames.HAS_PRIORITY:
            block = block[5:]
        if flags & frames.END_HEADERS:
            self._on_block(flags, number, block)
        else:
            self._block = (number, flags, block)

    def _on_continuation(self, flags: int, number: int, payload: bytes) -> None:
        if self._block is None or self._block[0] != number:
            raise Broken(Code.PROTOCOL_ERROR, "a header block goes on that has not begun")
        _, first, begun = self._block
        block = begun + payload
        if len(block) > LARGEST_LIST:
            raise Broken(Code.ENHANCE_YOUR_CALM, f"a header block of more than {LARGEST_LIST} bytes")
        self._restraint.odd()
        if flags & frames.END_HEADERS:
            self._block = None
            self._on_block(first, number, block)
        else:
            self._block = (number, first, block)

    def _on_block(self, flags: int, number: int, block: bytes) -> None:
        # Whoever it is for, the block has to be read: it may change the table by which the next one is.
        head = self._reader.read(block)
        stream = self._streams.get(number)
        if stream is not None:
            if stream.ended or not flags & frames.END_STREAM:
                raise Broken(Code.PROTOCOL_ERROR, "headers in the middle of a stream")
            stream.ended = True
            self._application.received(self, stream, b"")
        elif number <= self._latest or self._leaving:
            self._restraint.odd()
        else:
            self._latest = number
            self._open(number, head, ended=bool(flags & frames.END_STREAM))

    def _open(self, number: int, head: Head, *, ended: bool) -> None:
        if len(self._streams) + self.unfinished >= self._limits.streams:
            self._restraint.odd()
            self._sender.write(frames.reset(number, Code.REFUSED_STREAM))
            return
        stream = Stream(number, self._stream_credit, self._sender.stream_window)
        self._streams[number] = stream
        self._application.opened(self, stream, head)
        if ended and number in self._streams:
            stream.ended = True
            self._application.received(self, stream, b"")

    def _on_data(self, flags: int, number: int, payload: bytes) -> None:
        stream, size = self._streams.get(number), len(payload)
        if stream is None and (number == 0 or number > self._latest):
            raise Broken(Code.PROTOCOL_ERROR, "data of a stream that nobody has opened")
        self._credit -= size
        if self._credit < _WINDOW // 2:
            self._replenish()
        if stream is None:
            self._restraint.odd()
            return
        if stream.ended:
            raise Broken(Code.STREAM_CLOSED, "data after the end of a stream")
        stream.credit -= size
        if flags & frames.END_STREAM:
            stream.ended = True
        elif size == 0:
            self._restraint.odd()
        if stream.credit < self._stream_credit // 2:
            self._replenish_stream(stream)
        self._application.received(self, stream, frames.unpadded(flags, payload) if flags else payload)

    def _replenish(self) -> None:
        if self._credit < 0:
            raise Broken(Code.FLOW_CONTROL_ERROR, "more data than was allowed")
        self._sender.write(frames.window_update(0, _WINDOW - self._credit))
        self._credit = _WINDOW

    def _replenish_stream(self, stream: Stream) -> None:
        if stream.credit < 0:
            raise Broken(Code.FLOW_CONTROL_ERROR, "more data than was allowed")
        if not stream.ended:
            self._sender.write(frames.window_update(stream.id, self._stream_credit - stream.credit))
            stream.credit = self._stream_credit

    def _on_reset(self, _flags: int, number: int, payload: bytes) -> None:
        if number == 0 or number > self._latest:
            raise Broken(Code.PROTOCOL_ERROR, "the end of a stream that nobody has opened")
        if len(payload) != 4:
            raise Broken(Code.FRAME_SIZE_ERROR, "the end of a stream needs 4 bytes")
        self._restraint.odd()
        if (stream := self._streams.get(number)) is not None:
            self._lose(stream)

    def _on_settings(self, flags: int, number: int, payload: bytes) -> None:
        if number:
            raise Broken(Code.PROTOCOL_ERROR, "settings of a stream")
        if flags & frames.ACK:
            return
        self._restraint.odd()
        sender = self._sender
        for name, value in frames.settings_in(payload):
            if name == Setting.INITIAL_WINDOW_SIZE:
                for stream in self._streams.values():
                    sender.may_send(value - sender.stream_window, stream)
                if value > frames.LARGEST_WINDOW:
                    raise Broken(Code.FLOW_CONTROL_ERROR, "a window that is too large")
                sender.stream_window = value
            elif name == Setting.MAX_FRAME_SIZE:
                if not frames.LARGEST_FRAME <= value < 2**24:
                    raise Broken(Code.PROTOCOL_ERROR, "a size that no frame may have")
                sender.frame_bytes = value
        sender.write(frames.frame(frames.SETTINGS, frames.ACK, 0))
        self._go_on()

    def _on_window_update(self, _flags: int, number: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise Broken(Code.FRAME_SIZE_ERROR, "a window grows by a number of 4 bytes")
        increment = frames.number_at(payload)[0] & frames.LARGEST_WINDOW
        if increment == 0:
            raise Broken(Code.PROTOCOL_ERROR, "a window that grows by nothing")
        if number > self._latest:
            raise Broken(Code.PROTOCOL_ERROR, "a window of a stream that nobody has opened")
        self._restraint.odd()
        stream = self._streams.get(number)
        if number == 0 or stream is not None:
            self._sender.may_send(increment, stream)
            self._go_on()

    def _on_ping(self, flags: int, number: int, payload: bytes) -> None:
        if number or len(payload) != 8:
            raise Broken(Code.PROTOCOL_ERROR if number else Code.FRAME_SIZE_ERROR, "a ping has 8 bytes")
        if not flags & frames.ACK:
            self._restraint.pinged(self._sender.spoken)
            self._sender.spoken = False
            self._sender.write(frames.frame(frames.PING, frames.ACK, 0, payload))

    def _on_push(self, _flags: int, _number: int, _payload: bytes) -> None:
        raise Broken(Code.PROTOCOL_ERROR, "only servers may promise something")

    # Whether the client is still there.

    def _ask(self) -> bool:
        if not self._streams and not self._limits.idle_pings:
            return False
        self._sender.write(frames.frame(frames.PING, 0, 0, bytes(8)))
        return True

    def _give_up(self) -> None:
        self._over = True
        self.transport.abort()
