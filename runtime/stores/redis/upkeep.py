"""What a store does beside its calls: waits for its server, trims what expired, and says what is wrong."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from runtime.model.system import Event
from runtime.observe.log import Log
from runtime.stores.redis.connection.line import ReplyError
from runtime.stores.redis.connection.server import Full, Unavailable
from runtime.stores.redis.entities import Entities

_PAUSE_S = 1.0
_TRIM_EVERY_S = 30.0
_SIGNATURES = 500

STORE_READY = Event("store_ready", "INFO")
STORE_UNAVAILABLE = Event("store_unavailable", "WARNING", always=True)


class Upkeep:
    """The background of one store."""

    def __init__(self, entities: Entities[Any]) -> None:
        self._entities = entities
        self._task: asyncio.Task[None] | None = None

    async def open(self, log: Log) -> None:
        """Looks whether the server is there; one that is away is waited for in the background."""
        known = {"entity": self._entities.lifecycle.entity}
        if (problem := await self.problem()) is None:
            log.write(STORE_READY, "Redis answers", fields=known)
        else:
            log.write(STORE_UNAVAILABLE, f"{problem}; it is waited for", fields=known)
        self._task = asyncio.create_task(self._trim_regularly())

    async def close(self) -> None:
        """Ends all of it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def problem(self) -> str | None:
        """None when the server answers and takes writes."""
        server = self._entities.server
        try:
            _, role = await server.ask(("PING",), ("ROLE",))
        except Unavailable as error:
            return f"Redis does not answer ({error})"
        except ReplyError as error:
            return f"Redis refuses to answer ({error})"
        return None if role[0] == "master" else "Redis is a replica and takes no writes"

    async def trim(self) -> int:
        """Forgets what has expired and sets of needs that nobody has any more; how much."""
        entities = self._entities
        trimmed = 0
        parts = next((index.parts for index in entities.kept.indexes.values() if index.parts), None)
        signatures: list[str] = []
        if parts is not None:
            (signatures,) = await entities.server.ask(("HKEYS", entities.key(parts.known)))
        while True:
            part, signatures = signatures[:_SIGNATURES], signatures[_SIGNATURES:]
            each = [{"signature": text} for text in part]
            (count,) = await entities.server.evaluate([entities.calling("trim", {}, each)], repeatable=True)
            trimmed += int(count)
            if not signatures and count < _SIGNATURES:
                return trimmed

    async def _trim_regularly(self) -> None:
        entities = self._entities
        lock = entities.key(f"trim:{entities.lifecycle.entity}")
        while True:
            await asyncio.sleep(_TRIM_EVERY_S)
            with suppress(Unavailable, Full, ReplyError):
                # Any number may trim at once; the lock only saves them the work.
                (first,) = await entities.server.ask(("SET", lock, "1", "NX", "EX", int(_TRIM_EVERY_S / 2)))
                if first is not None:
                    await self.trim()
