"""One connection: whoever asks at the same time shares it, and answers come in the order of the questions."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, cast

import hiredis

from runtime.stores.redis.connection.address import RedisAddress

COMMAND_S = 5.0
"""How long a command may take. All of ours are short, so whatever has no answer then has lost its server."""
_WATCH_S = 1.0

Command = Sequence[Any]
NOTHING_YET = object()
"""What a reader gives until an answer is there as a whole."""


class ReplyError(Exception):
    """What the server answered instead of a result."""


class RedisConnectionLost(Exception):
    """The connection ended. `sent` says that the server may have carried out what was asked."""

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


def answers_reader() -> hiredis.Reader:
    """Takes what a server sends apart."""
    return hiredis.Reader(
        replyError=ReplyError,
        encoding="utf-8",
        errors="surrogateescape",
        notEnoughData=NOTHING_YET,
    )


class Asking(Protocol):
    """A connection that can be asked, whichever way it waits for answers."""

    @property
    def is_open(self) -> bool: ...

    def ask(self, commands: Sequence[Command]) -> Awaitable[list[Any]]:
        """Sends commands together; their answers in order, an error among them where one was refused."""
        ...

    def close(self) -> None: ...


class _Asked:
    __slots__ = ("answers", "at", "future", "wanted")

    def __init__(self, future: asyncio.Future[list[Any]], wanted: int, at: float) -> None:
        self.future = future
        self.wanted = wanted
        self.at = at
        self.answers: list[Any] = []


class PipelinedConnection(asyncio.Protocol):
    """One connection to the server."""

    def __init__(self, told: Callable[[Any], None] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader = answers_reader()
        self._waiting: deque[_Asked] = deque()
        self._transport: asyncio.Transport | None = None
        self._told = told
        self._watch: asyncio.TimerHandle | None = None
        self.ended = asyncio.Event()

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def ask(self, commands: Sequence[Command]) -> asyncio.Future[list[Any]]:
        """Sends commands together; their answers in order, an error among them where one was refused."""
        future: asyncio.Future[list[Any]] = self._loop.create_future()
        transport = self._transport
        if transport is None or transport.is_closing():
            future.set_exception(RedisConnectionLost("it is closed", sent=False))
            return future
        packed = [hiredis.pack_command(tuple(each)) for each in commands]
        transport.write(packed[0] if len(packed) == 1 else b"".join(packed))
        self._waiting.append(_Asked(future, len(commands), self._loop.time()))
        return future

    def close(self) -> None:
        """Ends it at once."""
        if self._transport is not None:
            self._transport.abort()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._watch = self._loop.call_later(_WATCH_S, self._look)

    def data_received(self, data: bytes) -> None:
        reader, waiting = self._reader, self._waiting
        reader.feed(data)
        while (answer := reader.gets()) is not NOTHING_YET:
            if self._told is not None and isinstance(answer, list) and answer[0] == "message":
                self._told(answer)
                continue
            if not waiting:
                continue
            asked = waiting[0]
            asked.answers.append(answer)
            if len(asked.answers) == asked.wanted:
                waiting.popleft()
                if not asked.future.done():
                    asked.future.set_result(asked.answers)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        while self._waiting:
            asked = self._waiting.popleft()
            if not asked.future.done():
                asked.future.set_exception(RedisConnectionLost(str(exc or "the server closed it"), sent=True))
        self.ended.set()

    def _look(self) -> None:
        """Gives the connection up when the oldest question has waited for too long."""
        if self._waiting and self._waiting[0].at + COMMAND_S < self._loop.time():
            self.close()
        self._watch = self._loop.call_later(_WATCH_S, self._look)


async def connected(
    address: RedisAddress, name: str, told: Callable[[Any], None] | None = None
) -> PipelinedConnection:
    """A new connection, introduced to the server. Raises OSError, ReplyError or RedisConnectionLost."""
    loop = asyncio.get_running_loop()

    def make() -> PipelinedConnection:
        return PipelinedConnection(told)

    if address.path is not None:
        _, line = await loop.create_unix_connection(make, address.path)
    else:
        host, port = await address.master()
        _, line = await loop.create_connection(
            make, host, port, ssl=address.tls, server_hostname=host if address.tls else None
        )
    await introduced(line, address, name)
    return line


async def introduced(line: Asking, address: RedisAddress, name: str) -> None:
    """Says who asks, and for which database; a connection that is refused is closed."""
    greetings: list[Command] = []
    if address.password is not None:
        greetings.append(("AUTH", *([address.user] if address.user else []), address.password))
    if address.database:
        greetings.append(("SELECT", str(address.database)))
    greetings.append(("CLIENT", "SETNAME", "".join(c if c.isalnum() or c in "-_." else "-" for c in name)))
    try:
        for answer in await line.ask(greetings):
            if isinstance(answer, ReplyError):
                raise answer
    except BaseException:
        line.close()
        raise
