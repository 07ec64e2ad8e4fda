"""arq as its documentation has it: a pool for producers, and the settings of a worker in a class."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from arq import create_pool  # type: ignore[import-not-found]
from arq.connections import RedisSettings  # type: ignore[import-not-found]

from bench.peers.apps.producer import InWaves, main, note_run, note_start


async def noop(_context: Any, n: float) -> None:
    """Do nothing."""
    note_run(n)


async def pickup(_context: Any, sent: float) -> None:
    """Print how long it took to be started."""
    note_start(sent)


class WorkerSettings:
    """What `arq` runs."""

    functions = (noop, pickup)
    redis_settings = RedisSettings.from_dsn(os.environ["REDIS_URL"])
    max_jobs = int(os.environ.get("BENCH_SLOTS", "10"))


class Producer(InWaves):
    """Enqueues jobs; there is no call for many."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return await self._pool.enqueue_job(task, **payload)


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Producer]:
    """A pool of arq's own size."""
    pool = await create_pool(RedisSettings.from_dsn(address))
    try:
        yield Producer(pool)
    finally:
        await pool.aclose()


if __name__ == "__main__":
    main(opened)
