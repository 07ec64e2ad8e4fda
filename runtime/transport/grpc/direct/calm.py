"""When enough is enough: clients that ask too often, and clients that are not there any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from runtime.transport.grpc.direct.frames import Broken, Code
from runtime.transport.grpc.direct.streams import Limits

_ODD_FRAMES = 4_000
"""Frames a second that bring nothing forward: an honest client sends a few for each call."""
_PING_STRIKES = 2
_PATIENCE_S = 10.0
"""How long a client may take for its first words, and for reading our last."""


class Restraint:
    """Ends connections on which next to nothing happens, very often."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: Limits) -> None:
        self._now = loop.time
        self._shortest_ping_s = limits.shortest_ping_s
        self._odd = 0
        self._odd_since = self._now()
        self._pinged_at = -limits.shortest_ping_s
        self._strikes = 0

    def odd(self, weight: int = 1) -> None:
        """A frame came that brings nothing forward; `weight` is for one that is more work than others."""
        self._odd += weight
        if self._odd > _ODD_FRAMES:
            now = self._now()
            if now - self._odd_since < 1.0:
                raise Broken(Code.ENHANCE_YOUR_CALM, "too many frames that bring nothing forward")
            self._odd, self._odd_since = 0, now

    def pinged(self, answered: bool) -> None:
        """A client asks whether we are here; `answered` is whether it has heard of us since it last asked."""
        now = self._now()
        if answered:
            self._strikes = 0
        else:
            self.odd()
            if now - self._pinged_at < self._shortest_ping_s:
                self._strikes += 1
                if self._strikes > _PING_STRIKES:
                    # Clients of gRPC know these words, and ask less often after them.
                    raise Broken(Code.ENHANCE_YOUR_CALM, "too_many_pings")
        self._pinged_at = now


class Vigil:
    """Asks a client that has been silent for long whether it is there, and gives up one that is not."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: Limits,
        ask: Callable[[], bool],
        give_up: Callable[[], None],
    ) -> None:
        """`ask` sends a ping, or tells that nobody has to be asked."""
        self._loop = loop
        self._limits = limits
        self._ask = ask
        self._give_up = give_up
        self.heard = False
        """Whether the client has said something since it was last looked at."""
        self._timer: asyncio.TimerHandle | None = None

    def hurry(self) -> None:
        """The client has to introduce itself, or to take its leave, soon."""
        self._set(_PATIENCE_S, self._give_up)

    def begin(self) -> None:
        """The client has introduced itself."""
        self._set(self._limits.ping_every_s, self._look)

    def end(self) -> None:
        """Nobody is there to be asked."""
        if self._timer is not None:
            self._timer.cancel()
        # Whoever is told by these is not kept by them.
        self._ask, self._give_up = bool, _nothing

    def _set(self, seconds: float, then: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, then)

    def _look(self) -> None:
        if not self.heard and self._ask():
            self._set(self._limits.ping_timeout_s, self._judge)
        else:
            self.heard = False
            self._set(self._limits.ping_every_s, self._look)

    def _judge(self) -> None:
        if self.heard:
            self._look()
        else:
            self._give_up()


def _nothing() -> None:
    pass
