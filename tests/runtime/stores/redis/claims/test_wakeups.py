"""Wake-ups: the listener of a process, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from runtime.stores.redis.connection.client import RedisClient, RedisUnavailable
from runtime.stores.redis.connection.pipelined_connection import PipelinedConnection
from runtime.stores.redis.wakeups import RedisWakeups

PATIENCE_S = 60.0


class Forgetful:
    """A server whose client loses the first cancel while it connects, and fails to connect instead."""

    def __init__(self) -> None:
        self.connecting = asyncio.Event()
        self.cancels = 0

    async def listen(self, told: Callable[[Any], None]) -> PipelinedConnection:
        self.connecting.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancels += 1
            if self.cancels > 1:
                raise
        raise RedisUnavailable("no connection")


async def test_a_listener_ends_although_a_cancel_was_lost() -> None:
    """Closing repeats it until the listener has ended, instead of waiting for ever."""
    server = Forgetful()
    wakeups = RedisWakeups(cast("RedisClient", server), "channel")
    opening = asyncio.create_task(wakeups.open())
    async with asyncio.timeout(PATIENCE_S):
        await server.connecting.wait()
        await wakeups.close()
        await opening
    assert server.cancels >= 1
