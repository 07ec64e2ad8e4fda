"""Celery as its documentation has it: an app with a broker and no results."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from celery import Celery  # type: ignore[import-not-found]

from bench.peers.apps.producer import NOTHING, PICKUP, main, note_run, note_start

app = Celery("bench", broker=os.environ["REDIS_URL"])


def noop(n: float) -> None:
    """Do nothing."""
    note_run(n)


def pickup(sent: float) -> None:
    """Print how long it took to be started."""
    note_start(sent)


TASKS = {NOTHING: app.task(name=NOTHING)(noop), PICKUP: app.task(name=PICKUP)(pickup)}


class Producer:
    """Sends tasks over one connection; there is no call for many."""

    def __init__(self, connection: object) -> None:
        self._connection = connection

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return TASKS[task].delay(**payload)

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object:
        with app.producer_pool.acquire(block=True) as producer:
            for each in payloads:
                TASKS[task].apply_async(kwargs=each, producer=producer)
        return None


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Producer]:
    """The app knows the address from the environment."""
    assert address == os.environ["REDIS_URL"]
    with app.connection_for_write() as connection:
        yield Producer(connection)


if __name__ == "__main__":
    main(opened)
