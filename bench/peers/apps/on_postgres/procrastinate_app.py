"""procrastinate as its documentation has it: an app with the asynchronous connector and its own pool."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import procrastinate  # type: ignore[import-not-found]

from bench.peers.apps.producer import NOTHING, PICKUP, main, note_start


async def noop(n: float) -> None:
    """Do nothing."""


async def pickup(sent: float) -> None:
    """Print how long it took to be started."""
    note_start(sent)


app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=os.environ.get("DATABASE_URL", "")))
TASKS = {NOTHING: app.task(name=NOTHING)(noop), PICKUP: app.task(name=PICKUP)(pickup)}


class Producer:
    """Defers jobs."""

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return await TASKS[task].defer_async(**payload)

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object:
        return await TASKS[task].batch_defer_async(*payloads)


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Producer]:
    """Open the app, which knows the address from its environment."""
    assert address == os.environ["DATABASE_URL"]
    async with app.open_async():
        yield Producer()


if __name__ == "__main__":
    main(opened)
