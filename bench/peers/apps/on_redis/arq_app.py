"""arq by its documentation: a pool for producers, and the settings of a worker in a class."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from arq import create_pool  # type: ignore[import-not-found]
from arq.connections import RedisSettings  # type: ignore[import-not-found]

from bench.peers.apps.producer import WaveProducer, main, record_run, record_start


async def noop(_context: Any, n: float) -> None:
    """Do nothing."""
    record_run(n)


async def pickup(_context: Any, sent: float) -> None:
    """Record the time from submit to start."""
    record_start(sent)


class WorkerSettings:
    """Settings of the worker for `arq`."""

    functions = (noop, pickup)
    redis_settings = RedisSettings.from_dsn(os.environ["REDIS_URL"])
    max_jobs = int(os.environ.get("BENCH_SLOTS", "10"))


class ArqProducer(WaveProducer):
    """Producer that enqueues jobs; arq has no bulk call."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return await self._pool.enqueue_job(task, **payload)


@asynccontextmanager
async def open_producer(address: str) -> AsyncIterator[ArqProducer]:
    """Open a pool of arq's default size."""
    pool = await create_pool(RedisSettings.from_dsn(address))
    try:
        yield ArqProducer(pool)
    finally:
        await pool.aclose()


if __name__ == "__main__":
    main(open_producer)
