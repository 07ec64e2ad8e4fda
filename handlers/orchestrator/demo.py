"""The demo of the orchestrator: jobs of every kind, what was to be expected of each and what came of it."""

from __future__ import annotations

import asyncio
import json
import uuid

from rich.console import Console

from generated.orchestrator.clients import JobsServiceClient
from generated.orchestrator.messages import (
    STATUS_COMPLETED,
    STATUS_FAILED,
    GetJobRequest,
    RetryJobRequest,
    Status,
    SubmitJobRequest,
    SubmitJobResponse,
    SubmitJobsRequest,
)
from runtime.client import Client
from runtime.launch.show import Show

PATIENCE = 90.0
LOOK_EVERY = 0.1
FINAL = (STATUS_COMPLETED, STATUS_FAILED)
_SHOWN_PREFIX = "STATUS_"


async def demo(client: Client, console: Console) -> int:
    """Runs the jobs; 0 if every outcome is the expected one."""
    return await Jobs(client).shown(console, PATIENCE)


class Jobs(Show):
    """Every kind of job, one after the other."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client
        self._api = client.of(JobsServiceClient)
        self._run = uuid.uuid4().hex[:8]

    async def run(self) -> None:
        """Submits, waits, and notes what came of it."""
        first = await self._submit("echo", {"hello": "world"}, "echo")
        again = await self._submit("echo", {"hello": "world"}, "echo")
        self.note("a job", "COMPLETED", await self._final(first))
        self.note("the same key once more", "the same job", _same(first, again))
        batch = await self._api.submit_jobs(
            SubmitJobsRequest(jobs=[self._request("echo", {"n": n}, f"batch-{n}") for n in range(20)]),
            self._client.call(),
        )
        ends = {await self._final(each) for each in batch.jobs}
        self.note("20 jobs in one request", "COMPLETED", " and ".join(sorted(ends)))
        fatal = await self._submit("fatal", {}, "fatal")
        self.note("a job that fails for good", "FAILED", await self._final(fatal))
        retried = await self._api.retry_job(
            RetryJobRequest(job_id=fatal.job_id, idempotency_key=self._key("retry")), self._client.call()
        )
        self.note("the failed job as a new one", "FAILED", await self._final(retried))
        self.note("its id", "a new job", _same(fatal, retried))

    async def _submit(self, job_type: str, payload: object, key: str) -> SubmitJobResponse:
        return await self._api.submit_job(self._request(job_type, payload, key), self._client.call())

    def _request(self, job_type: str, payload: object, key: str) -> SubmitJobRequest:
        return SubmitJobRequest(
            job_type=job_type, payload=json.dumps(payload), idempotency_key=self._key(key)
        )

    def _key(self, name: str) -> str:
        return f"demo-{self._run}-{name}"

    async def _final(self, accepted: SubmitJobResponse) -> str:
        while True:
            job = await self._api.get_job(GetJobRequest(job_id=accepted.job_id), self._client.call())
            if job.status in FINAL:
                return Status.Name(job.status).removeprefix(_SHOWN_PREFIX)
            await asyncio.sleep(LOOK_EVERY)


def _same(one: SubmitJobResponse, other: SubmitJobResponse) -> str:
    return "the same job" if one.job_id == other.job_id else "a new job"
