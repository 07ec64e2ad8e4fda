"""saq as its documentation has it: a queue from a URL, and the settings of a worker in a dictionary."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from saq import Queue  # type: ignore[import-not-found]

from bench.peers.apps.producer import InWaves, main, note_run, note_start


async def noop(_context: Any, *, n: float) -> None:
    """Do nothing."""
    note_run(n)


async def pickup(_context: Any, *, sent: float) -> None:
    """Print how long it took to be started."""
    note_start(sent)


settings: dict[str, Any] = {
    "queue": Queue.from_url(os.environ["REDIS_URL"]),
    "functions": [noop, pickup],
    "concurrency": int(os.environ.get("BENCH_SLOTS", "10")),
}
"""What `saq` runs."""


class Producer(InWaves):
    """Enqueues jobs; there is no call for many."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return await self._queue.enqueue(task, **payload)


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Producer]:
    """A queue with connections of its own."""
    queue = Queue.from_url(address)
    await queue.connect()
    try:
        yield Producer(queue)
    finally:
        await queue.disconnect()


if __name__ == "__main__":
    main(opened)
