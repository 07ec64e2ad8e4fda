"""taskiq as its documentation has it: the broker with acknowledgements, on a stream."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from taskiq_redis import RedisStreamBroker  # type: ignore[import-not-found]

from bench.peers.apps.producer import NOTHING, PICKUP, InWaves, main, note_run, note_start

broker = RedisStreamBroker(url=os.environ["REDIS_URL"])
"""What `taskiq worker` runs."""


async def noop(n: float) -> None:
    """Do nothing."""
    note_run(n)


async def pickup(sent: float) -> None:
    """Print how long it took to be started."""
    note_start(sent)


TASKS = {
    NOTHING: broker.task(task_name=NOTHING)(noop),
    PICKUP: broker.task(task_name=PICKUP)(pickup),
}


class Producer(InWaves):
    """Kicks tasks; there is no call for many."""

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return await TASKS[task].kiq(**payload)


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Producer]:
    """The broker knows the address from the environment."""
    assert address == os.environ["REDIS_URL"]
    await broker.startup()
    try:
        yield Producer()
    finally:
        await broker.shutdown()


if __name__ == "__main__":
    main(opened)
