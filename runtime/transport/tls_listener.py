"""Accepts connections over TLS, and logs each handshake that fails."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable

from runtime.observe import log as events
from runtime.observe.log import Log
from runtime.transport.tls import CertificateFiles

_HANDSHAKE_SECONDS = 10.0
_GOODBYE_SECONDS = 2.0
"""Timeout for a client to close its side of TLS."""
_PAUSE_SECONDS = 1.0
"""Pause before the next accept after one failed, as without free file descriptors."""


class TlsListener:
    """Accepts connections and does their handshakes.

    The server that asyncio has drops a connection whose handshake fails without a word.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        make: Callable[[], asyncio.Protocol],
        log: Log,
        has_room: Callable[[int], bool],
        files: CertificateFiles | None = None,
    ) -> None:
        """`has_room` is whether one connection more is taken beside so many whose handshakes are under way:
        a client that never ends its handshake holds a socket like any other. `files` are followed when they
        change.
        """
        self._files = files
        self._has_room = has_room
        self._context = context
        self._make = make
        self._log = log
        self._accepting: asyncio.Task[None] | None = None
        self._handshakes: set[asyncio.Task[None]] = set()

    def start(self, listener: socket.socket, backlog: int) -> None:
        """Begin to accept connections at a socket that is bound."""
        listener.setblocking(False)
        listener.listen(backlog)
        self._accepting = asyncio.get_running_loop().create_task(self._accept(listener))

    def close(self) -> None:
        """Accept no more, and give up the handshakes that are under way."""
        if self._accepting is not None:
            self._accepting.cancel()
        for handshake in self._handshakes:
            handshake.cancel()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with listener:
            while True:
                try:
                    client, _ = await loop.sock_accept(listener)
                except ConnectionError:
                    continue  # The client has gone while it waited.
                except OSError as error:
                    self._log.write(events.ACCEPT_FAILED, f"no connection can be accepted: {error}")
                    await asyncio.sleep(_PAUSE_SECONDS)
                    continue
                if not self._has_room(len(self._handshakes)):
                    client.close()
                    continue
                handshake = loop.create_task(self._shake_hands(client))
                self._handshakes.add(handshake)
                handshake.add_done_callback(self._handshakes.discard)

    async def _shake_hands(self, client: socket.socket) -> None:
        peer = _name_of(client)
        if self._files is not None and (renewed := self._files.read_if_changed()) is not None:
            renewed.renew(self._context)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._make,
                client,
                ssl=self._context,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=_GOODBYE_SECONDS,
            )
        except (ConnectionResetError, BrokenPipeError):
            # Mostly a client that wanted to know whether the port is open.
            message = "a client has gone before the end of its handshake"
            self._log.write(events.HANDSHAKE_LEFT, message, fields={"peer": peer})
        except OSError as error:
            message = f"a client was refused: {_reason_of(error)}"
            self._log.write(events.HANDSHAKE_FAILED, message, fields={"peer": peer})


def _name_of(client: socket.socket) -> str | None:
    try:
        host, port, *_ = client.getpeername()
    except OSError:
        return None
    return f"{host}:{port}"


def _reason_of(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not good: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    return str(error)
