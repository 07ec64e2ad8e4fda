"""dramatiq as its documentation has it: a broker for the process, and actors."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import dramatiq  # type: ignore[import-not-found]
from dramatiq.brokers.redis import RedisBroker  # type: ignore[import-not-found]

from bench.peers.apps.producer import NOTHING, PICKUP, InWaves, main, note_run, note_start

dramatiq.set_broker(RedisBroker(url=os.environ["REDIS_URL"]))


def noop(n: float) -> None:
    """Do nothing."""
    note_run(n)


def pickup(sent: float) -> None:
    """Print how long it took to be started."""
    note_start(sent)


TASKS = {
    NOTHING: dramatiq.actor(noop, actor_name=NOTHING),
    PICKUP: dramatiq.actor(pickup, actor_name=PICKUP),
}


class Producer(InWaves):
    """Sends messages; there is no call for many."""

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return TASKS[task].send(**payload)


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Producer]:
    """The broker knows the address from the environment."""
    assert address == os.environ["REDIS_URL"]
    yield Producer()


if __name__ == "__main__":
    main(opened)
