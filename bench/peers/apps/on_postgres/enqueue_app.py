"""Producer for the orchestrator's database, without its API.

The peers' jobs have no idempotency key, so these have none either. With the variable BENCH_KEYS each job has
a random one.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bench.peers.apps.on_postgres.http_app import JOB_TYPES
from bench.peers.apps.producer import main
from handlers.orchestrator.enqueue import Intent
from handlers.orchestrator.producer import Producer as Jobs

KEYS = "BENCH_KEYS"


class EnqueueProducer:
    """Producer that enqueues jobs in the database."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._keys = KEYS in os.environ

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return await self._jobs.enqueue(JOB_TYPES[task], payload, self._key())

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object:
        return await self._jobs.enqueue_all([Intent(JOB_TYPES[task], each, self._key()) for each in payloads])

    def _key(self) -> str | None:
        return str(uuid.uuid4()) if self._keys else None


@asynccontextmanager
async def open_producer(address: str) -> AsyncIterator[EnqueueProducer]:
    """Open a producer as the orchestrator's how-to shows."""
    async with Jobs(address) as jobs:
        yield EnqueueProducer(jobs)


if __name__ == "__main__":
    main(open_producer)
