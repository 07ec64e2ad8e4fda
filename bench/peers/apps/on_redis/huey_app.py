"""Submits to huey, whose functions are in `huey_tasks`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.peers.apps.on_redis.huey_tasks import TASKS
from bench.peers.apps.producer import InWaves, main


class Producer(InWaves):
    """Calls the functions, which enqueues them; there is no call for many."""

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return TASKS[task](**payload)


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Producer]:
    """The instance knows the address from the environment."""
    assert address == os.environ["REDIS_URL"]
    yield Producer()


if __name__ == "__main__":
    main(opened)
