"""The demo of the queue for WASI jobs: binaries of every kind, with the expected and actual outcomes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rich.console import Console

from generated.queuey.clients import QueueServiceClient
from generated.queuey.messages import (
    FAILED,
    CountJobsRequest,
    CreateJobRequest,
    GetJobRequest,
    GetReportRequest,
    Job,
    JobStatus,
    RetryJobRequest,
)
from handlers.queuey.blob_client import BlobClient
from handlers.queuey.samples import binary
from runtime.client import Client
from runtime.launch.show import DemoReport

PRINCIPAL = "client"
TIMEOUT_S = 120.0
_WAIT_MS = 10_000
_TEXT = b"the quick brown fox jumps over the lazy dog\n" * 1000
_SANDBOXED = {
    "one that traps": ("trap", "TRAPPED"),
    "one that ends with 7": ("exit", "EXITED"),
    "one that wants all memory": ("hog", "TRAPPED"),
    "one that looks for files": ("files", "completed"),
}


async def demo(client: Client, console: Console) -> int:
    """Run the binaries; return 0 if every outcome is the expected one."""
    with tempfile.TemporaryDirectory() as folder:
        tls, token = client.http_credentials()
        async with BlobClient(client.urls["store"], token, tls) as store:
            return await QueueyDemo(client, store, Path(folder)).run_and_print(console, TIMEOUT_S)


class QueueyDemo(DemoReport):
    """Every kind of binary, one after the other."""

    def __init__(self, client: Client, store: BlobClient, folder: Path) -> None:
        super().__init__()
        self._client = client
        self._queue = client.of(QueueServiceClient)
        self._store = store
        self._folder = folder

    async def run(self) -> None:
        """Store, submit and wait for binaries, and note their outcomes."""
        words, text = await self._put(binary("words")), await self._put(_TEXT)
        counted = await self._wait_for_end(await self._submit(words, text))
        self.note(
            f"words of {len(_TEXT):,} bytes", "9000", (await self._fetch_output(counted)).strip().decode()
        )
        self.note("the same content once more", "the same address", _compare(text, await self._put(_TEXT)))
        jobs = [await self._submit(words, text) for _ in range(20)]
        ends = {_format_status(await self._wait_for_end(each)) for each in jobs}
        self.note("20 jobs", "completed", " and ".join(sorted(ends)))
        for what, (sample, expected) in _SANDBOXED.items():
            job = await self._wait_for_end(await self._submit(await self._put(binary(sample))))
            self.note(what, expected, await self._describe_end(job))
        missing = await self._wait_for_end(await self._submit("0" * 64))
        self.note("one that was never stored", "NOT_FOUND", await self._describe_end(missing))
        again = await self._queue.retry_job(RetryJobRequest(job_id=missing.job_id), self._client.call())
        self.note("the same once more", "another job", _compare(missing.job_id, again.job_id, "another job"))
        await self._wait_for_end(again)
        counts = await self._queue.count_jobs(CountJobsRequest(), self._client.call())
        self.note("jobs that still wait or run", "0", str(counts.pending + counts.active))

    async def _put(self, content: bytes) -> str:
        path = self._folder / "content"
        path.write_bytes(content)
        return await self._store.put(path)

    async def _fetch_output(self, job: Job) -> bytes:
        path = self._folder / "output"
        await self._store.get(job.output_addr, path)
        return path.read_bytes()

    async def _submit(self, binary_addr: str, input_addr: str | None = None) -> Job:
        request = CreateJobRequest(binary_addr=binary_addr, input_addr=input_addr)
        return await self._queue.create_job(request, self._client.call())

    async def _wait_for_end(self, job: Job) -> Job:
        """Wait until a job has ended; return it."""
        while not job.HasField("completed_at") and job.status != FAILED:
            request = GetJobRequest(job_id=job.job_id, wait_ms=_WAIT_MS)
            job = await self._queue.get_job(request, self._client.call())
        return job

    async def _describe_end(self, job: Job) -> str:
        """Describe the end of a job: the reason of its failure, or that it completed."""
        report = await self._queue.get_report(GetReportRequest(job_id=job.job_id), self._client.call())
        return report.reason.partition(":")[0] or _format_status(job)


def _format_status(job: Job) -> str:
    return JobStatus.Name(job.status).lower()


def _compare(first: str, second: str, otherwise: str = "another address") -> str:
    return "the same address" if first == second else otherwise
