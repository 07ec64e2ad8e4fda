"""Coalesce concurrent calls into one statement."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

Run = Callable[[Sequence[Item]], Awaitable[Sequence[Result | Exception]]]
"""Runs one statement for a batch of items; returns a result or an error for each, in their order."""


class Batch(Generic[Item, Result]):
    """Queue items while statements are in flight, and send all that wait in the next one.

    The first item of an idle moment is sent at once: nothing is delayed to fill a batch. `concurrency` is the
    number of statements in flight. Where a round trip takes hardly longer than a turn of the event loop,
    `eager` saves the first item those turns: other calls of the same moment come in the next statement, and
    a first caller that is cancelled cancels its statement.
    """

    def __init__(
        self, run: Run[Item, Result], *, max_items: int = 200, concurrency: int = 1, eager: bool = False
    ) -> None:
        self._run = run
        self._max_items = max_items
        self._concurrency = concurrency
        self._waiting: deque[tuple[Item, asyncio.Future[Result]]] = deque()
        self._in_flight: set[asyncio.Task[None]] = set()
        self._is_scheduled = False
        self._eager = eager
        self._is_direct = False

    async def __call__(self, item: Item) -> Result:
        if self._eager and not (self._is_direct or self._in_flight or self._is_scheduled or self._waiting):
            # In this very turn of the loop, and in no task of its own.
            self._is_direct = True
            try:
                (result,) = await self._run([item])
            finally:
                self._is_direct = False
                if self._waiting and not self._is_scheduled:
                    self._send_next()
            if isinstance(result, Exception):
                raise result
            return result
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._waiting.append((item, future))
        if not self._is_scheduled and len(self._in_flight) + self._is_direct < self._concurrency:
            # Not at once: other calls of this turn of the loop join the batch.
            self._is_scheduled = True
            loop.call_soon(self._send_next)
        return await future

    def _send_next(self) -> None:
        self._is_scheduled = False
        batch: list[tuple[Item, asyncio.Future[Result]]] = []
        while self._waiting and len(batch) < self._max_items:
            item, future = self._waiting.popleft()
            if not future.done():
                batch.append((item, future))
        if batch:
            task = asyncio.ensure_future(self._send(batch))
            self._in_flight.add(task)
            task.add_done_callback(self._on_sent)

    def _on_sent(self, task: asyncio.Task[None]) -> None:
        self._in_flight.discard(task)
        if self._waiting and not self._is_scheduled:
            self._send_next()

    async def _send(self, batch: list[tuple[Item, asyncio.Future[Result]]]) -> None:
        results: Sequence[Result | Exception]
        try:
            results = await self._run([item for item, _ in batch])
        except asyncio.CancelledError:
            for _, future in batch:
                future.cancel()
            raise
        except Exception as error:
            results = [error] * len(batch)
        for (_, future), result in zip(batch, results, strict=True):
            if future.done():
                continue  # Its caller was cancelled.
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
