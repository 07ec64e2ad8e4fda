"""Calls of gRPC on the connections of a server: from messages to methods, and from answers to the wire."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Coroutine, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

from runtime.transport.grpc.direct.frames import Code
from runtime.transport.grpc.direct.header_blocks import Header
from runtime.transport.grpc.direct.messages import (
    BEGIN,
    OK,
    OVERSIZED,
    Head,
    Refused,
    announced,
    ending,
    ending_only,
    framed,
    message_in,
    too_large,
)
from runtime.transport.grpc.direct.server_connection import Connection
from runtime.transport.grpc.direct.streams import Held, Stream

Answer = Callable[[Head, bytes, tuple[bytes, ...]], Coroutine[Any, Any, bytes]]
"""A message for a message, with the headers of the call and the names that the caller's certificate has."""
Converse = Callable[[AsyncIterator[bytes]], AsyncGenerator[bytes, None]]
"""Messages for messages."""
Report = Callable[[Head, tuple[bytes, ...], str, str], None]
"""Takes the headers of a call that no method has answered, its caller's names, and the status and the words
that it ended with."""
Allow = Callable[[Head, tuple[bytes, ...]], int]
"""How many bytes the message of a call may have, by its headers and its caller's names; 0 where its guard
refuses it, whatever it says."""
Explain = Callable[[BaseException], Refused | None]
"""How a call ends whose method has raised something; None for what is a fault."""
Peer = Connection[Head]

_COMPRESSED = b"\x01"
_DECOMPRESSED_A_BYTE = 128
"""Bytes of a message that are decompressed with as much work as one byte of a header block is read."""
_STOPS = "the server stops"
_MOST_UNREAD = 16
"""Messages of a conversation that may wait to be read."""
LONGEST_QUESTION = 4096
"""Of a message that asks for a service or a name, as those of conversations do."""
_MOST_TALKS = 64
"""Conversations of a connection, which anyone may begin where health and reflection are open to anyone."""
_MOST_UNSENT = 2**20
"""Bytes that a conversation may have answered and its client not have taken."""


class Call:
    """A call that is being received or answered."""

    __slots__ = ("allowed", "answer", "body", "has_begun", "head", "messages", "task", "timer")

    def __init__(self, head: Head, answer: Answer | None) -> None:
        self.head = head
        self.answer = answer
        self.body = bytearray()
        self.allowed: int | None = None
        """How many bytes its message may have, as far as that was asked."""
        self.has_begun = False
        """Whether its method runs, which reports itself how it ended."""
        self.messages: asyncio.Queue[bytes | None] | None = None
        self.task: asyncio.Task[Any] | None = None
        self.timer: asyncio.TimerHandle | None = None


class Calls:
    """All calls of a server."""

    def __init__(
        self,
        answers: Mapping[bytes, Answer],
        conversations: Mapping[bytes, Converse],
        names: Callable[[asyncio.Transport], tuple[bytes, ...]],
        report: Report,
        *,
        message_bytes: int,
        connections: int,
        most_held: int,
        held: Held,
        certified: Collection[bytes] = (),
        allow: Allow | None = None,
        read_metadata: Callable[[list[Header]], Any] = list,
        explain: Explain = lambda _error: None,
    ) -> None:
        """`names` has the names in the certificate of whoever is on the other end. `allow` is asked before
        parts of a message are kept, or one is decompressed. `read_metadata` makes of metadata what methods
        get, and `explain` of what they raise how their calls end; methods report that themselves.
        """
        self._answers = answers
        self._conversations = conversations
        self._names = names
        self._report = report
        self._certified = frozenset(certified)
        """Paths that are answered only to clients that show a certificate."""
        self._message_bytes = message_bytes
        self._allow = allow or (lambda _head, _names: message_bytes)
        self._read_metadata = read_metadata
        self._explain = explain
        self._most_connections = connections
        self._most_held = most_held
        self.held = held
        self._context = contextvars.copy_context()
        """The context variables that every call begins with; what one call sets, no other call sees."""
        self.leaving = False
        """Whether the server is about to stop."""
        self.connections: dict[Peer, tuple[bytes, ...]] = {}
        self.tasks: set[asyncio.Task[Any]] = set()
        self.talks: set[asyncio.Task[Any]] = set()
        """Those of the tasks that may go on for as long as the server does."""

    def head(self, headers: list[Header]) -> Head:
        return Head(headers, self._read_metadata)

    def oversized(self, headers: list[Header]) -> Head:
        head = Head(headers, self._read_metadata)
        head.refused = OVERSIZED
        return head

    def connected(self, connection: Peer) -> bool:
        if self.leaving or len(self.connections) >= self._most_connections:
            return False
        self.connections[connection] = self._names(connection.transport)
        return True

    def disconnected(self, connection: Peer) -> None:
        self.connections.pop(connection, None)

    def opened(self, connection: Peer, stream: Stream, head: Head) -> None:
        answer = self._answers.get(head.path)
        if head.path in self._certified and not self.connections[connection]:
            # Refused when all is said: a client that is cut off before may take that for another failure.
            stream.state = Call(head, _refuse_uncertified)
        elif answer is not None and head.refused is None:
            stream.state = Call(head, answer)
        elif head.refused is not None:
            connection.send(stream, None, b"", head.refused.headers)
            self._report(head, self.connections[connection], head.refused.status, head.refused.message)
        elif (converse := self._conversations.get(head.path)) is None:
            self._turn_away(
                connection, stream, head, "UNIMPLEMENTED", f"no method {head.path.decode(errors='replace')}"
            )
        elif connection.talks >= _MOST_TALKS:
            message = f"more than {_MOST_TALKS} streams of many messages on this connection"
            self._turn_away(connection, stream, head, "RESOURCE_EXHAUSTED", message)
        elif self.leaving:
            # It could go on for as long as the server does.
            self._turn_away(connection, stream, head, "UNAVAILABLE", _STOPS)
        else:
            self._talk(connection, stream, head, converse)

    def _turn_away(self, connection: Peer, stream: Stream, head: Head, status: str, message: str) -> None:
        connection.send(stream, None, b"", ending_only(status, message))
        self._report(head, self.connections[connection], status, message)

    def received(self, connection: Peer, stream: Stream, data: bytes) -> None:
        call: Call = stream.state
        try:
            if call.messages is not None:
                self._hear(call, call.messages, data, stream.ended)
            elif not stream.ended:
                self._gather(connection, stream, call, data)
            elif call.body:
                whole = call.body + data
                self._let_go(connection, call)
                self._begin(connection, stream, call, whole)
            else:
                self._begin(connection, stream, call, data)
        except (Exception, asyncio.CancelledError) as refused:
            self._refuse(connection, stream, call, refused)
            self._cancel(connection, call)

    def lost(self, connection: Peer, stream: Stream) -> None:
        call: Call | None = stream.state
        if call is not None:
            self._cancel(connection, call)

    def _gather(self, connection: Peer, stream: Stream, call: Call, data: bytes) -> None:
        """Keeps a part of a message, unless the guard of its method refuses it anyway."""
        if largest := self._largest(connection, call):
            call.body += data
            connection.unread += len(data)
            self.held.size += len(data)
            length = announced(call.body, largest)
            if length and len(call.body) > length:
                raise Refused("INVALID_ARGUMENT", "the call has to have one message, and all of it")
            if connection.unread > self._most_held:
                raise Refused("RESOURCE_EXHAUSTED", "too many messages have begun on this connection")
            if self.held.size > self.held.most:
                raise Refused("RESOURCE_EXHAUSTED", "too many messages have begun on this server")
        self._set_timer(connection, stream, call)

    def _largest(self, connection: Peer, call: Call) -> int:
        """How many bytes the message of a call may have."""
        if call.allowed is None:
            call.allowed = self._allow(call.head, self.connections[connection])
        return call.allowed

    def _begin(self, connection: Peer, stream: Stream, call: Call, data: bytes | bytearray) -> None:
        if call.allowed is None and data[:1] != _COMPRESSED:
            message = message_in(data, call.head.encoding, self._message_bytes)
        elif largest := self._largest(connection, call):
            message = message_in(data, call.head.encoding, largest)
            connection.spend(len(message) // _DECOMPRESSED_A_BYTE)
        else:
            # Its guard says why.
            message = b""
        running = self._run(call, message, self.connections[connection])
        task = asyncio.get_running_loop().create_task(running, context=self._context.copy())
        self._await(connection, stream, call, task)

    async def _run(self, call: Call, message: bytes, names: tuple[bytes, ...]) -> bytes:
        assert call.answer is not None
        call.has_begun = True
        return await call.answer(call.head, message, names)

    def _await(self, connection: Peer, stream: Stream, call: Call, task: asyncio.Task[Any]) -> None:
        call.task = task
        self.tasks.add(task)
        task.add_done_callback(partial(self._ended, connection, stream, call))
        self._set_timer(connection, stream, call)

    def _set_timer(self, connection: Peer, stream: Stream, call: Call) -> None:
        if call.head.timeout is not None and call.timer is None:
            loop = asyncio.get_running_loop()
            call.timer = loop.call_later(call.head.timeout, self._expire, connection, stream, call)

    def _expire(self, connection: Peer, stream: Stream, call: Call) -> None:
        """Ends a call whose caller does not wait any longer."""
        self._cancel(connection, call)
        self._end(connection, stream, call, "DEADLINE_EXCEEDED", "the time of the call is over")

    def _ended(self, connection: Peer, stream: Stream, call: Call, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        if call.messages is not None:
            self.talks.discard(task)
            connection.talks -= 1
        if call.timer is not None:
            call.timer.cancel()
        if task.cancelled():
            self._refuse(connection, stream, call, asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            self._refuse(connection, stream, call, error)
        elif call.messages is None:
            self._answer(connection, stream, call, task.result())
        else:
            connection.send(stream, None, b"", OK)

    def _answer(self, connection: Peer, stream: Stream, call: Call, message: bytes) -> None:
        if len(message) > self._message_bytes:
            why = too_large(len(message), self._message_bytes)
            self._refuse(connection, stream, call, Refused("RESOURCE_EXHAUSTED", why))
        else:
            connection.send(stream, BEGIN, framed(message), OK)

    def _refuse(self, connection: Peer, stream: Stream, call: Call, error: BaseException) -> None:
        trailers: tuple[Header, ...] = ()
        is_reported = False
        if isinstance(error, Refused):
            status, message, trailers = error.status, error.message, error.trailers
        elif (explained := self._explain(error)) is not None:
            status, message, trailers = explained.status, explained.message, explained.trailers
            is_reported = True
        elif isinstance(error, asyncio.CancelledError):
            is_reported = call.has_begun
            status, message = "CANCELLED", "it was given up"
            if self.leaving:
                status, message = "UNAVAILABLE", _STOPS
        else:
            context = {"message": "a call has failed beyond its method", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            status, message = "INTERNAL", "the server has a fault"
        self._end(connection, stream, call, status, message, trailers, is_reported=is_reported)

    def _end(
        self,
        connection: Peer,
        stream: Stream,
        call: Call,
        status: str,
        message: str,
        trailers: tuple[Header, ...] = (),
        *,
        is_reported: bool | None = None,
    ) -> None:
        """End a call without an answer, and report that unless its method has done so."""
        if not connection.is_unanswered(stream):
            return
        said = ending(status, message, trailers)
        connection.send(stream, None, b"", said if call.messages is not None else BEGIN + said)
        if not (call.has_begun if is_reported is None else is_reported):
            self._report(call.head, self.connections.get(connection, ()), status, message)

    def _let_go(self, connection: Peer, call: Call) -> None:
        """Keeps nothing of what a client has sent for a call."""
        if call.messages is None:
            connection.unread -= len(call.body)
            self.held.size -= len(call.body)
        call.body = bytearray()

    def _cancel(self, connection: Peer, call: Call) -> None:
        """Nobody waits for a call; until it knows, it counts as one of its connection's."""
        self._let_go(connection, call)
        if call.task is not None and not call.task.done():
            connection.unfinished += 1
            call.task.add_done_callback(partial(_is_over, connection))
            call.task.cancel()
        elif call.timer is not None:
            call.timer.cancel()

    # Conversations: many messages from either side.

    def _talk(self, connection: Peer, stream: Stream, head: Head, converse: Converse) -> None:
        call = stream.state = Call(head, None)
        call.messages = asyncio.Queue()
        connection.send(stream, BEGIN, b"", None)
        task = asyncio.create_task(self._converse(connection, stream, call.messages, converse))
        self.talks.add(task)
        connection.talks += 1
        self._await(connection, stream, call, task)

    async def _converse(
        self, connection: Peer, stream: Stream, messages: asyncio.Queue[bytes | None], converse: Converse
    ) -> None:
        async with aclosing(converse(_heard(messages))) as answers:
            async for message in answers:
                if len(stream.outgoing) - stream.gone > _MOST_UNSENT:
                    # Whoever asks on without reading what was answered is not answered on.
                    connection.abandon(stream, Code.ENHANCE_YOUR_CALM)
                if not connection.send(stream, None, framed(message), None):
                    return

    def _hear(self, call: Call, messages: asyncio.Queue[bytes | None], data: bytes, ended: bool) -> None:
        call.body += data
        while (length := announced(call.body, LONGEST_QUESTION)) and length <= len(call.body):
            if messages.qsize() >= _MOST_UNREAD:
                raise Refused("RESOURCE_EXHAUSTED", f"more than {_MOST_UNREAD} messages wait to be read")
            messages.put_nowait(message_in(bytes(call.body[:length]), call.head.encoding, LONGEST_QUESTION))
            del call.body[:length]
        if ended:
            if call.body:
                raise Refused("INVALID_ARGUMENT", "the last message is not all there")
            messages.put_nowait(None)


async def _refuse_uncertified(_head: Head, _message: bytes, _names: tuple[bytes, ...]) -> bytes:
    raise Refused("UNAUTHENTICATED", "no certificate")


async def _heard(messages: asyncio.Queue[bytes | None]) -> AsyncIterator[bytes]:
    while (message := await messages.get()) is not None:
        yield message


def _is_over(connection: Peer, _task: asyncio.Task[Any]) -> None:
    connection.unfinished -= 1
