"""What both sides of a connection have in common: frames, streams, how much may be sent, and how it ends."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import Any

from runtime.transport.grpc.direct import frames
from runtime.transport.grpc.direct.calm import Restraint, Vigil
from runtime.transport.grpc.direct.control_frames import Control
from runtime.transport.grpc.direct.frame_reader import FrameReader, Take
from runtime.transport.grpc.direct.frame_writer import Sender
from runtime.transport.grpc.direct.frames import Broken, Code, Setting, StreamError
from runtime.transport.grpc.direct.header_blocks import LARGEST_LIST
from runtime.transport.grpc.direct.streams import Held, Limits, Stream

_WINDOW = 16 * 2**20
"""What a peer may have sent on all streams together before it hears that it was taken in."""
_UPDATES_A_STREAM = 3
"""Window updates that a stream explains: a client may widen it as it opens, reads and ends it."""
_UPDATES_A_PART = 2
"""Window updates that each part of the sent data explains: of its stream, and of the connection."""
_WORTH_A_FRAME = 256
"""What a frame of data has at least that is not there for its own sake."""


class Link(asyncio.Protocol):
    """Speaks HTTP/2 with one peer."""

    transport: asyncio.Transport

    def __init__(self, limits: Limits, preface: bytes = b"", held: Held | None = None) -> None:
        """`preface` is what the peer has to say first, `held` what waits here and on other connections."""
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._limits = limits
        self._sender = Sender(loop, limits.most_held, held or Held(limits.most_held), self._drop)
        self._restraint = Restraint(loop, limits)
        self._vigil = Vigil(loop, limits, self._ask, self.abort)
        self._streams: dict[int, Stream] = {}
        self._latest = 0
        """The last stream that was opened, whether it was taken or not."""
        self._leaving = False
        """Whether no more streams are opened."""
        self._is_resting = False
        """Whether the other connections have their turn before more is read."""
        self._updates = 0
        """Window updates that were received."""
        self._opened = 0
        """Streams that were opened and taken."""
        self._credit = frames.DEFAULT_WINDOW
        self._stream_credit = min(
            max(limits.message_bytes + 64, frames.DEFAULT_WINDOW), frames.LARGEST_WINDOW
        )
        control = Control(
            self._sender,
            self._restraint,
            self._streams,
            self._on_setting,
            self._on_leave,
            self._on_ping_ack,
        )
        takes: dict[int, Take] = {
            **control.takes,
            frames.DATA: self._on_data,
            frames.RST_STREAM: self._on_reset,
            frames.WINDOW_UPDATE: self._on_window_update,
        }
        self._incoming = FrameReader(
            takes,
            self._on_block,
            self._on_introduced,
            self._restraint.odd,
            self._fail_stream,
            self._rest,
            preface=preface,
        )

    # What either side makes of it.

    @abstractmethod
    def _on_block(self, flags: int, number: int, block: bytes) -> None:
        """A header block is complete."""

    @abstractmethod
    def _on_body(self, stream: Stream, data: bytes) -> None:
        """Something was sent; where `stream.ended`, that was the last of it."""

    @abstractmethod
    def _on_lost(self, stream: Stream, code: int | None) -> None:
        """The peer has ended a stream in the middle, with a code, or is gone."""

    @abstractmethod
    def _on_end(self) -> None:
        """The connection is no more."""

    def _on_introduced(self) -> None:
        """The first frame of the peer is there, and is settings."""
        self._vigil.begin()

    def _on_setting(self, name: int, value: int) -> None:
        """The peer tells something of itself that only one side wants to know."""

    def _on_leave(self, last: int) -> None:
        """The peer takes no streams after that one."""

    def _on_ping_ack(self, payload: bytes) -> None:
        """The peer has read all that was sent before a PING."""

    # What the transport tells.

    def connection_made(self, transport: Any) -> None:
        self.transport = self._sender.transport = transport
        self._vigil.hurry()

    def _introduce(self, preface: bytes, said: dict[Setting, int]) -> None:
        said |= {
            Setting.INITIAL_WINDOW_SIZE: self._stream_credit,
            Setting.MAX_HEADER_LIST_SIZE: LARGEST_LIST,
        }
        self._credit += _WINDOW
        self.transport.write(preface + frames.settings(said) + frames.window_update(0, _WINDOW))

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
            # Of ours, so all other connections go on, and whoever looks after the process hears of it.
            context = {"message": "a connection has failed", "exception": error, "protocol": self}
            self._loop.call_exception_handler(context)
            self._end(Code.INTERNAL_ERROR, "there is a fault on this side")
        self._sender.flush()

    def _rest(self) -> None:
        """Read on in the next turn of the event loop: one peer must not keep all others waiting."""
        self._is_resting = True
        self.transport.pause_reading()
        self._loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        self._is_resting = False
        if not self._incoming.over and not self.transport.is_closing():
            self._incoming.paused = False
            self.transport.resume_reading()
            self.data_received(b"")

    def connection_lost(self, _error: Exception | None) -> None:
        self._incoming.end()
        self._vigil.end()
        for stream in list(self._streams.values()):
            self._lose(stream, None)
        self._on_end()
        # What refers to a connection from within would keep it until somebody looks for such circles.
        self._sender.over = _forgotten

    def pause_writing(self) -> None:
        self._sender.paused = True

    def resume_writing(self) -> None:
        self._vigil.heard = True
        self._sender.paused = False
        self._sender.go_on()

    # How streams and connections end.

    def cut(self) -> None:
        """Closes; of what is under way, only what the peer takes at once reaches it."""
        if self._sender.paused:
            self.abort()
        else:
            self._close()

    def abort(self) -> None:
        """Closes at once."""
        self._incoming.end()
        self.transport.abort()

    def _drop(self, stream: Stream) -> None:
        del self._streams[stream.id]
        if stream.outgoing:
            self._sender.forget(stream)
        if self._leaving:
            self._close_if_done()

    def _lose(self, stream: Stream, code: int | None) -> None:
        self._drop(stream)
        self._on_lost(stream, code)

    def _fail_stream(self, number: int, error: StreamError) -> None:
        """Reset a stream whose peer broke a rule of it."""
        self._restraint.odd()
        self._sender.write(frames.reset(number, error.code))
        if (stream := self._streams.get(number)) is not None:
            self._lose(stream, error.code)

    def _last_taken(self) -> int:
        """The last stream of the peer's that is served."""
        return 0

    def _end(self, code: Code, why: str) -> None:
        """Says why, and closes."""
        self._sender.write(frames.go_away(self._last_taken(), code, why))
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
            # A peer that does not read what is left would keep it for ever.
            self._vigil.hurry()

    # What is received.

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
            raise StreamError(Code.STREAM_CLOSED, "DATA on a stream that is half-closed (remote)")
        stream.credit -= size
        data = frames.unpadded(flags, payload) if flags else payload
        if flags & frames.END_STREAM:
            stream.ended = True
        elif not data:
            self._restraint.odd()
        if stream.credit < self._stream_credit // 2:
            self._replenish_stream(stream)
        self._on_body(stream, data)

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
            self._lose(stream, frames.number_at(payload)[0])

    def _on_window_update(self, _flags: int, number: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise Broken(Code.FRAME_SIZE_ERROR, "a window grows by a number of 4 bytes")
        increment = frames.number_at(payload)[0] & frames.LARGEST_WINDOW
        if number > self._latest:
            raise Broken(Code.PROTOCOL_ERROR, "a window of a stream that nobody has opened")
        self._updates += 1
        if self._updates > self._explained_updates():
            self._restraint.odd()
        stream = self._streams.get(number)
        if increment == 0 and number == 0:
            raise Broken(Code.PROTOCOL_ERROR, "a window that grows by nothing")
        if increment == 0 and stream is not None:
            raise StreamError(Code.PROTOCOL_ERROR, "a window that grows by nothing")
        if number == 0 or stream is not None:
            self._sender.may_send(increment, stream)

    def _explained_updates(self) -> int:
        """Count the window updates that an honest peer may have sent for its streams and the data it got."""
        return _UPDATES_A_STREAM * self._opened + _UPDATES_A_PART * self._sender.parts

    # Whether the peer is still there.

    def _ask(self) -> bool:
        if not self._streams and not self._limits.idle_pings:
            return False
        self._sender.write(frames.frame(frames.PING, 0, 0, bytes(8)))
        return True


def _forgotten(_stream: Stream) -> None:
    pass
