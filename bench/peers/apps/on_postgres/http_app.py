"""Submits jobs to the orchestrator's API over HTTP."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bench.peers.apps.http_client import Posts
from bench.peers.apps.producer import main

ACCEPTED = (202,)
JOB_TYPES = {"noop": "echo", "pickup": "pickup"}
"""`echo` is a job type that every worker of the system has; it returns its payload."""


class Producer:
    """Posts jobs, each under a key of its own."""

    def __init__(self, posts: Posts) -> None:
        self._posts = posts

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return await self._posts.post("/jobs", _job(task, payload))

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object:
        return await self._posts.post("/jobs/batch", {"jobs": [_job(task, each) for each in payloads]})


def _job(task: str, payload: dict[str, float]) -> dict[str, object]:
    return {"jobType": JOB_TYPES[task], "payload": payload, "idempotencyKey": str(uuid.uuid4())}


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Producer]:
    """A producer for the API at the address."""
    posts = Posts(address, ACCEPTED)
    try:
        yield Producer(posts)
    finally:
        posts.close()


if __name__ == "__main__":
    main(opened)
