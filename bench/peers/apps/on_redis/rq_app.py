"""rq by its documentation: a queue on a connection, and a worker that forks for each job."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from redis import Redis
from rq import Queue  # type: ignore[import-not-found]

from bench.peers.apps.producer import NOTHING, PICKUP, main, record_run, record_start


def noop(n: float) -> None:
    """Do nothing."""
    record_run(n)


def pickup(sent: float) -> None:
    """Record the time from submit to start."""
    record_start(sent)


TASKS = {each: f"bench.peers.apps.on_redis.rq_app.{each}" for each in (NOTHING, PICKUP)}
"""The dotted names by which a worker imports the functions."""


class RqProducer:
    """Producer that enqueues jobs."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return self._queue.enqueue(TASKS[task], kwargs=payload)

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object:
        jobs = [Queue.prepare_data(TASKS[task], kwargs=each) for each in payloads]
        return self._queue.enqueue_many(jobs)


@asynccontextmanager
async def open_producer(address: str) -> AsyncIterator[RqProducer]:
    """Open a queue on a connection of its own."""
    with Redis.from_url(address) as connection:
        yield RqProducer(Queue(connection=connection))


if __name__ == "__main__":
    main(open_producer)
