"""How far a run is, as its task shows it: the latest report, written less often the longer the run takes.

Every write is a version of the task, and a part of its history. So the pauses between two writes double, up
to the time between two signs of life of the worker.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from generated.objectqueue.lifecycle import TASK_ADVANCE
from generated.objectqueue.records import TaskRecord
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.stores.object_store import NotReadable, ObjectStore
from runtime.stores.store import Held

_FIRST_PAUSE_S = 1.0


class Progress:
    """The reports of one run. `lost` is called when the task is found to be no longer ours."""

    def __init__(
        self,
        tasks: ObjectStore[TaskRecord],
        key: str,
        held: Held,
        call: Call,
        lost: Callable[[str, int], None],
        longest_pause_s: float,
    ) -> None:
        self._tasks = tasks
        self._key = key
        self._held = held
        self._call = call
        self._lost = lost
        self._pause_s = _FIRST_PAUSE_S
        self._longest_pause_s = max(longest_pause_s, _FIRST_PAUSE_S)
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
                    self._key, TASK_ADVANCE, self._call, self._held, progress=news
                )
                if not is_ours:
                    self._lost(self._key, self._held.fence)
                    return
            await self._call.world.sleep(self._pause_s)
            self._pause_s = min(2 * self._pause_s, self._longest_pause_s)
