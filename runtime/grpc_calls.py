"""Calls of gRPC on the connections of a server: from messages to methods, and from answers to the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

from runtime.conditions import CONDITION_HEADER, Condition, Failure
from runtime.eager import detached
from runtime.grpc_messages import (
    BEGIN,
    OK,
    Head,
    Refused,
    announced,
    ending,
    ending_only,
    framed,
    message_in,
)
from runtime.http2.connection import Connection
from runtime.http2.frames import Code
from runtime.http2.headers import Header
from runtime.http2.streams import Stream

Answer = Callable[[Head, bytes, tuple[bytes, ...]], Coroutine[Any, Any, bytes]]
"""A message for a message, with the headers of the call and the names that the caller's certificate has."""
Converse = Callable[[AsyncIterator[bytes]], AsyncGenerator[bytes, None]]
"""Messages for messages."""
Peer = Connection[Head]

_CONDITION = CONDITION_HEADER.encode()
_MOST_UNREAD = 16
"""Messages of a conversation that may wait to be read."""
_LONGEST_SAID = 4096
"""Of those messages, which ask for a service or a name."""
_MOST_UNSENT = 2**20
"""Bytes that a conversation may have answered and its client not have taken."""


class Call:
    """A call that is being received or answered."""

    __slots__ = ("answer", "body", "head", "messages", "task", "timer")

    def __init__(self, head: Head, answer: Answer | None) -> None:
        self.head = head
        self.answer = answer
        self.body = bytearray()
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
        *,
        message_bytes: int,
        connections: int,
        most_held: int,
    ) -> None:
        """`names` has the names in the certificate of whoever is on the other end."""
        self._answers = answers
        self._conversations = conversations
        self._names = names
        self._message_bytes = message_bytes
        self._most_connections = connections
        self._most_held = most_held
        self.leaving = False
        """Whether the server is about to stop."""
        self.connections: dict[Peer, tuple[bytes, ...]] = {}
        self.tasks: set[asyncio.Task[Any]] = set()
        self.talks: set[asyncio.Task[Any]] = set()
        """Those of the tasks that may go on for as long as the server does."""

    def head(self, headers: list[Header]) -> Head:
        return Head(headers)

    def connected(self, connection: Peer) -> bool:
        if self.leaving or len(self.connections) >= self._most_connections:
            return False
        self.connections[connection] = self._names(connection.transport)
        return True

    def disconnected(self, connection: Peer) -> None:
        self.connections.pop(connection, None)

    def opened(self, connection: Peer, stream: Stream, head: Head) -> None:
        answer = self._answers.get(head.path)
        if answer is not None and head.refused is None:
            stream.state = Call(head, answer)
        elif head.refused is not None:
            connection.send(stream, None, b"", head.refused)
        elif (converse := self._conversations.get(head.path)) is not None:
            self._talk(connection, stream, head, converse)
        else:
            path = head.path.decode(errors="replace")
            connection.send(stream, None, b"", ending_only("UNIMPLEMENTED", f"no method {path}"))

    def received(self, connection: Peer, stream: Stream, data: bytes) -> None:
        call: Call = stream.state
        try:
            if call.messages is not None:
                self._hear(call, call.messages, data, stream.ended)
            elif not stream.ended:
                self._gather(connection, stream, call, data)
            elif call.body:
                whole = call.body + data
                _let_go(connection, call)
                self._begin(connection, stream, call, whole)
            else:
                self._begin(connection, stream, call, data)
        except (Exception, asyncio.CancelledError) as refused:
            self._refuse(connection, stream, call, refused)
            _cancel(connection, call)

    def lost(self, connection: Peer, stream: Stream) -> None:
        call: Call | None = stream.state
        if call is not None:
            _cancel(connection, call)

    def _gather(self, connection: Peer, stream: Stream, call: Call, data: bytes) -> None:
        """Keeps a part of a message."""
        call.body += data
        connection.unread += len(data)
        length = announced(call.body, self._message_bytes)
        if length and len(call.body) > length:
            raise Refused("INVALID_ARGUMENT", "the call has to have one message, and all of it")
        if connection.unread > self._most_held:
            raise Refused("RESOURCE_EXHAUSTED", "too many messages have begun on this connection")
        self._set_timer(connection, stream, call)

    def _begin(self, connection: Peer, stream: Stream, call: Call, data: bytes | bytearray) -> None:
        assert call.answer is not None
        message = message_in(data, call.head.encoding, self._message_bytes)
        answered = detached(call.answer(call.head, message, self.connections[connection]))
        if isinstance(answered, asyncio.Task):
            self._await(connection, stream, call, answered)
        else:
            self._answer(connection, stream, answered)

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
        _cancel(connection, call)
        self._end(connection, stream, call, ending("DEADLINE_EXCEEDED", "the time of the call is over"))

    def _ended(self, connection: Peer, stream: Stream, call: Call, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        self.talks.discard(task)
        if call.timer is not None:
            call.timer.cancel()
        if task.cancelled():
            self._refuse(connection, stream, call, asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            self._refuse(connection, stream, call, error)
        elif call.messages is None:
            self._answer(connection, stream, task.result())
        else:
            self._end(connection, stream, call, OK)

    def _answer(self, connection: Peer, stream: Stream, message: bytes) -> None:
        if len(message) > self._message_bytes:
            why = f"the answer has {len(message)} bytes, and may have {self._message_bytes}"
            connection.send(stream, None, b"", ending_only("RESOURCE_EXHAUSTED", why))
        else:
            connection.send(stream, BEGIN, framed(message), OK)

    def _refuse(self, connection: Peer, stream: Stream, call: Call, error: BaseException) -> None:
        if isinstance(error, Refused):
            trailers = ending(error.status, error.message)
        elif isinstance(error, Failure):
            named = ((_CONDITION, error.code.encode()),) if isinstance(error, Condition) else ()
            trailers = ending(error.grpc, error.message, named)
        elif isinstance(error, asyncio.CancelledError):
            ended = ("UNAVAILABLE", "the server stops") if self.leaving else ("CANCELLED", "it was given up")
            trailers = ending(*ended)
        else:
            context = {"message": "a call has failed beyond its method", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            trailers = ending("INTERNAL", "the server has a fault")
        self._end(connection, stream, call, trailers)

    def _end(self, connection: Peer, stream: Stream, call: Call, trailers: bytes) -> None:
        begun = call.messages is not None
        connection.send(stream, None, b"", trailers if begun else BEGIN + trailers)

    # Conversations: many messages from either side.

    def _talk(self, connection: Peer, stream: Stream, head: Head, converse: Converse) -> None:
        call = stream.state = Call(head, None)
        call.messages = asyncio.Queue()
        connection.send(stream, BEGIN, b"", None)
        task = asyncio.create_task(self._converse(connection, stream, call.messages, converse))
        self.talks.add(task)
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
        while (length := announced(call.body, _LONGEST_SAID)) and length <= len(call.body):
            if messages.qsize() >= _MOST_UNREAD:
                raise Refused("RESOURCE_EXHAUSTED", f"more than {_MOST_UNREAD} messages wait to be read")
            messages.put_nowait(message_in(bytes(call.body[:length]), call.head.encoding, _LONGEST_SAID))
            del call.body[:length]
        if ended:
            if call.body:
                raise Refused("INVALID_ARGUMENT", "the last message is not all there")
            messages.put_nowait(None)


async def _heard(messages: asyncio.Queue[bytes | None]) -> AsyncIterator[bytes]:
    while (message := await messages.get()) is not None:
        yield message


def _let_go(connection: Peer, call: Call) -> None:
    """Keeps nothing of what a client has sent for a call."""
    if call.messages is None:
        connection.unread -= len(call.body)
    call.body = bytearray()


def _cancel(connection: Peer, call: Call) -> None:
    """Nobody waits for a call; until it knows, it counts as one of its connection's."""
    _let_go(connection, call)
    if call.task is not None and not call.task.done():
        connection.unfinished += 1
        call.task.add_done_callback(partial(_is_over, connection))
        call.task.cancel()
    elif call.timer is not None:
        call.timer.cancel()


def _is_over(connection: Peer, _task: asyncio.Task[Any]) -> None:
    connection.unfinished -= 1
