"""Celery by its documentation: an app with a broker and no results."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from celery import Celery  # type: ignore[import-not-found]

from bench.peers.apps.producer import NOTHING, PICKUP, main, record_run, record_start

app = Celery("bench", broker=os.environ["REDIS_URL"])


def noop(n: float) -> None:
    """Do nothing."""
    record_run(n)


def pickup(sent: float) -> None:
    """Record the time from submit to start."""
    record_start(sent)


TASKS = {NOTHING: app.task(name=NOTHING)(noop), PICKUP: app.task(name=PICKUP)(pickup)}


class CeleryProducer:
    """Producer that sends tasks over one connection; Celery has no bulk call."""

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
async def open_producer(address: str) -> AsyncIterator[CeleryProducer]:
    """Open a connection of the app, which has the address from the environment."""
    assert address == os.environ["REDIS_URL"]
    with app.connection_for_write() as connection:
        yield CeleryProducer(connection)


if __name__ == "__main__":
    main(open_producer)
