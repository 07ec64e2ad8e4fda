"""Hears when something may be there to be leased: one subscription for all who wait in a process."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from runtime.redis.line import LineLost
from runtime.redis.server import Server, Unavailable

_PAUSE_S = 1.0
"""How often those who wait look for themselves while nobody listens, and how long until it is tried again."""
_CHECK_S = 30.0


class Bell:
    """Rings when a script says so on its channel."""

    def __init__(self, server: Server, channel: str | None) -> None:
        self._server = server
        self._channel = channel
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self.rings = 0
        """How often it has rung. Whoever looks notes this first, so that no ring is missed."""
        self.news = ""
        """The key of the last entity that was told of, which may be what those who wait are waiting for."""
        self.is_heard = False

    async def open(self) -> None:
        """Begins to listen; a server that is away is waited for in the background."""
        if self._channel is not None and self._task is None:
            self._task = asyncio.create_task(self._listen())
            with suppress(TimeoutError):
                async with asyncio.timeout(_PAUSE_S):
                    await self._news.wait()

    async def close(self) -> None:
        """Stops listening."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def heard_since(self, rings: int, timeout_s: float) -> bool:
        """Waits until it has rung since; True then, and also when it may have rung unheard."""
        if self.rings != rings:
            return True
        unheard = not self.is_heard
        with suppress(TimeoutError):
            async with asyncio.timeout(min(timeout_s, _PAUSE_S) if unheard else timeout_s):
                await self._news.wait()
        return unheard or self.rings != rings

    def ring(self, message: Any = None) -> None:
        """Wakes everybody who waits."""
        self.rings += 1
        self.news = message[2] if message else ""
        self._news.set()
        self._news = asyncio.Event()

    async def _listen(self) -> None:
        while True:
            with suppress(Unavailable, LineLost):
                line = await self._server.listen(self.ring)
                try:
                    await line.ask([("SUBSCRIBE", self._channel)])
                    self.is_heard = True
                    # Whatever was said while nobody listened is made up for by one look.
                    self.ring()
                    while True:
                        with suppress(TimeoutError):
                            async with asyncio.timeout(_CHECK_S):
                                await line.ended.wait()
                                break
                        await line.ask([("PING",)])
                finally:
                    self.is_heard = False
                    line.close()
            self.ring()
            await asyncio.sleep(_PAUSE_S)
