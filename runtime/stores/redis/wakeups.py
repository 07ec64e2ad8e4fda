"""Wake-ups: hints that there may be something to claim, over one connection for all who wait in a process."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from runtime.stores.redis.connection.client import RedisClient, RedisUnavailable
from runtime.stores.redis.connection.pipelined_connection import PipelinedConnection, RedisConnectionLost

_PAUSE_S = 1.0
"""How often those who wait look for themselves where nothing tells them; the pause between two attempts."""
_CHECK_S = 30.0


class RedisWakeups:
    """The subscription of one kind of entity."""

    def __init__(self, server: RedisClient, channel: str | None) -> None:
        self._server = server
        self._channel = channel
        self._task: asyncio.Task[None] | None = None
        self._event = asyncio.Event()
        self.position = 0
        """How often something has become claimable, as far as it was heard."""
        self._seen: ContextVar[int] = ContextVar("seen", default=-1)
        """Where the last claim of a task began that found nothing: what came until then is no news to it."""
        self._is_narrowed: ContextVar[bool] = ContextVar("is_narrowed", default=False)
        self.is_heard = False

    async def open(self) -> None:
        """Start to listen; a server that is away is waited for in the background."""
        if self._channel is not None and self._task is None:
            first = self._event
            self._task = asyncio.create_task(self._listen())
            with suppress(TimeoutError):
                async with asyncio.timeout(_PAUSE_S):
                    await first.wait()

    async def close(self) -> None:
        """Stop listening."""
        # A cancel can get lost in redis-py, where it waits with asyncio.wait_for on Python 3.11: the listener
        # would then connect again and again.
        while self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_PAUSE_S)

    def found_nothing(self, position: int, *, is_narrowed: bool) -> None:
        """Note that a claim of this task, which began at a position, found nothing.

        An index is announced when it has something again. What is among others that a narrowed claim has
        passed over is not.
        """
        self._seen.set(position)
        self._is_narrowed.set(is_narrowed)

    async def wait(self, timeout_s: float) -> bool:
        """Wait for work; True as soon as there may be some."""
        if self.position != self._seen.get():
            return True
        event, is_unheard = self._event, not self.is_heard or self._is_narrowed.get()
        with suppress(TimeoutError):
            async with asyncio.timeout(min(timeout_s, _PAUSE_S) if is_unheard else timeout_s):
                await event.wait()
                return True
        return is_unheard

    def announce(self) -> None:
        """Wake all who wait."""
        self.position += 1
        self._event.set()
        self._event = asyncio.Event()

    def _receive(self, _message: Any) -> None:
        self.announce()

    async def _listen(self) -> None:
        while True:
            with suppress(RedisUnavailable, RedisConnectionLost):
                line = await self._server.listen(self._receive)
                try:
                    await self._follow(line)
                finally:
                    self.is_heard = False
                    line.close()
            self.announce()
            await asyncio.sleep(_PAUSE_S)

    async def _follow(self, line: PipelinedConnection) -> None:
        await line.ask([("SUBSCRIBE", self._channel)])
        self.is_heard = True
        # Whatever was said while nobody listened is made up for by one look.
        self.announce()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CHECK_S):
                    await line.ended.wait()
                    return
            await line.ask([("PING",)])
