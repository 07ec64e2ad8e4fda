"""The census of entities whose keys no spec names: how many are in each state, read when a scrape asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from runtime.model.lifecycles import Lifecycle
from runtime.stores.redis.connection.client import RedisClient, RedisUnavailable
from runtime.stores.redis.connection.pipelined_connection import ReplyError
from runtime.stores.redis.layout import KeyLayout


class RedisCensus:
    """What Redis said last; while it is away that stands."""

    def __init__(self, server: RedisClient, lifecycle: Lifecycle, layout: KeyLayout) -> None:
        self._server, self._lifecycle = server, lifecycle
        self._keys = {name: layout.listed_key(state) for state, name in lifecycle.states.items()}
        self._rows: list[tuple[str, str, int, float]] = []

    def census(self) -> list[tuple[str, str, int, float]]:
        """Return how many entities there are in each state, and how old the oldest is."""
        return self._rows

    async def refresh(self) -> None:
        """Read the numbers anew, in one exchange."""
        asked = [tuple(each) for key in self._keys.values() for each in _questions(key)]
        with suppress(RedisUnavailable, ReplyError):
            (seconds, fraction), *answers = await self._server.ask_at_once(("TIME",), *asked)
            now = int(seconds) * 1_000_000 + int(fraction)
            self._rows = [*self._count(now, answers)]

    def _count(self, now: int, answers: list[object]) -> Iterator[tuple[str, str, int, float]]:
        for place, name in enumerate(self._keys):
            count, first = answers[2 * place : 2 * place + 2]
            age = 0.0
            if isinstance(first, list) and first and self._lifecycle.listed_by:
                age = max(0.0, now - float(first[1])) / 1e6
            yield self._lifecycle.entity, name, int(str(count)), age


def _questions(key: str) -> Iterator[tuple[str | int, ...]]:
    yield "ZCARD", key
    yield "ZRANGE", key, 0, 0, "WITHSCORES"
