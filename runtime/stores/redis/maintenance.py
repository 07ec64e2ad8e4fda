"""Maintenance beside the calls of a store: wait for its server, trim what expired, and say what is wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from runtime.call.conditions import Failure
from runtime.model.system import Event
from runtime.observe.log import Log
from runtime.stores.redis.connection.client import Full, RedisClient, RedisUnavailable
from runtime.stores.redis.connection.pipelined_connection import ReplyError

_TRIM_EVERY_S = 30.0

STORE_READY = Event("store_ready", "INFO")
STORE_UNAVAILABLE = Event("store_unavailable", "WARNING", always=True)


class RedisMaintenance:
    """The background of one store."""

    def __init__(
        self, server: RedisClient, entity: str, lock: str, trim: Callable[[], Awaitable[int]]
    ) -> None:
        self._server = server
        self._entity = entity
        self._lock = lock
        self._trim = trim
        self._task: asyncio.Task[None] | None = None

    async def open(self, log: Log) -> None:
        """Look whether the server is there; one that is away is waited for in the background."""
        known = {"entity": self._entity}
        if (problem := await self.find_problem()) is None:
            log.write(STORE_READY, "Redis answers", fields=known)
        else:
            log.write(STORE_UNAVAILABLE, f"{problem}; it is waited for", fields=known)
        self._task = asyncio.create_task(self._trim_regularly())

    async def close(self) -> None:
        """End all of it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def find_problem(self) -> str | None:
        """Return why the server cannot be used; None when it answers and takes writes."""
        try:
            _, role = await self._server.ask(("PING",), ("ROLE",))
        except RedisUnavailable as error:
            return f"Redis does not answer ({error})"
        except ReplyError as error:
            return f"Redis refuses to answer ({error})"
        return None if role[0] == "master" else "Redis is a replica and takes no writes"

    async def _trim_regularly(self) -> None:
        while True:
            await asyncio.sleep(_TRIM_EVERY_S)
            with suppress(RedisUnavailable, Full, ReplyError, Failure):
                # Any number may trim at once; the lock only saves them the work.
                lock = ("SET", self._lock, "1", "NX", "EX", int(_TRIM_EVERY_S / 2))
                (is_first,) = await self._server.ask(lock)
                if is_first is not None:
                    await self._trim()
