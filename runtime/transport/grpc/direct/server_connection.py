"""The serving side of a connection: streams are opened by the client, and answered by an application."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import Any, Generic

from runtime.transport.grpc.direct import frames
from runtime.transport.grpc.direct.base_connection import Link
from runtime.transport.grpc.direct.frames import Code, Setting, StreamError
from runtime.transport.grpc.direct.header_blocks import (
    NO_TABLE,
    TABLE_BYTES,
    HeaderListTooLarge,
    HeaderReader,
)
from runtime.transport.grpc.direct.header_fields import check_request_fields, parse_request
from runtime.transport.grpc.direct.streams import Application, Head, Limits, Stream

_WRONG_LENGTH = "content-length is not the length of the data"
_DRAIN_PING = b"draining"
_DRAIN_S = 2.0
"""How long a client may take to acknowledge the first GOAWAY; then the second names the last stream."""
_LINGER_S = 0.5
"""How long a client may take to close a connection on which nothing is left to do after a GOAWAY. Some lose
answers that they have not read yet where the server closes first."""
_AGE_JITTER = 0.1
"""Clients that connected together, as after a restart, do not come back together."""


class Connection(Link, Generic[Head]):
    """Speaks HTTP/2 with one client."""

    def __init__(self, application: Application[Head], limits: Limits) -> None:
        super().__init__(limits, frames.PREFACE, application.held)
        self._application = application
        self._reader: HeaderReader[tuple[Head, int | None] | None] = HeaderReader(
            partial(parse_request, application.head), check_request_fields
        )
        self._served = 0
        """The last stream that is served, once no more are."""
        self.unfinished = 0
        """Calls that the client has given up and that are not over yet."""
        self.unread = 0
        """Bytes that the application has been given and keeps, as more has to come before it can use them."""
        self.talks = 0
        """Streams on which messages go both ways for as long as the client wants."""
        self._gone: asyncio.Future[None] | None = None
        self._has_no_table = False
        """Whether the client knows that blocks are written without a dynamic table."""
        self._drain: asyncio.TimerHandle | None = None
        """Runs between the two GOAWAYs of a graceful shutdown."""
        self._aging: asyncio.TimerHandle | None = None
        """Runs until the connection is old enough to be replaced."""
        self._lingering: asyncio.TimerHandle | None = None
        """Runs while the client has its turn to close the connection."""

    # What the transport tells.

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if self._application.connected(self):
            self._introduce(b"", {Setting.MAX_CONCURRENT_STREAMS: self._limits.streams})
            if (age := self._limits.connection_age_s) is not None:
                age *= random.uniform(1 - _AGE_JITTER, 1 + _AGE_JITTER)
                self._aging = self._loop.call_later(age, self.leave)
        else:
            self.abort()

    def pause_writing(self) -> None:
        """Whoever does not read what we say is not listened to either: each frame could need an answer."""
        super().pause_writing()
        self._incoming.paused = True
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self._is_resting:
            self._read_on()

    def _read_on(self) -> None:
        if self._sender.paused:
            self._is_resting = False
        else:
            super()._read_on()

    # What the application does.

    def send(self, stream: Stream, headers: bytes | None, data: bytes, trailers: bytes | None) -> bool:
        """Sends headers, data and, with `trailers`, the end of a stream, as soon as the client takes them.

        Returns whether the client could still be interested.
        """
        if not self.is_unanswered(stream):
            return False
        self._sender.send(stream, headers, data, trailers)
        return stream.id in self._streams

    def spend(self, work: int) -> None:
        """Count work that was done for the client, as for the bytes of a header block."""
        self._incoming.spend(work)

    def is_unanswered(self, stream: Stream) -> bool:
        """Whether the client still waits for the end of a stream."""
        return stream.id in self._streams and stream.trailers is None

    def abandon(self, stream: Stream, code: Code) -> None:
        """Ends a stream without an answer."""
        if stream.id in self._streams:
            self._sender.write(frames.reset(stream.id, code))
            self._drop(stream)

    def leave(self) -> asyncio.Future[None]:
        """Shut down gracefully (RFC 9113, section 6.8); done when the connection is closed.

        The first GOAWAY asks the client to open no more streams, and those that it opens until it has heard
        of it are served. When it has acknowledged the PING that follows, or did not in time, the second
        GOAWAY names the last stream, and the connection closes when the streams have ended.
        """
        if self._gone is None:
            self._gone = self._loop.create_future()
        if self._leaving or self._drain is not None or self._incoming.over:
            return self._gone
        if self._incoming.has_settings:
            self._drain = self._loop.call_later(_DRAIN_S, self._take_no_more)
            self._sender.write(frames.go_away(frames.LARGEST_STREAM, Code.NO_ERROR))
            self._sender.write(frames.frame(frames.PING, 0, 0, _DRAIN_PING))
        else:
            self._take_no_more()
        return self._gone

    def cut(self) -> None:
        if self._drain is not None:
            self._take_no_more()
        super().cut()

    def _take_no_more(self) -> None:
        """Take no new streams, and close when those that there are have ended."""
        if not self._leaving and not self._incoming.over:
            self._leaving, self._served = True, self._latest
            self._sender.write(frames.go_away(self._latest, Code.NO_ERROR))
            self._close_if_done()

    def _close_if_done(self) -> None:
        if not self._streams and not self._incoming.over and self._lingering is None:
            self._lingering = self._loop.call_later(_LINGER_S, super()._close_if_done)

    def _end(self, code: Code, why: str) -> None:
        # One GOAWAY with an error is the last.
        self._served, self._leaving = self._last_taken(), True
        super()._end(code, why)

    # What is received.

    def _on_block(self, flags: int, number: int, block: bytes) -> None:
        # Whoever it is for, the block has to be read: it may change the table by which the next one is.
        try:
            request = self._reader.read(block)
        except StreamError as error:
            self._refuse_block(flags, number, error)
            return
        stream = self._streams.get(number)
        if stream is not None:
            if stream.ended:
                raise StreamError(Code.STREAM_CLOSED, "HEADERS on a stream that is half-closed (remote)")
            if request is not None or not flags & frames.END_STREAM:
                raise StreamError(Code.PROTOCOL_ERROR, "headers in the middle of a stream are no trailers")
            stream.ended = True
            self._on_body(stream, b"")
        elif number <= self._latest:
            self._restraint.odd()
        else:
            self._latest = number
            if self._leaving:
                # The client knows by our leave, or soon will, that nobody has looked at it.
                self._restraint.odd()
            elif request is None:
                raise StreamError(Code.PROTOCOL_ERROR, "a request has pseudo-headers")
            else:
                head, length = request
                self._open(number, head, length, ended=bool(flags & frames.END_STREAM))

    def _refuse_block(self, flags: int, number: int, error: StreamError) -> None:
        """End the stream of a header block that was read and says what no stream may say."""
        is_new = number > self._latest
        self._latest = max(number, self._latest)
        if (is_new and self._leaving) or (not is_new and number not in self._streams):
            self._restraint.odd()
        elif is_new and isinstance(error, HeaderListTooLarge):
            head = self._application.oversized(error.headers)
            self._open(number, head, None, ended=bool(flags & frames.END_STREAM))
        else:
            raise error

    def _open(self, number: int, head: Head, length: int | None, *, ended: bool) -> None:
        if ended and length:
            raise StreamError(Code.PROTOCOL_ERROR, _WRONG_LENGTH)
        if len(self._streams) + self.unfinished >= self._limits.streams:
            self._restraint.odd()
            self._sender.write(frames.reset(number, Code.REFUSED_STREAM))
            return
        stream = Stream(number, self._stream_credit, self._sender.stream_window)
        stream.due = length
        self._streams[number] = stream
        self._opened += 1
        self._application.opened(self, stream, head)
        if ended and number in self._streams:
            stream.ended = True
            self._application.received(self, stream, b"")

    def _on_body(self, stream: Stream, data: bytes) -> None:
        if stream.due is not None:
            stream.due -= len(data)
            if stream.due < 0 or (stream.ended and stream.due):
                raise StreamError(Code.PROTOCOL_ERROR, _WRONG_LENGTH)
        self._application.received(self, stream, data)

    def _on_lost(self, stream: Stream, _code: int | None) -> None:
        self._application.lost(self, stream)

    def _on_setting(self, name: int, value: int) -> None:
        if name == Setting.HEADER_TABLE_SIZE and value < TABLE_BYTES and not self._has_no_table:
            # Blocks are written without a table, but a client that keeps a smaller one has to hear of it.
            self._has_no_table = True
            self._sender.table_update = NO_TABLE

    def _on_ping_ack(self, payload: bytes) -> None:
        if payload == _DRAIN_PING and self._drain is not None:
            self._take_no_more()

    def _on_end(self) -> None:
        if self._drain is not None:
            self._drain.cancel()
        for timer in (self._aging, self._lingering):
            if timer is not None:
                timer.cancel()
        self._application.disconnected(self)
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)

    def _last_taken(self) -> int:
        return self._served if self._leaving else self._latest
