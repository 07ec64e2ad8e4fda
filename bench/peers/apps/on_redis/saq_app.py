"""saq by its documentation: a queue from a URL, and the settings of a worker in a dictionary."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from saq import Queue  # type: ignore[import-not-found]

from bench.peers.apps.producer import WaveProducer, main, record_run, record_start


async def noop(_context: Any, *, n: float) -> None:
    """Do nothing."""
    record_run(n)


async def pickup(_context: Any, *, sent: float) -> None:
    """Record the time from submit to start."""
    record_start(sent)


settings: dict[str, Any] = {
    "queue": Queue.from_url(os.environ["REDIS_URL"]),
    "functions": [noop, pickup],
    "concurrency": int(os.environ.get("BENCH_SLOTS", "10")),
}
"""Settings of the worker for `saq`."""


class SaqProducer(WaveProducer):
    """Producer that enqueues jobs; saq has no bulk call."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return await self._queue.enqueue(task, **payload)


@asynccontextmanager
async def open_producer(address: str) -> AsyncIterator[SaqProducer]:
    """Open a queue with connections of its own."""
    queue = Queue.from_url(address)
    await queue.connect()
    try:
        yield SaqProducer(queue)
    finally:
        await queue.disconnect()


if __name__ == "__main__":
    main(open_producer)
