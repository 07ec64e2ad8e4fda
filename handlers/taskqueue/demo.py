"""The demo of the task queue: a mixed batch of jobs, with the expected and the actual outcome of each."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from generated.taskqueue.clients import TaskQueuePublicServiceClient
from generated.taskqueue.errors import OUTPUT_TOO_LARGE, SIMULATED_FAILURE
from generated.taskqueue.lifecycle import JOB
from generated.taskqueue.messages import (
    CANCELED,
    QUEUED,
    RUNNING,
    CancelJobRequest,
    GetJobResultRequest,
    GetJobStatusRequest,
    GetJobStatusResponse,
    JobSpec,
    JobStatus,
    SubmitJobRequest,
)
from runtime.call.conditions import Condition, Failure
from runtime.client import Client

TIMEOUT_S = 60.0
POLL_S = 0.1
SLOTS = 6
"""The number of jobs that run at a time: with so many long ones before it, a job is sure to wait."""
SHORT = JobSpec(job_type="resize", work_duration_ms=50, payload_size_bytes=1024)
LONG_MS = (2000, 15_000)
"""Durations of a long job. The second is for a machine so busy that jobs of the first end too soon."""
FAILING = JobSpec(job_type="fail", work_duration_ms=50)
OVERSIZED = JobSpec(job_type="export", work_duration_ms=50, payload_size_bytes=300_000)


@dataclass
class ExpectedRow:
    """One row of the closing table."""

    what: str
    expected: str
    jobs: list[str] = field(default_factory=list)
    seen: str = ""

    @property
    def is_expected(self) -> bool:
        return self.seen == self.expected


async def demo(client: Client, console: Console) -> int:
    """Run the batch; return 0 if every outcome is the expected one."""
    batch = DemoBatch(client)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await batch.submit()
            await batch.finish(console)
            await batch.read_results()
    except TimeoutError:
        console.print(f"Not all jobs were final after {TIMEOUT_S:g} s.")
    except Failure as failure:
        console.print(f"The demo broke off: {failure}", markup=False)
    console.print(batch.build_table())
    return 0 if all(row.is_expected for row in batch.rows) else 1


class DemoBatch:
    """Jobs of every kind, and their expected outcomes."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._api = client.of(TaskQueuePublicServiceClient)
        self._final: dict[str, GetJobStatusResponse] = {}
        self._short = ExpectedRow("3 short jobs", "3 x DONE, 1,024 bytes")
        self._long = ExpectedRow(f"{SLOTS - 1} long jobs", f"{SLOTS - 1} x DONE, 65,536 bytes")
        self._failing = ExpectedRow("a failing job", f"FAILED: {SIMULATED_FAILURE}")
        self._oversized = ExpectedRow("too much output", f"FAILED: {OUTPUT_TOO_LARGE}")
        self._queued = ExpectedRow("canceled while queued", "CANCELED, never started")
        self._running = ExpectedRow("canceled while running", "CANCELED, was started")
        self._same_key = ExpectedRow("same key again", "same job; 1,024 bytes")
        self._other_spec = ExpectedRow("same key, other spec", "request_key_reused")
        self.rows = [
            *(self._short, self._long, self._failing, self._oversized),
            *(self._queued, self._running, self._same_key, self._other_spec),
        ]

    async def submit(self) -> None:
        """Submit all jobs, and cancel two of them."""
        for work_ms in LONG_MS:
            if await self._cancel_waiting_and_running(work_ms):
                break
        self._short.jobs = [await self._submit(SHORT) for _ in range(3)]
        self._failing.jobs = [await self._submit(FAILING)]
        self._oversized.jobs = [await self._submit(OVERSIZED)]
        self._same_key.jobs = [await self._submit(SHORT, key="demo") for _ in range(2)]
        try:
            await self._submit(FAILING, key="demo")
            self._other_spec.seen = "accepted"
        except Condition as refusal:
            self._other_spec.seen = refusal.code

    async def _cancel_waiting_and_running(self, work_ms: int) -> bool:
        """Fill all slots, cancel a queued and a running job; return whether they were in those states."""
        long = JobSpec(job_type="render", work_duration_ms=work_ms, payload_size_bytes=65536)
        long_jobs = [await self._submit(long) for _ in range(SLOTS)]
        self._running.jobs, self._long.jobs = long_jobs[:1], long_jobs[1:]
        self._queued.jobs = [await self._submit(SHORT)]
        queued = await self._cancel(self._queued.jobs[0])
        await self._wait_for_start(self._running.jobs[0])
        running = await self._cancel(self._running.jobs[0])
        return (queued, running) == (CANCELED, RUNNING)

    async def finish(self, console: Console) -> None:
        """Wait until all jobs are final."""
        open_jobs = {job_id for row in self.rows for job_id in row.jobs}
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console) as progress:
            task = progress.add_task("Jobs", total=len(open_jobs))
            while open_jobs:
                for job_id in sorted(open_jobs):
                    status = await self._get_status(job_id)
                    if status.status in JOB.terminal:
                        self._final[job_id] = status
                        open_jobs.discard(job_id)
                        progress.advance(task)
                await asyncio.sleep(POLL_S if open_jobs else 0)

    async def read_results(self) -> None:
        """Read the results."""
        for row in (self._short, self._long):
            endings = [await self._describe_ending(job_id) for job_id in row.jobs]
            kinds = sorted(set(endings))
            row.seen = ", ".join(f"{endings.count(kind)} x {kind}" for kind in kinds)
        for row in (self._failing, self._oversized):
            row.seen = await self._describe_ending(row.jobs[0])
        for row in (self._queued, self._running):
            final = self._final[row.jobs[0]]
            began = "was started" if final.started_at_ms else "never started"
            row.seen = f"{JobStatus.Name(final.status)}, {began}"
        first, second = self._same_key.jobs
        same = "same job" if first == second else "another job"
        self._same_key.seen = f"{same}; {(await self._describe_ending(first)).removeprefix('DONE, ')}"

    def build_table(self) -> Table:
        """Build the table of expected and actual outcomes."""
        table = Table("", "what", "expected", "seen", box=None, pad_edge=False)
        for row in self.rows:
            verdict = "[green]ok[/]" if row.is_expected else "[red]no[/]"
            table.add_row(verdict, row.what, row.expected, row.seen or "nothing")
        return table

    async def _submit(self, spec: JobSpec, key: str = "") -> str:
        request = SubmitJobRequest(spec=spec, client_request_id=key)
        return (await self._api.submit_job(request, self._client.call())).job_id

    async def _wait_for_start(self, job_id: str) -> None:
        while (await self._get_status(job_id)).status == QUEUED:
            await asyncio.sleep(POLL_S)

    async def _cancel(self, job_id: str) -> JobStatus.ValueType:
        """Cancel a job; return its status after that."""
        request = CancelJobRequest(job_id=job_id, reason="part of the demo")
        return (await self._api.cancel_job(request, self._client.call())).current_status

    async def _get_status(self, job_id: str) -> GetJobStatusResponse:
        return await self._api.get_job_status(GetJobStatusRequest(job_id=job_id), self._client.call())

    async def _describe_ending(self, job_id: str) -> str:
        """Describe the final state of a job: its output size or the reason of its failure."""
        final = self._final[job_id]
        if final.failure_reason:
            return f"{JobStatus.Name(final.status)}: {final.failure_reason}"
        result = await self._api.get_job_result(GetJobResultRequest(job_id=job_id), self._client.call())
        return f"{JobStatus.Name(result.terminal_status)}, {len(result.output_bytes):,} bytes"
