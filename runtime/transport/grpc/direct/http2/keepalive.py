"""Keepalive: PING frames to a silent peer, and the end of a connection whose peer does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from runtime.transport.grpc.direct.http2.streams import Limits

_GRACE_S = 10.0
"""Timeout of the peer's connection preface, and of its reading what was sent before a close."""


class Keepalive:
    """The one timer of a connection: for the preface, then for keepalive pings, then for the close."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: Limits,
        send_ping: Callable[[], bool],
        abort: Callable[[], None],
    ) -> None:
        """`send_ping` sends a PING, or returns False where none is needed."""
        self._loop = loop
        self._limits = limits
        self._send_ping = send_ping
        self._abort = abort
        self.has_received = False
        """Whether the peer has sent anything since the last check."""
        self._timer: asyncio.TimerHandle | None = None

    def start_grace_period(self) -> None:
        """Abort the connection unless the peer sends its preface, or lets it close, in time."""
        self._set_timer(_GRACE_S, self._abort)

    def start(self) -> None:
        """Begin to check whether the peer is silent."""
        self._set_timer(self._limits.ping_every_s, self._check)

    def stop(self) -> None:
        """End all checks."""
        if self._timer is not None:
            self._timer.cancel()
        # No reference cycle with the connection.
        self._send_ping, self._abort = bool, _do_nothing

    def _set_timer(self, seconds: float, callback: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, callback)

    def _check(self) -> None:
        if not self.has_received and self._send_ping():
            self._set_timer(self._limits.ping_timeout_s, self._check_ping)
        else:
            self.has_received = False
            self._set_timer(self._limits.ping_every_s, self._check)

    def _check_ping(self) -> None:
        if self.has_received:
            self._check()
        else:
            self._abort()


def _do_nothing() -> None:
    pass
