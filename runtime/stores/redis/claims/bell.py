"""Hears when something may be there to be leased: one connection for all who wait in a process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from runtime.stores.redis.connection.line import Line, LineLost
from runtime.stores.redis.connection.server import Server, Unavailable

_PAUSE_S = 1.0
"""How often those who wait look for themselves while nobody listens, and how long until it is tried again."""
_CHECK_S = 30.0


class Bell:
    """Rings when a script says so on its channel; other channels have listeners of their own."""

    def __init__(self, server: Server, channel: str | None) -> None:
        self._server = server
        self._channel = channel
        self._others: dict[str, Callable[[str], None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._line: Line | None = None
        self._waiting: set[asyncio.Future[None]] = set()
        self.rings = 0
        """How often it has rung. Whoever looks notes this first, so that no ring is missed."""
        self.news = ""
        """The key of the last entity that was told of, which may be what those who wait are waiting for."""
        self.latest = 0
        """The number of the last ring; beyond all others where nobody counts them."""
        self.is_heard = False
        self.breaks = 0
        """How often something may have been said unheard."""

    def hear(self, channel: str, told: Callable[[str], None]) -> None:
        """Listens to another channel too, from when it is opened."""
        self._others[channel] = told

    async def open(self) -> None:
        """Begins to listen; a server that is away is waited for in the background."""
        if self._channel is not None and self._task is None:
            first = self.awaiting()
            self._task = asyncio.create_task(self._listen())
            with suppress(TimeoutError):
                async with asyncio.timeout(_PAUSE_S):
                    await first

    async def close(self) -> None:
        """Stops listening."""
        # A cancel can get lost in redis-py, where it waits with asyncio.wait_for on Python 3.11: the listener
        # would then connect again and again.
        while self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_PAUSE_S)

    async def heard_since(
        self, rings: int, timeout_s: float, waiting: asyncio.Future[None] | None = None
    ) -> bool:
        """Waits until it has rung since, or `waiting` is over; True if it has, or may have, rung unheard."""
        waiting = waiting or self.awaiting()
        if self.rings != rings:
            waiting.cancel()
            return True
        unheard = not self.is_heard
        seconds = min(timeout_s, _PAUSE_S) if unheard else timeout_s
        timer = asyncio.get_running_loop().call_later(seconds, _end, waiting)
        try:
            await waiting
        finally:
            timer.cancel()
        return unheard or self.rings != rings

    async def caught_up(self) -> bool:
        """Waits until all that has been said by now is heard; False if some of it may be lost."""
        breaks = self.breaks
        with suppress(LineLost):
            if self._line is not None:
                await self._line.ask([("PING",)])
                return breaks == self.breaks
        return False

    def awaiting(self) -> asyncio.Future[None]:
        """What is over when it rings."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        waiting.add_done_callback(self._waiting.discard)
        return waiting

    def ring(self, news: str = "") -> None:
        """Wakes everybody who waits; `news` is the number of the ring and a key."""
        number, _, self.news = news.partition(" ")
        self.rings += 1
        self.latest = int(number) if number.isdecimal() and int(number) else sys.maxsize
        for waiting in self._waiting.copy():
            _end(waiting)

    def _told(self, message: Any) -> None:
        _, channel, news = message
        told = self._others.get(channel, self.ring)
        told(news)

    async def _listen(self) -> None:
        while True:
            with suppress(Unavailable, LineLost):
                line = await self._server.listen(self._told)
                try:
                    await line.ask([("SUBSCRIBE", each) for each in (self._channel, *self._others)])
                    self._line, self.is_heard = line, True
                    # Whatever was said while nobody listened is made up for by one look.
                    self.ring()
                    while True:
                        with suppress(TimeoutError):
                            async with asyncio.timeout(_CHECK_S):
                                await line.ended.wait()
                                break
                        await line.ask([("PING",)])
                finally:
                    self._line, self.is_heard = None, False
                    self.breaks += 1
                    line.close()
            self.ring()
            await asyncio.sleep(_PAUSE_S)


def _end(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
