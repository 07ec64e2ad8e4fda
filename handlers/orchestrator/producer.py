"""A producer that submits jobs directly to the database, without the API and without a transaction.

Concurrent submits are coalesced into one statement. Each returns when its job is durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from handlers.orchestrator.enqueue import (
    SUBMIT,
    Intent,
    PreparedJob,
    build_arguments,
    prepare_jobs,
    resolve_ids,
)
from runtime.stores.batch import Batch
from runtime.stores.postgres.database import Database, PostgresUnavailable

_CONNECTIONS = 4
_MAX_ATTEMPTS = 5
_FIRST_BACKOFF_S = 0.05


class Producer:
    """Submit jobs through connections of its own. Use it in one event loop, and close it at the end.

    A statement whose response was lost is retried. That is idempotent: its jobs have their ids already.
    """

    def __init__(self, url: str) -> None:
        self._database = Database(url, name="producer", most=_CONNECTIONS)
        self._unkeyed = Batch(self._submit, max_items=500, eager=True)
        # A key that is locked by an open transaction blocks its statement, so keep unkeyed jobs out of it.
        self._keyed = Batch(self._submit, max_items=500, concurrency=2)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._database.close()

    async def enqueue(
        self, job_type: str, payload: Mapping[str, Any], idempotency_key: str | None = None
    ) -> str:
        """Submit a job; return its id. A known key returns its existing job."""
        (job,) = prepare_jobs([Intent(job_type, payload, idempotency_key)])
        return await (self._unkeyed(job) if idempotency_key is None else self._keyed(job))

    async def enqueue_all(self, intents: Sequence[Intent]) -> list[str]:
        """Submit a batch of jobs atomically; return their ids in the same order."""
        return await self._submit(prepare_jobs(intents)) if intents else []

    async def _submit(self, jobs: Sequence[PreparedJob]) -> list[str]:
        for attempt in range(_MAX_ATTEMPTS):
            try:
                ((existing_ids,),) = await self._database.fetch(SUBMIT, *build_arguments(jobs))
                return resolve_ids(jobs, existing_ids)
            except PostgresUnavailable:
                if attempt == _MAX_ATTEMPTS - 1:
                    raise
            await asyncio.sleep(_FIRST_BACKOFF_S * 2**attempt)
        raise AssertionError("the last attempt answers or raises")
