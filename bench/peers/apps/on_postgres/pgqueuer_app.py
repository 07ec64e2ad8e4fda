"""pgqueuer by its documentation: a pool for producers, a connection for a worker."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
from pgqueuer import PgQueuer  # type: ignore[import-not-found]
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver  # type: ignore[import-not-found]
from pgqueuer.queries import Queries  # type: ignore[import-not-found]

from bench.peers.apps.producer import NOTHING, PICKUP, main, record_start


@asynccontextmanager
async def worker() -> AsyncIterator[Any]:
    """Create the queue manager for `pgq run`."""
    connection = await asyncpg.connect(os.environ["DATABASE_URL"])
    queue = PgQueuer(AsyncpgDriver(connection))
    queue.entrypoint(NOTHING)(noop)
    queue.entrypoint(PICKUP)(pickup)
    try:
        yield queue
    finally:
        await connection.close()


async def noop(_job: Any) -> None:
    """Do nothing."""


async def pickup(job: Any) -> None:
    """Record the time from submit to start."""
    record_start(json.loads(job.payload)["sent"])


class PgqueuerProducer:
    """Producer that enqueues jobs."""

    def __init__(self, queries: Any) -> None:
        self._queries = queries

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return await self._queries.enqueue(task, json.dumps(payload).encode())

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object:
        count = len(payloads)
        contents = [json.dumps(each).encode() for each in payloads]
        return await self._queries.enqueue([task] * count, contents, [0] * count)


@asynccontextmanager
async def open_producer(address: str) -> AsyncIterator[PgqueuerProducer]:
    """Open a pool of the size that the documentation shows."""
    async with asyncpg.create_pool(address, min_size=5, max_size=20) as pool:
        yield PgqueuerProducer(Queries(AsyncpgPoolDriver(pool)))


if __name__ == "__main__":
    main(open_producer)
