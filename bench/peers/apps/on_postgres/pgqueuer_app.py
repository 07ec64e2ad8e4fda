"""pgqueuer as its documentation has it: a pool for producers, one connection of its own for a worker."""

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

from bench.peers.apps.producer import NOTHING, PICKUP, main, note_start


@asynccontextmanager
async def worker() -> AsyncIterator[Any]:
    """What `pgq run` runs."""
    connection = await asyncpg.connect(os.environ["DATABASE_URL"])
    found = PgQueuer(AsyncpgDriver(connection))
    found.entrypoint(NOTHING)(noop)
    found.entrypoint(PICKUP)(pickup)
    try:
        yield found
    finally:
        await connection.close()


async def noop(_job: Any) -> None:
    """Do nothing."""


async def pickup(job: Any) -> None:
    """Print how long it took to be started."""
    note_start(json.loads(job.payload)["sent"])


class Producer:
    """Enqueues jobs."""

    def __init__(self, queries: Any) -> None:
        self._queries = queries

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return await self._queries.enqueue(task, json.dumps(payload).encode())

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object:
        count = len(payloads)
        contents = [json.dumps(each).encode() for each in payloads]
        return await self._queries.enqueue([task] * count, contents, [0] * count)


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Producer]:
    """A pool of the size that the documentation shows."""
    async with asyncpg.create_pool(address, min_size=5, max_size=20) as pool:
        yield Producer(Queries(AsyncpgPoolDriver(pool)))


if __name__ == "__main__":
    main(opened)
