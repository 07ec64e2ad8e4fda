"""Submits to huey, whose functions are in `huey_tasks`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bench.peers.apps.huey_tasks import TASKS
from bench.peers.apps.producer import main


class Producer:
    """Calls the functions, which enqueues them; there is no call for many."""

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return TASKS[task](**payload)

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object:
        for each in payloads:
            TASKS[task](**each)
        return None


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Producer]:
    """The instance knows the address from the environment."""
    assert address == os.environ["REDIS_URL"]
    yield Producer()


if __name__ == "__main__":
    main(opened)
