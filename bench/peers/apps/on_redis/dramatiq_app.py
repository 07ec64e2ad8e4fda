"""dramatiq by its documentation: a broker for the process, and actors."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import dramatiq  # type: ignore[import-not-found]
from dramatiq.brokers.redis import RedisBroker  # type: ignore[import-not-found]

from bench.peers.apps.producer import NOTHING, PICKUP, WaveProducer, main, record_run, record_start

dramatiq.set_broker(RedisBroker(url=os.environ["REDIS_URL"]))


def noop(n: float) -> None:
    """Do nothing."""
    record_run(n)


def pickup(sent: float) -> None:
    """Record the time from submit to start."""
    record_start(sent)


TASKS = {
    NOTHING: dramatiq.actor(noop, actor_name=NOTHING),
    PICKUP: dramatiq.actor(pickup, actor_name=PICKUP),
}


class DramatiqProducer(WaveProducer):
    """Producer that sends messages; dramatiq has no bulk call."""

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return TASKS[task].send(**payload)


@asynccontextmanager
async def open_producer(address: str) -> AsyncIterator[DramatiqProducer]:
    """Open a producer of the broker, which has the address from the environment."""
    assert address == os.environ["REDIS_URL"]
    yield DramatiqProducer()


if __name__ == "__main__":
    main(open_producer)
