"""Kills of all nodes of a deployment at random moments, while clients submit jobs."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

from runtime.launch import Launched
from tests.support.taskqueue.api import Api, new_key

_LONGEST_S = 0.3
"""The longest time between two kills."""


class NodeKills:
    """Kills and restarts; a dead node may stay dead for some of the next kills."""

    def __init__(self, deployment: Launched) -> None:
        self.killed: Counter[str] = Counter()
        self._deployment = deployment

    async def kill_all(self, chance: random.Random) -> None:
        """Kill each node once, in a random order."""
        processes = self._deployment.processes
        for name in chance.sample(sorted(processes), len(processes)):
            await asyncio.sleep(chance.uniform(0, _LONGEST_S))
            if processes[name].running:
                self.killed[name] += 1
                await processes[name].kill()
            for each in processes.values():
                if not each.running and chance.random() < 0.5:
                    await each.start()

    async def revive(self) -> None:
        """Restart all dead nodes, and wait for them."""
        for name, process in self._deployment.processes.items():
            if not process.running:
                await self._deployment.restart(name)


class Submits:
    """Clients that submit one job after the other, each until it is accepted."""

    def __init__(self, api: Api, chance: random.Random) -> None:
        self.accepted: dict[str, str] = {}
        """By key: the job."""
        self._api = api
        self._chance = chance
        self._sizes: dict[str, int] = {}

    async def run(self, clients: int, stopping: asyncio.Event) -> None:
        """Submit until stopped, and then until what was begun is accepted."""
        await asyncio.gather(*(self._run_client(stopping) for _ in range(clients)))

    async def repeat(self, key: str) -> str:
        """Submit the job of a key, for the first time or again."""
        return (await self._api.submit(ms=20, size=self._sizes[key], key=key)).job_id

    async def _run_client(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            key = new_key()
            self._sizes[key] = self._chance.randrange(100)
            self.accepted[key] = await self.repeat(key)
