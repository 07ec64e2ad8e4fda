"""How far a run is, as its task shows it: written at most once a second, the last word always."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from generated.objectqueue.lifecycle import TASK_ADVANCE
from generated.objectqueue.records import TaskRecord
from runtime.call import Call
from runtime.conditions import Failure
from runtime.object_store import NotReadable, ObjectStore
from runtime.store import Held

_LEAST_S = 1.0


class Progress:
    """The reports of one run. `lost` is called when the task is found to be no longer ours."""

    def __init__(
        self,
        tasks: ObjectStore[TaskRecord],
        key: str,
        held: Held,
        call: Call,
        lost: Callable[[str, int], None],
    ) -> None:
        self._tasks = tasks
        self._key = key
        self._held = held
        self._call = call
        self._lost = lost
        self._news: str | None = None
        self._writing: asyncio.Task[None] | None = None

    async def report(self, progress: Mapping[str, Any]) -> None:
        """Tells how far the run is; it waits for no write."""
        self._news = json.dumps(progress, allow_nan=False)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    async def stop(self) -> None:
        """Writes nothing more, and leaves no write under way: the end of the run would meet it."""
        if self._writing is not None and not self._writing.done():
            self._writing.cancel()
            await asyncio.wait({self._writing})

    async def _write(self) -> None:
        while self._news is not None:
            news, self._news = self._news, None
            # The next report may arrive; the outcome has tries of its own.
            with suppress(Failure, NotReadable):
                is_ours = await self._tasks.shift(
                    self._key, TASK_ADVANCE, self._call, held=self._held, progress=news
                )
                if not is_ours:
                    self._lost(self._key, self._held.fence)
                    return
            await self._call.world.sleep(_LEAST_S)
