"""Submits tasks to the priority queue's API over HTTP."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bench.peers.apps.http_client import Posts
from bench.peers.apps.producer import main

ACCEPTED = (200, 201)


class Producer:
    """Posts tasks."""

    def __init__(self, posts: Posts) -> None:
        self._posts = posts

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return await self._posts.post("/api/v1/tasks", _task(task, payload))

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object:
        tasks = [_task(task, each) for each in payloads]
        return await self._posts.post("/api/v1/tasks/batch", {"tasks": tasks})


def _task(task: str, payload: dict[str, float]) -> dict[str, object]:
    return {"task_type": task, "parameters": payload}


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Producer]:
    """A producer for the API at the address."""
    posts = Posts(address, ACCEPTED, os.environ["CLIENT_TOKEN"])
    try:
        yield Producer(posts)
    finally:
        posts.close()


if __name__ == "__main__":
    main(opened)
