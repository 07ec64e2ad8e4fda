"""For producers that want their jobs stored and nothing else: no API in between, no transaction around them.

Submits that wait at the same moment go to the database together. Each is answered when its job is durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from handlers.orchestrator.enqueue import SUBMIT, Intent, Prepared, answered, arguments, prepared
from runtime.stores.batch import Batch
from runtime.stores.postgres.database import Database, Unavailable

_CONNECTIONS = 4
_ATTEMPTS = 5
_PAUSE_S = 0.05


class Producer:
    """Submits jobs through connections of its own. To be used by one event loop, and closed at the end.

    A statement whose answer was lost is sent again: its jobs have their ids already, so none is there twice.
    """

    def __init__(self, url: str) -> None:
        self._database = Database(url, name="producer", most=_CONNECTIONS)
        self._unlike = Batch(self._submit, most=500, eager=True)
        # A key that an open transaction holds is waited for, which concerns only those that have one.
        self._keyed = Batch(self._submit, most=500, lanes=2)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Gives the connections back."""
        await self._database.close()

    async def enqueue(
        self, job_type: str, payload: Mapping[str, Any], idempotency_key: str | None = None
    ) -> str:
        """Submits a job; its id. A known key gives the job it already has."""
        (job,) = prepared([Intent(job_type, payload, idempotency_key)])
        return await (self._unlike(job) if idempotency_key is None else self._keyed(job))

    async def enqueue_all(self, intents: Sequence[Intent]) -> list[str]:
        """Submits many jobs at once, all or none; their ids in the same order."""
        return await self._submit(prepared(intents)) if intents else []

    async def _submit(self, jobs: Sequence[Prepared]) -> list[str]:
        for attempt in range(_ATTEMPTS):
            try:
                ((known,),) = await self._database.fetch(SUBMIT, *arguments(jobs))
                return answered(jobs, known)
            except Unavailable:
                if attempt == _ATTEMPTS - 1:
                    raise
            await asyncio.sleep(_PAUSE_S * 2**attempt)
        raise AssertionError("the last attempt answers or raises")
