"""The calling side of a connection: calls with one message each way, and what becomes of them."""

from __future__ import annotations

import asyncio
from typing import Any, Generic, Protocol, TypeVar

from runtime.transport.grpc.direct import frames
from runtime.transport.grpc.direct.base_connection import Link
from runtime.transport.grpc.direct.frames import Broken, Code, Setting
from runtime.transport.grpc.direct.header_blocks import TABLE_BYTES, Header, HeaderReader, HeaderWriter
from runtime.transport.grpc.direct.streams import Limits, Stream


class Answered(Protocol):
    """What headers of an answer have to say here."""

    is_informational: bool
    """Whether the headers of the answer are still to come."""


Head = TypeVar("Head", bound=Answered)
_LAST_STREAM = 2**31 - 1
_CODES = frozenset(Code)


class Unserved(Exception):
    """The peer has not begun a call, and somebody else may be asked."""


class Cut(Exception):
    """A call was ended in the middle, with a code; None where the connection is gone."""

    def __init__(self, code: int | None) -> None:
        super().__init__(
            "the connection is lost" if code is None else f"the call is reset with {_name(code)}"
        )
        self.code = code


def _name(code: int) -> str:
    return Code(code).name if code in _CODES else f"code {code}"


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
        """A part of an answer is there, after its headers. Raises if there may not be more of it."""
        ...

    def answer(self, exchange: Exchange[Head], trailers: Head) -> bytes:
        """What was answered, when all of it is there; or raises how the call ended instead."""
        ...

    def connected(self, connection: Calling[Head]) -> None:
        """A connection is there, over which calls can be made when the server has introduced itself."""
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
        self._introduced: asyncio.Future[None] = self._loop.create_future()
        self._error: Exception | None = None
        self.has_answered = False
        """Whether a call over it has been answered, in whatever way."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._introduce(frames.PREFACE, {Setting.ENABLE_PUSH: 0})
        self._caller.connected(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._error = error
        super().connection_lost(error)

    # Making calls.

    async def introduced(self) -> None:
        """Returns when the server has sent its settings; raises if the connection is no good by then."""
        await self._introduced
        if not self.is_open:
            why = "the connection ends before a call can be made"
            raise ConnectionError(f"{why} ({self._error})" if self._error else why)

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
        self._opened += 1
        self._sender.send(stream, self._writer.block(headers) + varying, message, b"")
        return stream

    def give_up(self, stream: Stream) -> None:
        """Ends a call to whose answer nobody listens, if it has not ended."""
        if stream.id in self._streams:
            stream.state.answer.cancel()
            self._cancel(stream)

    # How calls end.

    def _cancel(self, stream: Stream, code: Code = Code.CANCEL) -> None:
        self._sender.write(frames.reset(stream.id, code))
        self._drop(stream)

    def _refuse(self, stream: Stream) -> None:
        """End a call whose answer is malformed; others on the connection are not concerned."""
        self._fail(stream, Cut(Code.PROTOCOL_ERROR))
        self._cancel(stream, Code.PROTOCOL_ERROR)

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
        elif stream.state.head is not None:
            self._refuse(stream)
        elif head.is_informational:
            self._restraint.odd()
        else:
            stream.state.head = head

    def _finish(self, stream: Stream, trailers: Head) -> None:
        exchange: Exchange[Head] = stream.state
        self.has_answered = True
        try:
            answer = self._caller.answer(exchange, trailers)
        except Exception as error:
            self._fail(stream, error)
        else:
            if not exchange.answer.done():
                exchange.answer.set_result(answer)
        self._forget(stream)

    def _forget(self, stream: Stream) -> None:
        """Drop a stream that the server has ended, and reset it if the server did so before it heard all."""
        if stream.outgoing:
            self._cancel(stream)
        else:
            self._drop(stream)

    def _on_body(self, stream: Stream, data: bytes) -> None:
        if stream.state.head is None:
            self._refuse(stream)
            return
        try:
            self._caller.take(stream.state, data)
        except Exception as error:
            self._fail(stream, error)
            if stream.ended:
                self._forget(stream)
            else:
                self._cancel(stream)
        else:
            if stream.ended:
                # Without trailers, the headers say all that is known of how the call ended.
                self._finish(stream, stream.state.head)

    def _on_lost(self, stream: Stream, code: int | None) -> None:
        """What `_drop` has not settled already."""

    def _lose(self, stream: Stream, code: int | None) -> None:
        # What has begun to be answered was served, whatever its code says.
        is_unserved = code == Code.REFUSED_STREAM and stream.state.head is None
        self._fail(stream, Unserved() if is_unserved else Cut(code))
        super()._lose(stream, code)

    def _on_introduced(self) -> None:
        super()._on_introduced()
        self._tell_introduced()

    def _tell_introduced(self) -> None:
        if not self._introduced.done():
            self._introduced.set_result(None)

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
            # Those who wait for room find it on another connection.
            self._free()

    def _on_end(self) -> None:
        self._leave()
        self._tell_introduced()
        self._caller.gone(self)
