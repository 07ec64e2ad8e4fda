"""The object by which a worker is seen: written at its start, when something changes, and from time to time.

No task depends on it. A worker that cannot write it goes on working.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime

from generated.objectqueue.events import HEARTBEAT_FAILED, WORKER_NAME_IN_USE, WORKER_NAME_TAKEN_OVER
from generated.objectqueue.lifecycle import TASK_COMPLETE, TASK_RELEASE, WORKER_BEAT
from generated.objectqueue.messages import ACTIVE
from generated.objectqueue.records import WorkerRecord
from generated.objectqueue.settings import WorkerSettings
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.node.process_identity import is_gone
from runtime.stores.object_store import NotReadable, ObjectStore
from runtime.stores.store import NoSuchEntity, StoreUnusable
from runtime.worker.config import Outcome

_LEAST_S = 1.0
"""So much time is between two signs of life, however much changes."""
_TRIES = 5
_LOOK_S = 0.5
"""How often a worker looks whether another one of its name, of which it knows no more, still lives."""


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
        self._own = {"instance": wanted.instance}
        self.superseded = asyncio.Event()
        """Set when another worker has taken over the name, which happens only after a long silence."""

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

    async def enter(self, stopping: asyncio.Event) -> bool:
        """Writes the object, unless it is told to stop; one that a dead worker left behind is taken over.

        A worker of the same machine is known to be dead when its process is gone. Another one is waited for:
        if it is heard of once more it lives, and if it is silent for too long it is dead.
        """
        name, met = self._wanted.worker_id, 0
        before: WorkerRecord | None = None
        while met < _TRIES and not stopping.is_set():
            found, is_new = await self._workers.create_or_find(self._wanted, self._call)
            if is_new:
                return True
            gone, silent_s = is_gone(found.process), (self._now() - found.last_heartbeat).total_seconds()
            if gone or silent_s > self._settings.qo_monitor_worker_health_threshold:
                met += 1
                self._call.tell(
                    WORKER_NAME_TAKEN_OVER, f"it was heard of {silent_s:.0f} s ago", worker_id=name
                )
                await self._remove(found)
                continue
            was_heard = before is not None and found.last_heartbeat != before.last_heartbeat
            if gone is False or was_heard:
                raise StoreUnusable(
                    f"A worker {name} lives already: it was heard of {max(silent_s, 0):.0f} s "
                    "ago. Choose another name (--id or QO_WORKER_ID), or leave it out and one is made up."
                )
            if before is None:
                self._call.tell(
                    WORKER_NAME_IN_USE,
                    f"a worker of this name was heard of {max(silent_s, 0):.0f} s ago; this one waits until "
                    "that one is heard of again or has been silent for too long",
                    worker_id=name,
                )
            before = found
            await self._call.world.sleep(_LOOK_S)
        if stopping.is_set():
            return False
        raise StoreUnusable(f"Others want to be worker {name}, too: choose another name.")

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
            await self._remove(self._wanted)
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
                None,
                self._own,
                current_task=current[0] if current else None,
                current_tasks=current,
                tasks_completed=self._completed,
                tasks_failed=self._failed,
                leases_lost=self._lost,
            )
            if not is_told:
                # If it was removed, those who watch shall see the worker all the same.
                found, _ = await self._workers.create_or_find(self._wanted, self._call)
                if found.instance != self._wanted.instance:
                    self.superseded.set()
                self._changed.set()
        except (Failure, NotReadable) as failure:
            if not self._is_silent:
                self._call.tell(HEARTBEAT_FAILED, f"it goes on working: {failure}")
            self._is_silent = True
        else:
            self._is_silent = False

    async def _remove(self, known: WorkerRecord) -> None:
        """Removes the object of one start of a worker, and no other that has taken its place."""
        having = {"instance": known.instance}
        with suppress(NoSuchEntity):
            for _ in range(_TRIES):
                if (await self._workers.delete(known.worker_id, ACTIVE, self._call, having=having)).applied:
                    break

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._call.world.now_ms() / 1000, UTC)
