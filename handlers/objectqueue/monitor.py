"""The monitor: points out workers that are not heard of and shards that nobody looks after.

What ended too late is put back, and the indexes are repaired, by the clock, as the spec says.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime

from generated.objectqueue.events import SHARDS_UNCOVERED, WORKER_DEAD
from generated.objectqueue.records import WorkerRecord
from generated.objectqueue.settings import MonitorSettings
from handlers.objectqueue.views import SHARDS
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.stores.object_store import ObjectStore
from runtime.world import World

_MOST = 10_000


class Monitor:
    """Looks at workers and changes nothing: their tasks come back when their leases end."""

    def __init__(self, workers: ObjectStore[WorkerRecord], settings: MonitorSettings, world: World) -> None:
        self._workers = workers
        self._settings = settings
        self._world = world
        self._dead: set[str] = set()
        self._uncovered: tuple[str, ...] = ()

    async def run(self, call: Call, stopping: asyncio.Event) -> None:
        """Looks from time to time until it is told to stop."""
        every_s = self._settings.qo_monitor_check_interval
        while not stopping.is_set():
            # First a pause: whoever is started together with the monitor shall be seen by it.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._world.uniform(0.8 * every_s, every_s)):
                    await stopping.wait()
                    return
            with suppress(Failure):  # An outage, of which the sweeps tell; the next look is not far.
                self._look(await self._workers.find(size=_MOST), call)

    def _look(self, workers: list[WorkerRecord], call: Call) -> None:
        now = datetime.fromtimestamp(self._world.now_ms() / 1000, UTC)
        longest_s = self._settings.qo_monitor_worker_health_threshold
        silent_s = {each.worker_id: (now - each.last_heartbeat).total_seconds() for each in workers}
        dead = {name for name, seconds in silent_s.items() if seconds > longest_s}
        for name in sorted(dead - self._dead):
            call.tell(WORKER_DEAD, f"it was last heard of {silent_s[name]:.0f} s ago", worker_id=name)
        self._dead = dead
        covered = {shard for each in workers if each.worker_id not in dead for shard in each.shards}
        uncovered = tuple(each for each in SHARDS if each not in covered)
        if uncovered and uncovered != self._uncovered:
            call.tell(SHARDS_UNCOVERED, f"no live worker looks after {', '.join(uncovered)}")
        self._uncovered = uncovered
