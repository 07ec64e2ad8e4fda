"""taskiq by its documentation: the broker with acknowledgements, on a stream."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from taskiq_redis import RedisStreamBroker  # type: ignore[import-not-found]

from bench.peers.apps.producer import NOTHING, PICKUP, WaveProducer, main, record_run, record_start

broker = RedisStreamBroker(url=os.environ["REDIS_URL"])
"""The broker for `taskiq worker`."""


async def noop(n: float) -> None:
    """Do nothing."""
    record_run(n)


async def pickup(sent: float) -> None:
    """Record the time from submit to start."""
    record_start(sent)


TASKS = {
    NOTHING: broker.task(task_name=NOTHING)(noop),
    PICKUP: broker.task(task_name=PICKUP)(pickup),
}


class TaskiqProducer(WaveProducer):
    """Producer that kicks tasks; taskiq has no bulk call."""

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return await TASKS[task].kiq(**payload)


@asynccontextmanager
async def open_producer(address: str) -> AsyncIterator[TaskiqProducer]:
    """Start the broker, which has the address from the environment."""
    assert address == os.environ["REDIS_URL"]
    await broker.startup()
    try:
        yield TaskiqProducer()
    finally:
        await broker.shutdown()


if __name__ == "__main__":
    main(open_producer)
