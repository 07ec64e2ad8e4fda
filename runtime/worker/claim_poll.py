"""A long poll that claims, for workers that reach the store through an API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Generic

from runtime.call.conditions import Failure
from runtime.stores.contract import Claimed


class ClaimPoll(Generic[Claimed]):
    """At most one poll in flight, whose answer is pushed to the worker.

    A poll is never cancelled while its answer may be on its way: what it claims would be lost.
    """

    def __init__(self, claim: Callable[[], Coroutine[Any, Any, Sequence[Claimed]]]) -> None:
        self._claim = claim
        self._task: asyncio.Task[None] | None = None
        self._undelivered: list[Claimed] = []
        self.push: Callable[[Sequence[Claimed]], bool] = lambda _: False
        """Takes what was claimed; False if the worker is shutting down."""

    @property
    def is_in_flight(self) -> bool:
        """Whether a poll may still claim something."""
        return self._task is not None and not self._task.done()

    async def wait(self, timeout_s: float) -> bool:
        """Wait for the poll, and begin one if there is none; whether it has ended."""
        if self._task is None:
            self._task = asyncio.create_task(self._poll())
        await asyncio.wait({self._task}, timeout=timeout_s)
        if not self._task.done():
            return False
        task, self._task = self._task, None
        await task
        return True

    async def drain(self, timeout_s: float) -> list[Claimed]:
        """End the poll; return what was claimed and never pushed. Nothing may be polled after that."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=timeout_s)
            self._task.cancel()
        undelivered, self._undelivered = self._undelivered, []
        return undelivered

    async def _poll(self) -> None:
        with suppress(Failure):  # The next exchange fails likewise, and the worker logs it.
            claimed = await self._claim()
            if claimed and not self.push(claimed):
                self._undelivered += claimed
