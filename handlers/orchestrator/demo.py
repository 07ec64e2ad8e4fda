"""The demo of the orchestrator: jobs of every kind, with the expected and the actual outcome of each."""

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
from runtime.launch.show import DemoReport

TIMEOUT_S = 90.0
POLL_S = 0.1
FINAL = (STATUS_COMPLETED, STATUS_FAILED)
_STATUS_PREFIX = "STATUS_"


async def demo(client: Client, console: Console) -> int:
    """Run the jobs; return 0 if every outcome is the expected one."""
    return await OrchestratorDemo(client).run_and_print(console, TIMEOUT_S)


class OrchestratorDemo(DemoReport):
    """Every kind of job, one after the other."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client
        self._api = client.of(JobsServiceClient)
        self._run_id = uuid.uuid4().hex[:8]

    async def run(self) -> None:
        """Submit jobs, wait for them, and note their outcomes."""
        first = await self._submit("echo", {"hello": "world"}, "echo")
        again = await self._submit("echo", {"hello": "world"}, "echo")
        self.note("a job", "COMPLETED", await self._wait_for_end(first))
        self.note("the same key once more", "the same job", _compare_ids(first, again))
        batch = await self._api.submit_jobs(
            SubmitJobsRequest(jobs=[self._build_request("echo", {"n": n}, f"batch-{n}") for n in range(20)]),
            self._client.call(),
        )
        ends = {await self._wait_for_end(each) for each in batch.jobs}
        self.note("20 jobs in one request", "COMPLETED", " and ".join(sorted(ends)))
        fatal = await self._submit("fatal", {}, "fatal")
        self.note("a job that fails for good", "FAILED", await self._wait_for_end(fatal))
        retried = await self._api.retry_job(
            RetryJobRequest(job_id=fatal.job_id, idempotency_key=self._build_key("retry")),
            self._client.call(),
        )
        self.note("the failed job as a new one", "FAILED", await self._wait_for_end(retried))
        self.note("its id", "a new job", _compare_ids(fatal, retried))

    async def _submit(self, job_type: str, payload: object, key: str) -> SubmitJobResponse:
        return await self._api.submit_job(self._build_request(job_type, payload, key), self._client.call())

    def _build_request(self, job_type: str, payload: object, key: str) -> SubmitJobRequest:
        return SubmitJobRequest(
            job_type=job_type, payload=json.dumps(payload), idempotency_key=self._build_key(key)
        )

    def _build_key(self, name: str) -> str:
        return f"demo-{self._run_id}-{name}"

    async def _wait_for_end(self, accepted: SubmitJobResponse) -> str:
        while True:
            job = await self._api.get_job(GetJobRequest(job_id=accepted.job_id), self._client.call())
            if job.status in FINAL:
                return Status.Name(job.status).removeprefix(_STATUS_PREFIX)
            await asyncio.sleep(POLL_S)


def _compare_ids(one: SubmitJobResponse, other: SubmitJobResponse) -> str:
    return "the same job" if one.job_id == other.job_id else "a new job"
