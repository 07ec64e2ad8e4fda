"""Calls that wait at the same moment share one statement."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

Run = Callable[[Sequence[Item]], Awaitable[Sequence[Outcome | Exception]]]
"""Does something for all items at once; an outcome or an error for each, in their order."""


class Batch(Generic[Item, Outcome]):
    """Gathers items while statements are under way, and sends all that wait in the next one.

    The first item of a quiet moment goes at once, so that nobody waits for company. `lanes` is how many
    statements are under way at a time. Where a round trip takes hardly longer than a turn of the event loop,
    `eager` saves the first item those turns: whoever else asks in the same moment comes in the next
    statement, and a first asker who goes away takes its statement along.
    """

    def __init__(
        self, run: Run[Item, Outcome], *, most: int = 200, lanes: int = 1, eager: bool = False
    ) -> None:
        self._run = run
        self._most = most
        self._lanes = lanes
        self._waiting: deque[tuple[Item, asyncio.Future[Outcome]]] = deque()
        self._under_way: set[asyncio.Task[None]] = set()
        self._due = False
        self._eager = eager
        self._alone = False

    async def __call__(self, item: Item) -> Outcome:
        if self._eager and not (self._alone or self._under_way or self._due or self._waiting):
            # In the turn in which it was asked for, and in no coroutine of its own.
            self._alone = True
            try:
                (outcome,) = await self._run([item])
            finally:
                self._alone = False
                if self._waiting and not self._due:
                    self._begin()
            if isinstance(outcome, Exception):
                raise outcome
            return outcome
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        self._waiting.append((item, future))
        if not self._due and len(self._under_way) + self._alone < self._lanes:
            # Not at once: whoever else asks in this very moment comes along.
            self._due = True
            loop.call_soon(self._begin)
        return await future

    def _begin(self) -> None:
        self._due = False
        taken: list[tuple[Item, asyncio.Future[Outcome]]] = []
        while self._waiting and len(taken) < self._most:
            item, future = self._waiting.popleft()
            if not future.done():
                taken.append((item, future))
        if taken:
            task = asyncio.ensure_future(self._send(taken))
            self._under_way.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if self._waiting and not self._due:
            self._begin()

    async def _send(self, taken: list[tuple[Item, asyncio.Future[Outcome]]]) -> None:
        outcomes: Sequence[Outcome | Exception]
        try:
            outcomes = await self._run([item for item, _ in taken])
        except asyncio.CancelledError:
            for _, future in taken:
                future.cancel()
            raise
        except Exception as error:
            outcomes = [error] * len(taken)
        for (_, future), outcome in zip(taken, outcomes, strict=True):
            if future.done():
                continue  # Whoever asked has gone.
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
