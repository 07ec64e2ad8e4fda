"""The monitor: logs workers without heartbeats and shards without a live worker.

Expired leases are released and the indexes are repaired by due transitions, as the spec says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

from generated.objectqueue.events import SHARDS_UNCOVERED, WORKER_DEAD
from generated.objectqueue.records import WorkerRecord
from generated.objectqueue.settings import MonitorSettings
from handlers.objectqueue.views import SHARDS
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.stores.contract import EntityStore
from runtime.world import World

_MAX_WORKERS = 10_000


class Monitor:
    """A read-only check of workers: their tasks are released when their leases expire."""

    def __init__(self, workers: EntityStore[WorkerRecord], settings: MonitorSettings, world: World) -> None:
        self._workers = workers
        self._settings = settings
        self._world = world
        self._dead: set[str] = set()
        self._uncovered: tuple[str, ...] = ()

    async def run(self, call: Call, stopping: asyncio.Event) -> None:
        """Check the workers at intervals until shutdown."""
        interval_s = self._settings.qo_monitor_check_interval
        while not stopping.is_set():
            # Wait first: workers that are started together with the monitor need time to register.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._world.uniform(0.8 * interval_s, interval_s)):
                    await stopping.wait()
                    return
            with suppress(Failure):  # An outage, which the sweeps log; the next check is the retry.
                self._check_workers((await self._workers.find(size=_MAX_WORKERS)).records, call)

    def _check_workers(self, workers: Sequence[WorkerRecord], call: Call) -> None:
        now = datetime.fromtimestamp(self._world.now_ms() / 1000, UTC)
        threshold_s = self._settings.qo_monitor_worker_health_threshold
        silent_s = {each.worker_id: (now - each.last_heartbeat).total_seconds() for each in workers}
        dead = {name for name, seconds in silent_s.items() if seconds > threshold_s}
        for name in sorted(dead - self._dead):
            call.tell(WORKER_DEAD, f"it was last heard of {silent_s[name]:.0f} s ago", worker_id=name)
        self._dead = dead
        covered = {shard for each in workers if each.worker_id not in dead for shard in each.shards}
        uncovered = tuple(each for each in SHARDS if each not in covered)
        if uncovered and uncovered != self._uncovered:
            call.tell(SHARDS_UNCOVERED, f"no live worker looks after {', '.join(uncovered)}")
        self._uncovered = uncovered
