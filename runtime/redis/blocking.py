"""Redis for whoever has no event loop: the same store, over a socket that is waited for on the spot.

All that the store awaits of such a server is there when it is asked for, so its coroutines never wait.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from typing import Any

import hiredis

from runtime.redis.address import Address
from runtime.redis.line import COMMAND_S, NOTHING_YET, Asking, Command, LineLost, answers_reader, introduced
from runtime.redis.server import CONNECT_S, NOT_CONNECTED, Server, Unavailable

_READ = 1 << 16


class BlockingLine:
    """One connection, for one exchange after the other."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._reader = answers_reader()
        self._process = os.getpid()
        self._closed = False

    @property
    def is_open(self) -> bool:
        # A fork has the same socket; two processes that read from it would get each other's answers.
        return not self._closed and self._process == os.getpid()

    async def ask(self, commands: Sequence[Command]) -> list[Any]:
        """Sends commands together; their answers in order, an error among them where one was refused."""
        if not self.is_open:
            raise LineLost("it is closed", sent=False)
        packed = [hiredis.pack_command(tuple(each)) for each in commands]
        try:
            self._socket.sendall(packed[0] if len(packed) == 1 else b"".join(packed))
            return self._answers(len(packed))
        except (OSError, hiredis.HiredisError) as error:
            self.close()
            raise LineLost(str(error) or type(error).__name__, sent=True) from None
        except BaseException:
            # Whoever asks next must not be given what is still to come.
            self.close()
            raise

    def close(self) -> None:
        """Ends it at once."""
        self._closed = True
        self._socket.close()

    def _answers(self, wanted: int) -> list[Any]:
        reader, found = self._reader, list[Any]()
        until = time.monotonic() + COMMAND_S
        while True:
            data = self._socket.recv(_READ)
            if not data:
                raise LineLost("the server closed it", sent=True)
            reader.feed(data)
            while (answer := reader.gets()) is not NOTHING_YET:
                found.append(answer)
            if len(found) >= wanted:
                return found
            if time.monotonic() > until:
                raise TimeoutError("the answer takes too long")


class BlockingServer(Server):
    """One Redis as one thread sees it. Nobody can listen there: that takes an event loop."""

    async def _rest(self, seconds: float) -> None:
        time.sleep(seconds)

    async def _line(self, name: str) -> Asking:
        if (before := self._lines.pop(name, None)) is not None:
            before.close()  # In a fork this leaves the connection to whoever made it.
        try:
            line = BlockingLine(_connected(self._address))
            await introduced(line, self._address, self._name)
        except NOT_CONNECTED as error:
            raise Unavailable(f"{type(error).__name__}: {error}") from None
        self._lines[name] = line
        return line


def _connected(address: Address) -> socket.socket:
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
    made.settimeout(COMMAND_S)
    return made
