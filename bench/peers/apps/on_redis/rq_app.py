"""rq as its documentation has it: a queue on a connection, and a worker that forks for each job."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from redis import Redis
from rq import Queue  # type: ignore[import-not-found]

from bench.peers.apps.producer import NOTHING, PICKUP, main, note_run, note_start


def noop(n: float) -> None:
    """Do nothing."""
    note_run(n)


def pickup(sent: float) -> None:
    """Print how long it took to be started."""
    note_start(sent)


TASKS = {each: f"bench.peers.apps.on_redis.rq_app.{each}" for each in (NOTHING, PICKUP)}
"""By the names by which a worker finds them."""


class Producer:
    """Enqueues jobs."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return self._queue.enqueue(TASKS[task], kwargs=payload)

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object:
        jobs = [Queue.prepare_data(TASKS[task], kwargs=each) for each in payloads]
        return self._queue.enqueue_many(jobs)


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Producer]:
    """A connection of its own."""
    with Redis.from_url(address) as connection:
        yield Producer(Queue(connection=connection))


if __name__ == "__main__":
    main(opened)
