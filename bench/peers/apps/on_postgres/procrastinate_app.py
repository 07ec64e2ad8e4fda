"""procrastinate by its documentation: an app with the asynchronous connector and its own pool."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import procrastinate  # type: ignore[import-not-found]

from bench.peers.apps.producer import NOTHING, PICKUP, main, record_start


async def noop(n: float) -> None:
    """Do nothing."""


async def pickup(sent: float) -> None:
    """Record the time from submit to start."""
    record_start(sent)


app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=os.environ.get("DATABASE_URL", "")))
TASKS = {NOTHING: app.task(name=NOTHING)(noop), PICKUP: app.task(name=PICKUP)(pickup)}


class ProcrastinateProducer:
    """Producer that defers jobs."""

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return await TASKS[task].defer_async(**payload)

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object:
        return await TASKS[task].batch_defer_async(*payloads)


@asynccontextmanager
async def open_producer(address: str) -> AsyncIterator[ProcrastinateProducer]:
    """Open the app, which has the address from its environment."""
    assert address == os.environ["DATABASE_URL"]
    async with app.open_async():
        yield ProcrastinateProducer()


if __name__ == "__main__":
    main(open_producer)
