"""Submits as a producer does that shares our database: by the enqueue function, in a transaction."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from bench.peers.apps.http_app import JOB_TYPES
from bench.peers.apps.producer import main
from handlers.orchestrator.enqueue import Intent, enqueue, enqueue_all


class Producer:
    """Enqueues jobs, each under a key of its own."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        async with self._pool.acquire() as connection, connection.transaction():
            return await enqueue(connection, JOB_TYPES[task], payload, str(uuid.uuid4()))

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object:
        intents = [Intent(JOB_TYPES[task], each, str(uuid.uuid4())) for each in payloads]
        async with self._pool.acquire() as connection, connection.transaction():
            return await enqueue_all(connection, intents)


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Producer]:
    """A pool of the size that pgqueuer's producer has."""
    async with asyncpg.create_pool(address, min_size=5, max_size=20) as pool:
        yield Producer(pool)


if __name__ == "__main__":
    main(opened)
