"""One connection of a client: its frames, the streams that they are of, and how much it may send."""

from __future__ import annotations

import asyncio
from typing import Any, Generic

from runtime.http2 import frames
from runtime.http2.calm import Restraint, Vigil
from runtime.http2.control import Control
from runtime.http2.frames import Broken, Code, Setting
from runtime.http2.headers import LARGEST_LIST, HeaderReader
from runtime.http2.receiving import FrameReader, Take
from runtime.http2.sending import Sender
from runtime.http2.streams import Application, Head, Limits, Stream

_WINDOW = 16 * 2**20
"""What a client may have sent on all streams together before it hears that it was taken in."""
_WORTH_A_FRAME = 256
"""What a frame of data has at least that is not there for its own sake."""


class Connection(asyncio.Protocol, Generic[Head]):
    """Speaks HTTP/2 with one client."""

    transport: asyncio.Transport

    def __init__(self, application: Application[Head], limits: Limits) -> None:
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._application = application
        self._limits = limits
        self._sender = Sender(loop, limits.most_held, self._drop)
        self._restraint = Restraint(loop, limits)
        self._vigil = Vigil(loop, limits, self._ask, self.abort)
        self._reader: HeaderReader[Head] = HeaderReader(application.head)
        self._streams: dict[int, Stream] = {}
        self._latest = 0
        """The last stream that the client has opened, whether it was taken or not."""
        self._last_taken: int | None = None
        """The last stream that is served, once no more are."""
        self.unfinished = 0
        """Calls that the client has given up and that are not over yet."""
        self.unread = 0
        """Bytes that the application has been given and keeps, as more has to come before it can use them."""
        self._updates = 0
        self._credit = frames.DEFAULT_WINDOW
        self._stream_credit = min(
            max(limits.message_bytes + 64, frames.DEFAULT_WINDOW), frames.LARGEST_WINDOW
        )
        self._gone: asyncio.Future[None] | None = None
        control = Control(self._sender, self._restraint, self._streams)
        takes: dict[int, Take] = {
            **control.takes,
            frames.DATA: self._on_data,
            frames.RST_STREAM: self._on_reset,
            frames.WINDOW_UPDATE: self._on_window_update,
        }
        self._incoming = FrameReader(takes, self._on_block, self._vigil.begin, self._restraint.odd)

    # What the transport tells.

    def connection_made(self, transport: Any) -> None:
        self.transport = self._sender.transport = transport
        if not self._application.connected(self):
            self.abort()
            return
        self._vigil.hurry()
        said = {
            Setting.MAX_CONCURRENT_STREAMS: self._limits.streams,
            Setting.INITIAL_WINDOW_SIZE: self._stream_credit,
            Setting.MAX_HEADER_LIST_SIZE: LARGEST_LIST,
        }
        self._credit += _WINDOW
        transport.write(frames.settings(said) + frames.window_update(0, _WINDOW))

    def data_received(self, data: bytes) -> None:
        incoming = self._incoming
        if incoming.over:
            return
        self._vigil.heard = True
        self._sender.hold()
        try:
            incoming.take(data)
        except Broken as broken:
            self._end(broken.code, str(broken))
        except Exception as error:
            # Of ours, so everybody else is served on, and whoever looks after the server hears of it.
            context = {"message": "a connection has failed", "exception": error, "protocol": self}
            self._loop.call_exception_handler(context)
            self._end(Code.INTERNAL_ERROR, "the server has a fault")
        self._sender.flush()

    def connection_lost(self, _error: Exception | None) -> None:
        self._incoming.end()
        self._vigil.end()
        for stream in list(self._streams.values()):
            self._lose(stream)
        self._application.disconnected(self)
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)
        # What refers to a connection from within would keep it until somebody looks for such circles.
        self._sender.over = _forgotten

    def pause_writing(self) -> None:
        """Whoever does not read what we say is not listened to either: each frame could need an answer."""
        self._sender.paused = self._incoming.paused = True
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        self._vigil.heard = True
        self._sender.paused = False
        if not self._incoming.over:
            self._incoming.paused = False
            self.transport.resume_reading()
            self._sender.go_on()
            self.data_received(b"")

    # What the application does.

    def send(self, stream: Stream, headers: bytes | None, data: bytes, trailers: bytes | None) -> bool:
        """Sends headers, data and, with `trailers`, the end of a stream, as soon as the client takes them.

        Returns whether the client could still be interested.
        """
        if stream.id not in self._streams or stream.trailers is not None:
            return False
        self._sender.send(stream, headers, data, trailers)
        return stream.id in self._streams

    def abandon(self, stream: Stream, code: Code) -> None:
        """Ends a stream without an answer."""
        if stream.id in self._streams:
            self._sender.write(frames.reset(stream.id, code))
            self._drop(stream)

    def leave(self) -> asyncio.Future[None]:
        """Takes no new streams, and closes when those that there are have ended; done when it is closed."""
        if self._gone is None:
            self._gone = self._loop.create_future()
        if self._last_taken is None and not self._incoming.over:
            self._last_taken = self._latest
            self._sender.write(frames.go_away(self._latest, Code.NO_ERROR))
            self._close_if_done()
        return self._gone

    def cut(self) -> None:
        """Closes; of what is under way, only what a client takes at once reaches it."""
        if self._sender.paused:
            self.abort()
        else:
            self._close()

    def abort(self) -> None:
        """Closes at once."""
        self._incoming.end()
        self.transport.abort()

    # How streams and connections end.

    def _drop(self, stream: Stream) -> None:
        del self._streams[stream.id]
        if stream.outgoing:
            self._sender.forget(stream)
        if self._last_taken is not None:
            self._close_if_done()

    def _lose(self, stream: Stream) -> None:
        self._drop(stream)
        self._application.lost(self, stream)

    def _end(self, code: Code, why: str) -> None:
        """Says why, and closes."""
        last = self._latest if self._last_taken is None else self._last_taken
        self._sender.write(frames.go_away(last, code, why))
        self.cut()

    def _close_if_done(self) -> None:
        if not self._streams and not self._incoming.over:
            self._incoming.end()
            # What was written last leaves before.
            self._loop.call_soon(self._close)

    def _close(self) -> None:
        self._incoming.end()
        if not self.transport.is_closing():
            self._sender.flush()
            self.transport.close()
            # A client that does not read what is left would keep it for ever.
            self._vigil.hurry()

    # What is received.

    def _on_block(self, flags: int, number: int, block: bytes) -> None:
        # Whoever it is for, the block has to be read: it may change the table by which the next one is.
        head = self._reader.read(block)
        stream = self._streams.get(number)
        if stream is not None:
            if stream.ended or not flags & frames.END_STREAM:
                raise Broken(Code.PROTOCOL_ERROR, "headers in the middle of a stream")
            stream.ended = True
            self._application.received(self, stream, b"")
        elif number <= self._latest:
            self._restraint.odd()
        else:
            self._latest = number
            if self._last_taken is None:
                self._open(number, head, ended=bool(flags & frames.END_STREAM))
            else:
                # The client knows by our leave, or soon will, that nobody has looked at it.
                self._restraint.odd()

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
            if size < _WORTH_A_FRAME:
                self._restraint.odd()
            return
        if stream.ended:
            raise Broken(Code.STREAM_CLOSED, "data after the end of a stream")
        stream.credit -= size
        data = frames.unpadded(flags, payload) if flags else payload
        if flags & frames.END_STREAM:
            stream.ended = True
        elif not data:
            self._restraint.odd()
        if stream.credit < self._stream_credit // 2:
            self._replenish_stream(stream)
        self._application.received(self, stream, data)

    # Half of a window is more than a frame, so it is larger again before anybody could overdraw it.

    def _replenish(self) -> None:
        self._sender.write(frames.window_update(0, _WINDOW - self._credit))
        self._credit = _WINDOW

    def _replenish_stream(self, stream: Stream) -> None:
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

    def _on_window_update(self, _flags: int, number: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise Broken(Code.FRAME_SIZE_ERROR, "a window grows by a number of 4 bytes")
        increment = frames.number_at(payload)[0] & frames.LARGEST_WINDOW
        if increment == 0:
            raise Broken(Code.PROTOCOL_ERROR, "a window that grows by nothing")
        if number > self._latest:
            raise Broken(Code.PROTOCOL_ERROR, "a window of a stream that nobody has opened")
        self._updates += 1
        if self._updates > 2 * self._sender.sent:
            # Clients that are busy thank for each answer, and for each part of a long one.
            self._restraint.odd()
        stream = self._streams.get(number)
        if number == 0 or stream is not None:
            self._sender.may_send(increment, stream)

    # Whether the client is still there.

    def _ask(self) -> bool:
        if not self._streams and not self._limits.idle_pings:
            return False
        self._sender.write(frames.frame(frames.PING, 0, 0, bytes(8)))
        return True


def _forgotten(_stream: Stream) -> None:
    pass
