"""The object by which a worker is seen: written at its start, when something changes, and from time to time.

No task depends on it. A worker that cannot write it goes on working.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime

from generated.objectqueue.events import HEARTBEAT_FAILED
from generated.objectqueue.lifecycle import TASK_COMPLETE, TASK_RELEASE, WORKER_BEAT
from generated.objectqueue.messages import ACTIVE
from generated.objectqueue.records import WorkerRecord
from generated.objectqueue.settings import WorkerSettings
from runtime.call import Call
from runtime.conditions import Failure
from runtime.object_store import NotReadable, ObjectStore
from runtime.pace import Outcome
from runtime.store import NoSuchEntity, StoreUnusable

_LEAST_S = 1.0
"""So much time is between two signs of life, however much changes."""
_TRIES = 5


class Presence:
    """What a worker has done so far and does now; tells the bucket of it."""

    def __init__(
        self, workers: ObjectStore[WorkerRecord], wanted: WorkerRecord, settings: WorkerSettings, call: Call
    ) -> None:
        self._workers = workers
        self._wanted = wanted
        self._settings = settings
        self._call = call
        self._current: dict[str, None] = {}
        self._completed = self._failed = self._lost = 0
        self._changed = asyncio.Event()
        self._is_silent = False
        self._telling: asyncio.Task[None] | None = None

    # What becomes of tasks, as a worker is watched.

    def taken(self, key: str) -> None:
        self._current[key] = None
        self._changed.set()

    def settled(self, key: str, outcome: Outcome) -> None:
        self._current.pop(key, None)
        if outcome.transition is TASK_COMPLETE:
            self._completed += 1
        elif outcome.transition is not TASK_RELEASE:
            self._failed += 1
        self._changed.set()

    def lost(self, key: str, _fence: int) -> None:
        self._current.pop(key, None)
        self._lost += 1
        self._changed.set()

    # The object.

    async def enter(self) -> None:
        """Writes the object; one that a dead worker of the same name left behind is taken over."""
        for _ in range(_TRIES):
            found, is_new = await self._workers.create_or_find(self._wanted, self._call)
            if is_new:
                return
            silent_s = (self._now() - found.last_heartbeat).total_seconds()
            if silent_s <= self._settings.qo_monitor_worker_health_threshold:
                raise StoreUnusable(
                    f"A worker {found.worker_id} lives already: it was heard of {max(silent_s, 0):.0f} s "
                    "ago. Choose another name (--id or QO_WORKER_ID), or leave it out and one is made up."
                )
            await self._remove()
        raise StoreUnusable(f"Others want to be worker {self._wanted.worker_id}, too: choose another name.")

    async def beat(self) -> None:
        """Says again and again that the worker lives, and soon when something has changed."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.qo_heartbeat_seconds):
                    await self._changed.wait()
            # A write that is cut off may arrive later than the one that follows it.
            self._telling = asyncio.create_task(self._tell())
            await asyncio.shield(self._telling)
            await self._call.world.sleep(min(_LEAST_S, self._settings.qo_heartbeat_seconds))

    async def leave(self) -> None:
        """Removes the object. Where that cannot be, it shows a worker that is not heard of any more."""
        if self._telling is not None:
            await self._telling
        try:
            await self._remove()
        except (Failure, NotReadable) as failure:
            self._call.tell(HEARTBEAT_FAILED, f"its object stays behind: {failure}")

    async def _tell(self) -> None:
        self._changed.clear()
        current = tuple(self._current)
        try:
            is_told = await self._workers.shift(
                self._wanted.worker_id,
                WORKER_BEAT,
                self._call,
                current_task=current[0] if current else None,
                current_tasks=current,
                tasks_completed=self._completed,
                tasks_failed=self._failed,
                leases_lost=self._lost,
            )
            if not is_told:
                # Somebody has removed it; those who watch shall see the worker all the same.
                await self._workers.create_or_find(self._wanted, self._call)
                self._changed.set()
        except (Failure, NotReadable) as failure:
            if not self._is_silent:
                self._call.tell(HEARTBEAT_FAILED, f"it goes on working: {failure}")
            self._is_silent = True
        else:
            self._is_silent = False

    async def _remove(self) -> None:
        with suppress(NoSuchEntity):
            for _ in range(_TRIES):
                if (await self._workers.delete(self._wanted.worker_id, ACTIVE, self._call)).applied:
                    break

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._call.world.now_ms() / 1000, UTC)
