"""Producer for the priority queue's API over HTTP."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bench.peers.apps.http_client import HttpPoster
from bench.peers.apps.producer import main

ACCEPTED = (200, 201)


class TaskPostProducer:
    """Producer that posts tasks."""

    def __init__(self, posts: HttpPoster) -> None:
        self._posts = posts

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return await self._posts.post("/api/v1/tasks", _make_task(task, payload))

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object:
        tasks = [_make_task(task, each) for each in payloads]
        return await self._posts.post("/api/v1/tasks/batch", {"tasks": tasks})


def _make_task(task: str, payload: dict[str, float]) -> dict[str, object]:
    return {"task_type": task, "parameters": payload}


@asynccontextmanager
async def open_producer(address: str) -> AsyncIterator[TaskPostProducer]:
    """Open a producer for the API at the address."""
    posts = HttpPoster(address, ACCEPTED, os.environ["CLIENT_TOKEN"])
    try:
        yield TaskPostProducer(posts)
    finally:
        posts.close()


if __name__ == "__main__":
    main(open_producer)
