"""Producer for the orchestrator's API over HTTP."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bench.peers.apps.http_client import HttpPoster
from bench.peers.apps.producer import main

ACCEPTED = (202,)
JOB_TYPES = {"noop": "echo", "pickup": "pickup"}
"""`echo` is a job type that every worker of the system has; it returns its payload."""


class JobPostProducer:
    """Producer that posts jobs, each with an idempotency key of its own."""

    def __init__(self, posts: HttpPoster) -> None:
        self._posts = posts

    async def submit(self, task: str, payload: dict[str, float]) -> object:
        return await self._posts.post("/jobs", _make_job(task, payload))

    async def submit_all(self, task: str, payloads: Sequence[dict[str, float]]) -> object:
        return await self._posts.post("/jobs/batch", {"jobs": [_make_job(task, each) for each in payloads]})


def _make_job(task: str, payload: dict[str, float]) -> dict[str, object]:
    return {"jobType": JOB_TYPES[task], "payload": payload, "idempotencyKey": str(uuid.uuid4())}


@asynccontextmanager
async def open_producer(address: str) -> AsyncIterator[JobPostProducer]:
    """Open a producer for the API at the address."""
    posts = HttpPoster(address, ACCEPTED)
    try:
        yield JobPostProducer(posts)
    finally:
        posts.close()


if __name__ == "__main__":
    main(open_producer)
