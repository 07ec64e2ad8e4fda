"""The serving side of a connection: streams are opened by the client, and answered by an application."""

from __future__ import annotations

import asyncio
from typing import Any, Generic

from runtime.http2 import frames
from runtime.http2.frames import Broken, Code, Setting
from runtime.http2.headers import HeaderReader
from runtime.http2.link import Link
from runtime.http2.streams import Application, Head, Limits, Stream


class Connection(Link, Generic[Head]):
    """Speaks HTTP/2 with one client."""

    def __init__(self, application: Application[Head], limits: Limits) -> None:
        super().__init__(limits, frames.PREFACE)
        self._application = application
        self._reader: HeaderReader[Head] = HeaderReader(application.head)
        self._served = 0
        """The last stream that is served, once no more are."""
        self.unfinished = 0
        """Calls that the client has given up and that are not over yet."""
        self.unread = 0
        """Bytes that the application has been given and keeps, as more has to come before it can use them."""
        self._gone: asyncio.Future[None] | None = None

    # What the transport tells.

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if self._application.connected(self):
            self._introduce(b"", {Setting.MAX_CONCURRENT_STREAMS: self._limits.streams})
        else:
            self.abort()

    def pause_writing(self) -> None:
        """Whoever does not read what we say is not listened to either: each frame could need an answer."""
        super().pause_writing()
        self._incoming.paused = True
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self._incoming.over:
            self._incoming.paused = False
            self.transport.resume_reading()
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
        if not self._leaving and not self._incoming.over:
            self._leaving, self._served = True, self._latest
            self._sender.write(frames.go_away(self._latest, Code.NO_ERROR))
            self._close_if_done()
        return self._gone

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
            if self._leaving:
                # The client knows by our leave, or soon will, that nobody has looked at it.
                self._restraint.odd()
            else:
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

    def _on_body(self, stream: Stream, data: bytes) -> None:
        self._application.received(self, stream, data)

    def _on_lost(self, stream: Stream, _code: int | None) -> None:
        self._application.lost(self, stream)

    def _on_end(self) -> None:
        self._application.disconnected(self)
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)

    def _last_taken(self) -> int:
        return self._served if self._leaving else self._latest
