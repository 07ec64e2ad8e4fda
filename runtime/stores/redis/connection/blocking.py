"""Redis for whoever has no event loop: the same store, over a socket that is waited for on the spot.

All that the store awaits of such a server is there when it is asked for, so its coroutines never wait.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import hiredis

from runtime.stores.redis.connection.address import RedisAddress
from runtime.stores.redis.connection.client import (
    CONNECT_S,
    NOT_CONNECTED,
    PATIENCE_S,
    RedisClient,
    RedisUnavailable,
    ScriptCall,
)
from runtime.stores.redis.connection.pipelined_connection import (
    COMMAND_S,
    NOTHING_YET,
    Asking,
    Command,
    RedisConnectionLost,
    ReplyError,
    answers_reader,
    introduced,
)

_READ = 1 << 16
_LOOK_S = 0.0002
"""How long an answer is looked for before the process goes to sleep. To fall asleep and be woken takes longer
than an answer of a server nearby, and as much of the processor."""
_UNSEEN = 64
"""How many answers at most are not looked for after one that took longer. It is one after the first: a server
nearby stalls now and then, and to sleep for all that follow would cost more than the stall."""
_LIMIT = struct.pack("@ll", int(COMMAND_S), int(COMMAND_S % 1 * 1_000_000))
"""How long a read or a write may take, as the kernel has it."""


class BlockingLine:
    """One connection, for one exchange after the other."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._reader = answers_reader()
        self._process = os.getpid()
        self._closed = False
        # An encrypted connection has pieces of its own, which cannot be looked for.
        self._unseen = sys.maxsize if isinstance(connected, ssl.SSLSocket) else 0
        """How many pieces are waited for without looking."""
        self._missed = 1
        """How many will not be looked for once one takes longer."""
        self._piece = bytearray(_READ)

    @property
    def is_open(self) -> bool:
        # A fork has the same socket; two processes that read from it would get each other's answers.
        return not self._closed and self._process == os.getpid()

    async def ask(self, commands: Sequence[Command]) -> list[Any]:
        """Sends commands together; their answers in order, an error among them where one was refused."""
        if not self.is_open:
            raise RedisConnectionLost("it is closed", sent=False)
        packed = [hiredis.pack_command(tuple(each)) for each in commands]
        return self._exchanged(packed[0] if len(packed) == 1 else b"".join(packed), len(packed))

    def ask_one(self, command: tuple[Any, ...]) -> Any:
        """Sends one command where it is known to be open; its answer, or an error if it was refused."""
        return self._exchanged(hiredis.pack_command(command), 1)[0]

    def _exchanged(self, packed: bytes, wanted: int) -> list[Any]:
        try:
            self._socket.sendall(packed)
            return self._answers(wanted)
        except (OSError, hiredis.HiredisError) as error:
            self.close()
            raise RedisConnectionLost(str(error) or type(error).__name__, sent=True) from None
        except BaseException:
            # Whoever asks next must not be given what is still to come.
            self.close()
            raise

    def close(self) -> None:
        """Ends it at once."""
        self._closed = True
        self._socket.close()

    def _answers(self, wanted: int) -> list[Any]:
        reader, piece, until = self._reader, self._piece, 0.0
        found: list[Any] = []
        while True:
            size = self._received()
            if not size:
                raise RedisConnectionLost("the server closed it", sent=True)
            reader.feed(piece, 0, size)  # type: ignore[arg-type]  # It takes any buffer.
            while (answer := reader.gets()) is not NOTHING_YET:
                found.append(answer)
                if len(found) == wanted:
                    return found
            # What comes in one piece, as nearly everything does, needs no clock.
            until = until or time.monotonic() + COMMAND_S
            if time.monotonic() > until:
                raise TimeoutError("the answer takes too long")

    def _received(self) -> int:
        """How many bytes the next piece has."""
        receive, piece = self._socket.recv_into, self._piece
        if self._unseen:
            self._unseen -= 1
            return receive(piece)
        clock = time.monotonic
        until = clock() + _LOOK_S
        while True:
            try:
                size = receive(piece, 0, socket.MSG_DONTWAIT)
            except BlockingIOError:
                if clock() < until:
                    continue
                # The server is busy or far away, perhaps for some time.
                self._unseen, self._missed = self._missed, min(2 * self._missed, _UNSEEN)
                return receive(piece)
            self._missed = 1
            return size


class BlockingRedisClient(RedisClient):
    """One Redis as one thread sees it. Nobody can listen there: that takes an event loop."""

    waits_on_the_spot = True

    async def evaluate_one(self, ask: Callable[[bool], ScriptCall]) -> Any:
        line = self._lines.get("main")
        if isinstance(line, BlockingLine) and line.is_open and not self._closed_until:
            began = time.monotonic()
            try:
                answer = line.ask_one(ask(False).by_digest())
            except RedisConnectionLost as lost:
                if time.monotonic() >= began + PATIENCE_S:
                    raise RedisUnavailable(str(lost), unknown=True) from None
                return await self._evaluate_again(ask(True))
            else:
                if not isinstance(answer, ReplyError):
                    return answer
        # Whatever is out of the ordinary goes the long way, from its beginning.
        return await super().evaluate_one(ask)

    async def _rest(self, seconds: float) -> None:
        time.sleep(seconds)

    async def _line(self, name: str) -> Asking:
        if (before := self._lines.pop(name, None)) is not None:
            before.close()  # In a fork this leaves the connection to whoever made it.
        try:
            line = BlockingLine(_connected(self._address))
            await introduced(line, self._address, self._name)
        except NOT_CONNECTED as error:
            raise RedisUnavailable(f"{type(error).__name__}: {error}") from None
        self._lines[name] = line
        return line


def _connected(address: RedisAddress) -> socket.socket:
    if address.path is not None:
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(CONNECT_S)
        try:
            made.connect(address.path)
        except BaseException:
            made.close()
            raise
    else:
        host, port = address.master_at_once()
        made = socket.create_connection((host, port), timeout=CONNECT_S)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if address.tls is not None:
            made = address.tls.wrap_socket(made, server_hostname=host)
    if address.tls is not None:
        made.settimeout(COMMAND_S)
    else:
        # With a limit of Python's own there would be a call of the system more for each that reads or writes.
        made.settimeout(None)
        for limit in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            made.setsockopt(socket.SOL_SOCKET, limit, _LIMIT)
    return made
