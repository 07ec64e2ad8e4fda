"""Submits as a producer does that shares our database: by the enqueue function and its own pool.

The peers are given no key that would make a submit the same as an earlier one, so none is given here either.
With the variable BENCH_KEYS each job has a random one.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from bench.peers.apps.http_app import JOB_TYPES
from bench.peers.apps.producer import main
from handlers.orchestrator.enqueue import Intent, enqueue, enqueue_all

KEYS = "BENCH_KEYS"


class Producer:
    """Enqueues jobs."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._keys = KEYS in os.environ

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return await enqueue(self._pool, JOB_TYPES[task], payload, self._key())

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object:
        return await enqueue_all(
            self._pool, [Intent(JOB_TYPES[task], each, self._key()) for each in payloads]
        )

    def _key(self) -> str | None:
        return str(uuid.uuid4()) if self._keys else None


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Producer]:
    """A pool of the size that pgqueuer's producer has."""
    async with asyncpg.create_pool(address, min_size=5, max_size=20) as pool:
        yield Producer(pool)


if __name__ == "__main__":
    main(opened)
