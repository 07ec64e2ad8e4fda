"""The heartbeat object of a worker: written at its start, when its state changes, and at intervals.

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
from runtime.stores.bucket_store import NotReadable
from runtime.stores.contract import EntityStore
from runtime.stores.store import GuardBreach, NoSuchEntity, StoreUnusable
from runtime.worker.config import Outcome

_MIN_INTERVAL_S = 1.0
"""The minimum interval between two heartbeats, however much changes."""
_MAX_ATTEMPTS = 5
_NAME_CHECK_INTERVAL_S = 0.5
"""Interval at which a worker checks whether another one of the same name is alive."""


class WorkerHeartbeat:
    """The state of a worker, written to the bucket: its tasks in flight and its counts."""

    def __init__(
        self, workers: EntityStore[WorkerRecord], record: WorkerRecord, settings: WorkerSettings, call: Call
    ) -> None:
        self._workers = workers
        self._record = record
        self._settings = settings
        self._call = call
        self._current: dict[str, None] = {}
        self._completed = self._failed = self._lost = 0
        self._changed = asyncio.Event()
        self._is_failing = False
        self._write: asyncio.Task[None] | None = None
        self._checked_at = call.world.monotonic()
        self.superseded = asyncio.Event()
        """Set when another worker has taken over the name, which needs a long time without heartbeats."""

    # The watcher of the lease worker.

    def on_claimed(self, key: str) -> None:
        self._current[key] = None
        self._changed.set()

    def on_settled(self, key: str, outcome: Outcome) -> None:
        self._current.pop(key, None)
        if outcome.transition is TASK_COMPLETE:
            self._completed += 1
        elif outcome.transition is not TASK_RELEASE:
            self._failed += 1
        self._changed.set()

    def on_lost(self, key: str, _fence: int) -> None:
        self._current.pop(key, None)
        self._lost += 1
        self._changed.set()

    # The object.

    async def register(self, stopping: asyncio.Event) -> bool:
        """Write the object, or take over that of a dead worker; return False at a shutdown.

        A worker of the same machine is dead when its process is gone. For another one, wait: with a new
        heartbeat it is alive, and without one for too long it is dead.
        """
        name, takeovers = self._record.worker_id, 0
        previous: WorkerRecord | None = None
        while takeovers < _MAX_ATTEMPTS and not stopping.is_set():
            found = await self._workers.get(name)
            if found is None:
                if await self._create():
                    return True
                takeovers += 1
                continue
            is_process_gone = is_gone(found.process)
            silent_s = (self._get_now() - found.last_heartbeat).total_seconds()
            if is_process_gone or silent_s > self._settings.qo_monitor_worker_health_threshold:
                takeovers += 1
                self._call.tell(
                    WORKER_NAME_TAKEN_OVER, f"it was heard of {silent_s:.0f} s ago", worker_id=name
                )
                await self._remove(found)
                continue
            has_new_heartbeat = previous is not None and found.last_heartbeat != previous.last_heartbeat
            if is_process_gone is False or has_new_heartbeat:
                raise StoreUnusable(
                    f"A worker {name} lives already: it was heard of {max(silent_s, 0):.0f} s "
                    "ago. Choose another name (--id or QO_WORKER_ID), or leave it out and one is made up."
                )
            if previous is None:
                self._call.tell(
                    WORKER_NAME_IN_USE,
                    f"a worker of this name was heard of {max(silent_s, 0):.0f} s ago; this one waits until "
                    "that one is heard of again or has been silent for too long",
                    worker_id=name,
                )
            previous = found
            await self._call.world.sleep(_NAME_CHECK_INTERVAL_S)
        if stopping.is_set():
            return False
        raise StoreUnusable(f"Others want to be worker {name}, too: choose another name.")

    async def send_heartbeats(self) -> None:
        """Send heartbeats at intervals, and soon after a change."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.qo_heartbeat_seconds):
                    await self._changed.wait()
            # Never cancel a write in flight: it may arrive later than the one that follows it.
            self._write = asyncio.create_task(self._write_heartbeat())
            await asyncio.shield(self._write)
            await self._call.world.sleep(min(_MIN_INTERVAL_S, self._settings.qo_heartbeat_seconds))

    async def deregister(self) -> None:
        """Remove the object. Where that fails, it stays as a worker without heartbeats."""
        if self._write is not None:
            await self._write
        try:
            await self._remove(self._record)
        except (Failure, NotReadable) as failure:
            self._call.tell(HEARTBEAT_FAILED, f"its object stays behind: {failure}")

    async def _write_heartbeat(self) -> None:
        self._changed.clear()
        current = tuple(self._current)
        try:
            if not await self._is_own():
                self.superseded.set()
            elif not await self._is_written(
                current_task=current[0] if current else None,
                current_tasks=current,
                tasks_completed=self._completed,
                tasks_failed=self._failed,
                leases_lost=self._lost,
            ):
                # The object was removed: create it again, so that the worker stays visible.
                await self._create()
                self._changed.set()
        except (Failure, NotReadable) as failure:
            if not self._is_failing:
                self._call.tell(HEARTBEAT_FAILED, f"it goes on working: {failure}")
            self._is_failing = True
        else:
            self._is_failing = False

    async def _remove(self, record: WorkerRecord) -> None:
        """Remove the object of one instance of a worker, and not that of a successor."""
        with suppress(NoSuchEntity):
            for _ in range(_MAX_ATTEMPTS):
                found = await self._workers.get(record.worker_id)
                if found is None or found.instance != record.instance:
                    break
                if (await self._workers.delete(record.worker_id, ACTIVE, self._call)).applied:
                    break

    async def _create(self) -> bool:
        """Create the object; False where another worker has just created one of the same name."""
        try:
            return (await self._workers.create(self._record, self._call)).is_new
        except GuardBreach:
            return False

    async def _is_own(self) -> bool:
        """Whether no other worker has taken over the name, which it does only after a long silence."""
        now = self._call.world.monotonic()
        if now - self._checked_at < self._settings.qo_heartbeat_seconds:
            return True
        found = await self._workers.get(self._record.worker_id)
        self._checked_at = now
        return found is None or found.instance == self._record.instance

    async def _is_written(self, **state: object) -> bool:
        """Write the state; False where there is no object."""
        try:
            beat = await self._workers.transition(
                self._record.worker_id, WORKER_BEAT.name, self._call, given=state
            )
        except NoSuchEntity:
            return False
        return beat.applied

    def _get_now(self) -> datetime:
        return datetime.fromtimestamp(self._call.world.now_ms() / 1000, UTC)
