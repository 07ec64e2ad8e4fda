"""Submits as a producer does that shares our database: by our own statements, in one transaction."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from bench.peers.apps.http_app import JOB_TYPES
from bench.peers.apps.producer import main
from runtime.postgres.statements import statements


class Producer:
    """Enqueues jobs, each under a key of its own."""

    def __init__(self, pool: asyncpg.Pool[Any]) -> None:
        self._pool = pool
        known = statements("orchestrator", "job")
        self._create, self._accept = known["create"].text, known["move_accept"].text

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return await self.submit_all(task, [payload])

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object:
        ids = [uuid.uuid4() for _ in payloads]
        keys = [str(uuid.uuid4()) for _ in payloads]
        contents = [json.dumps(each) for each in payloads]
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.fetch(self._create, "api", ids, [JOB_TYPES[task]] * len(ids), contents, keys)
            return await connection.fetch(self._accept, "api", ids)


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Producer]:
    """A pool of the size that pgqueuer's producer has."""
    async with asyncpg.create_pool(address, min_size=5, max_size=20) as pool:
        yield Producer(pool)


if __name__ == "__main__":
    main(opened)
