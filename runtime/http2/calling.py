"""The calling side of a connection: calls with one message each way, and what becomes of them."""

from __future__ import annotations

import asyncio
from typing import Any, Generic, Protocol, TypeVar

from runtime.http2 import frames
from runtime.http2.frames import Broken, Code, Setting
from runtime.http2.headers import TABLE_BYTES, Header, HeaderReader, HeaderWriter
from runtime.http2.link import Link
from runtime.http2.streams import Limits, Stream

Head = TypeVar("Head")
_LAST_STREAM = 2**31 - 1


class Unserved(Exception):
    """The peer has not begun a call, and somebody else may be asked."""


class Cut(Exception):
    """A call was ended in the middle, with a code; None where the connection is gone."""

    def __init__(self, code: int | None) -> None:
        super().__init__("the connection is lost" if code is None else f"the call was ended with code {code}")
        self.code = code


class Exchange(Generic[Head]):
    """A call that is to be answered."""

    __slots__ = ("answer", "body", "head")

    def __init__(self, answer: asyncio.Future[bytes]) -> None:
        self.answer = answer
        self.head: Head | None = None
        self.body: bytes | bytearray = b""


class Caller(Protocol[Head]):
    """Who makes calls over connections."""

    def head(self, headers: list[Header]) -> Head:
        """What headers or trailers say. The same headers are not read twice."""
        ...

    def take(self, exchange: Exchange[Head], data: bytes) -> None:
        """A part of an answer is there. Raises if there may not be more of it."""
        ...

    def answer(self, exchange: Exchange[Head], trailers: Head) -> bytes:
        """What was answered, when all of it is there; or raises how the call ended instead."""
        ...

    def connected(self, connection: Calling[Head]) -> None:
        """Calls can be made."""
        ...

    def leaving(self, connection: Calling[Head]) -> None:
        """No new calls can be made."""
        ...

    def gone(self, connection: Calling[Head]) -> None:
        """The connection is no more."""
        ...


class Calling(Link, Generic[Head]):
    """Speaks HTTP/2 with one server."""

    def __init__(self, caller: Caller[Head], limits: Limits) -> None:
        super().__init__(limits)
        self._caller = caller
        self._reader: HeaderReader[Head] = HeaderReader(caller.head)
        self._writer = HeaderWriter()
        self._most = limits.streams
        self._freed: asyncio.Event | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._introduce(frames.PREFACE, {Setting.ENABLE_PUSH: 0})
        self._caller.connected(self)

    # Making calls.

    @property
    def is_open(self) -> bool:
        """Whether new calls can be made."""
        return not self._leaving and not self._incoming.over

    @property
    def is_full(self) -> bool:
        """Whether a call has to wait until another has ended."""
        return len(self._streams) >= self._most

    async def room(self) -> None:
        """Returns when the server takes one more call, or none any more."""
        while self.is_open and self.is_full:
            self._freed = self._freed or asyncio.Event()
            await self._freed.wait()

    def begin(self, headers: tuple[Header, ...], varying: bytes, message: bytes) -> Stream:
        """Sends a call; its `state` is an exchange. `varying` are headers that hardly ever come again."""
        self._latest = number = self._latest + 2 if self._latest else 1
        if number == _LAST_STREAM:
            self._leave()
        stream = Stream(number, self._stream_credit, self._sender.stream_window)
        stream.state = Exchange(self._loop.create_future())
        self._streams[number] = stream
        self._sender.send(stream, self._writer.block(headers) + varying, message, b"")
        return stream

    def give_up(self, stream: Stream) -> None:
        """Ends a call to whose answer nobody listens, if it has not ended."""
        if stream.id in self._streams:
            stream.state.answer.cancel()
            self._cancel(stream)

    # How calls end.

    def _cancel(self, stream: Stream) -> None:
        self._sender.write(frames.reset(stream.id, Code.CANCEL))
        self._drop(stream)

    def _fail(self, stream: Stream, error: Exception) -> None:
        answer: asyncio.Future[bytes] = stream.state.answer
        if not answer.done():
            answer.set_exception(error)

    def _drop(self, stream: Stream) -> None:
        super()._drop(stream)
        self._fail(stream, Cut(None))
        self._free()

    def _free(self) -> None:
        if self._freed is not None:
            self._freed.set()
            self._freed = None

    # What is received.

    def _on_block(self, flags: int, number: int, block: bytes) -> None:
        if number > self._latest:
            raise Broken(Code.PROTOCOL_ERROR, "headers of a stream that nobody has opened")
        head = self._reader.read(block)
        stream = self._streams.get(number)
        if stream is None:
            self._restraint.odd()
        elif flags & frames.END_STREAM:
            self._finish(stream, head)
        elif stream.state.head is None:
            stream.state.head = head
        else:
            raise Broken(Code.PROTOCOL_ERROR, "headers in the middle of a stream")

    def _finish(self, stream: Stream, trailers: Head) -> None:
        exchange: Exchange[Head] = stream.state
        try:
            answer = self._caller.answer(exchange, trailers)
        except Exception as error:
            self._fail(stream, error)
        else:
            if not exchange.answer.done():
                exchange.answer.set_result(answer)
        if stream.outgoing:
            # The server has heard enough.
            self._cancel(stream)
        else:
            self._drop(stream)

    def _on_body(self, stream: Stream, data: bytes) -> None:
        try:
            if stream.ended:
                raise Cut(Code.PROTOCOL_ERROR)
            self._caller.take(stream.state, data)
        except Exception as error:
            self._fail(stream, error)
            self._cancel(stream)

    def _on_lost(self, stream: Stream, code: int | None) -> None:
        """What `_drop` has not settled already."""

    def _lose(self, stream: Stream, code: int | None) -> None:
        self._fail(stream, Unserved() if code == Code.REFUSED_STREAM else Cut(code))
        super()._lose(stream, code)

    def _on_setting(self, name: int, value: int) -> None:
        if name == Setting.MAX_CONCURRENT_STREAMS:
            self._most = min(value, self._limits.streams)
            self._free()
        elif name == Setting.HEADER_TABLE_SIZE and value < TABLE_BYTES:
            self._writer.number_nothing()

    def _on_leave(self, last: int) -> None:
        self._leave()
        for stream in [each for each in self._streams.values() if each.id > last]:
            self._fail(stream, Unserved())
            self._drop(stream)
        self._close_if_done()

    def _leave(self) -> None:
        if not self._leaving:
            self._leaving = True
            self._caller.leaving(self)

    def _on_end(self) -> None:
        self._leave()
        self._free()
        self._caller.gone(self)
