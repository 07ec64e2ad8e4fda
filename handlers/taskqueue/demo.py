"""The demo of the task queue: a mixed batch of jobs, what was to be expected of each and what came of it."""

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

PATIENCE = 60.0
LOOK_EVERY = 0.1
SLOTS = 6
"""As many jobs as run at a time: with so many long ones before it, a job is sure to wait."""
SHORT = JobSpec(job_type="resize", work_duration_ms=50, payload_size_bytes=1024)
LONG_MS = (2000, 15_000)
"""How long a long job takes. The longer one is for a machine that is so busy that even those end too soon."""
FAILING = JobSpec(job_type="fail", work_duration_ms=50)
OVERSIZED = JobSpec(job_type="export", work_duration_ms=50, payload_size_bytes=300_000)


@dataclass
class Line:
    """One line of the closing table."""

    what: str
    expected: str
    jobs: list[str] = field(default_factory=list)
    seen: str = ""

    @property
    def as_expected(self) -> bool:
        return self.seen == self.expected


async def demo(client: Client, console: Console) -> int:
    """Runs the batch; 0 if every outcome is the expected one."""
    batch = Batch(client)
    try:
        async with asyncio.timeout(PATIENCE):
            await batch.submit()
            await batch.finish(console)
            await batch.look()
    except TimeoutError:
        console.print(f"Not all jobs were final after {PATIENCE:g} s.")
    except Failure as failure:
        console.print(f"The demo broke off: {failure}", markup=False)
    console.print(batch.table())
    return 0 if all(line.as_expected for line in batch.lines) else 1


class Batch:
    """Jobs of every kind, and what is to come of them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._api = client.of(TaskQueuePublicServiceClient)
        self._final: dict[str, GetJobStatusResponse] = {}
        self._short = Line("3 short jobs", "3 x DONE, 1,024 bytes")
        self._long = Line(f"{SLOTS - 1} long jobs", f"{SLOTS - 1} x DONE, 65,536 bytes")
        self._failing = Line("a failing job", f"FAILED: {SIMULATED_FAILURE}")
        self._oversized = Line("too much output", f"FAILED: {OUTPUT_TOO_LARGE}")
        self._queued = Line("canceled while queued", "CANCELED, never started")
        self._running = Line("canceled while running", "CANCELED, was started")
        self._same_key = Line("same key again", "same job; 1,024 bytes")
        self._other_spec = Line("same key, other spec", "request_key_reused")
        self.lines = [
            *(self._short, self._long, self._failing, self._oversized),
            *(self._queued, self._running, self._same_key, self._other_spec),
        ]

    async def submit(self) -> None:
        """Hands in everything, and cancels what is to be canceled."""
        for work_ms in LONG_MS:
            if await self._cancel_in_time(work_ms):
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

    async def _cancel_in_time(self, work_ms: int) -> bool:
        """Fills all slots, and cancels a job that waits and one that runs; whether they still did."""
        long = JobSpec(job_type="render", work_duration_ms=work_ms, payload_size_bytes=65536)
        long_jobs = [await self._submit(long) for _ in range(SLOTS)]
        self._running.jobs, self._long.jobs = long_jobs[:1], long_jobs[1:]
        self._queued.jobs = [await self._submit(SHORT)]
        queued = await self._cancel(self._queued.jobs[0])
        await self._started(self._running.jobs[0])
        running = await self._cancel(self._running.jobs[0])
        return (queued, running) == (CANCELED, RUNNING)

    async def finish(self, console: Console) -> None:
        """Waits until all jobs are final."""
        open_jobs = {job_id for line in self.lines for job_id in line.jobs}
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console) as progress:
            task = progress.add_task("Jobs", total=len(open_jobs))
            while open_jobs:
                for job_id in sorted(open_jobs):
                    status = await self._status(job_id)
                    if status.status in JOB.terminal:
                        self._final[job_id] = status
                        open_jobs.discard(job_id)
                        progress.advance(task)
                await asyncio.sleep(LOOK_EVERY if open_jobs else 0)

    async def look(self) -> None:
        """Reads the results."""
        for line in (self._short, self._long):
            endings = [await self._ending(job_id) for job_id in line.jobs]
            kinds = sorted(set(endings))
            line.seen = ", ".join(f"{endings.count(kind)} x {kind}" for kind in kinds)
        for line in (self._failing, self._oversized):
            line.seen = await self._ending(line.jobs[0])
        for line in (self._queued, self._running):
            final = self._final[line.jobs[0]]
            began = "was started" if final.started_at_ms else "never started"
            line.seen = f"{JobStatus.Name(final.status)}, {began}"
        first, second = self._same_key.jobs
        same = "same job" if first == second else "another job"
        self._same_key.seen = f"{same}; {(await self._ending(first)).removeprefix('DONE, ')}"

    def table(self) -> Table:
        """What was expected and what was seen."""
        table = Table("", "what", "expected", "seen", box=None, pad_edge=False)
        for line in self.lines:
            mark = "[green]ok[/]" if line.as_expected else "[red]no[/]"
            table.add_row(mark, line.what, line.expected, line.seen or "nothing")
        return table

    async def _submit(self, spec: JobSpec, key: str = "") -> str:
        request = SubmitJobRequest(spec=spec, client_request_id=key)
        return (await self._api.submit_job(request, self._client.call())).job_id

    async def _started(self, job_id: str) -> None:
        while (await self._status(job_id)).status == QUEUED:
            await asyncio.sleep(LOOK_EVERY)

    async def _cancel(self, job_id: str) -> JobStatus.ValueType:
        """Cancels a job; the status that it has then."""
        request = CancelJobRequest(job_id=job_id, reason="part of the demo")
        return (await self._api.cancel_job(request, self._client.call())).current_status

    async def _status(self, job_id: str) -> GetJobStatusResponse:
        return await self._api.get_job_status(GetJobStatusRequest(job_id=job_id), self._client.call())

    async def _ending(self, job_id: str) -> str:
        """The final state of a job, and its output or the reason for its failure."""
        final = self._final[job_id]
        if final.failure_reason:
            return f"{JobStatus.Name(final.status)}: {final.failure_reason}"
        result = await self._api.get_job_result(GetJobResultRequest(job_id=job_id), self._client.call())
        return f"{JobStatus.Name(result.terminal_status)}, {len(result.output_bytes):,} bytes"
