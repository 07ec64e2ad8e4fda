"""Write the progress of a run to its task: the latest report, less often the longer the run takes.

Every write is a version of the task, and a part of its history. So the interval between two writes doubles
(exponential backoff), up to the heartbeat interval of the worker.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from generated.objectqueue import errors
from generated.objectqueue.lifecycle import TASK_ADVANCE
from generated.objectqueue.records import TaskRecord
from handlers.objectqueue.shard_claims import prove_by_fence
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.stores.bucket_store import NotReadable
from runtime.stores.contract import EntityStore, LeaseProof
from runtime.stores.store import NoSuchEntity

_FIRST_INTERVAL_S = 1.0


class ProgressWriter:
    """The progress reports of one run. `on_lost` is the callback for a lost lease."""

    def __init__(
        self,
        tasks: EntityStore[TaskRecord],
        key: str,
        lease: LeaseProof,
        call: Call,
        on_lost: Callable[[str, int], None],
        max_interval_s: float,
    ) -> None:
        self._tasks = tasks
        self._key = key
        self._lease = lease
        self._call = call
        self._on_lost = on_lost
        self._interval_s = _FIRST_INTERVAL_S
        self._max_interval_s = max(max_interval_s, _FIRST_INTERVAL_S)
        self._latest: str | None = None
        self._writer: asyncio.Task[None] | None = None

    async def report(self, progress: Mapping[str, Any]) -> None:
        """Report the progress; does not wait for the write."""
        self._latest = json.dumps(progress, allow_nan=False)
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())

    async def stop(self) -> None:
        """Stop writing, and leave no write in flight, which would conflict with the outcome of the run."""
        if self._writer is not None and not self._writer.done():
            self._writer.cancel()
            await asyncio.wait({self._writer})

    async def _write(self) -> None:
        while self._latest is not None:
            latest, self._latest = self._latest, None
            # The next report is the retry; the outcome has retries of its own.
            with suppress(Failure, NotReadable):
                if not await self._is_written(latest):
                    self._on_lost(self._key, self._lease.fence)
                    return
            await self._call.world.sleep(self._interval_s)
            self._interval_s = min(2 * self._interval_s, self._max_interval_s)

    async def _is_written(self, progress: str) -> bool:
        """Write the progress; False where the lease is lost."""
        given = {"progress": progress}
        try:
            return (
                await self._tasks.transition(
                    self._key, TASK_ADVANCE.name, self._call, lease=prove_by_fence(self._lease), given=given
                )
            ).applied
        except (errors.LeaseLost, NoSuchEntity):
            return False
