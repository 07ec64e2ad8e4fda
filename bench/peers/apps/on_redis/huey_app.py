"""Producer for huey, whose functions are in `huey_tasks`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.peers.apps.on_redis.huey_tasks import TASKS
from bench.peers.apps.producer import WaveProducer, main


class HueyProducer(WaveProducer):
    """Producer that calls the functions, which enqueues them; huey has no bulk call."""

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return TASKS[task](**payload)


@asynccontextmanager
async def open_producer(address: str) -> AsyncIterator[HueyProducer]:
    """Open a producer of the instance, which has the address from the environment."""
    assert address == os.environ["REDIS_URL"]
    yield HueyProducer()


if __name__ == "__main__":
    main(open_producer)
