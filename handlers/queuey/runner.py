"""The runner: claims jobs, runs their binaries with heartbeats, and reports their outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from generated.queuey.errors import CORRUPT, NOT_FOUND, OUTPUT_TOO_LARGE
from generated.queuey.events import JOB_LOST, RUNNER_STARTED, RUNNER_TROUBLE, STORE_AWAY
from generated.queuey.messages import (
    COMPLETED,
    FAILED,
    ClaimJobRequest,
    CompleteJobRequest,
    Job,
    JobStatus,
    ReleaseJobRequest,
    TickleJobRequest,
)
from generated.queuey.services import QueueService
from generated.queuey.settings import RunnerSettings
from handlers.queuey.blob_client import BlobClient, BlobCorrupt, BlobMissing, BlobRefused, StoreUnavailable
from handlers.queuey.blobs import is_address
from handlers.queuey.sandbox import Limits, SandboxPool
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.transport.tls import HttpTls

Answer = TypeVar("Answer")

_CLAIM_WAIT_MS = 2000
_TRANSIENT_CODES = ("UNAVAILABLE", "DEADLINE_EXCEEDED")
_FIRST_BACKOFF_S, _MAX_BACKOFF_S = 0.1, 5.0
_HEARTBEATS_PER_LEASE = 3
"""The number of heartbeats in the time after which a job counts as abandoned."""


class JobOutcome(NamedTuple):
    """The outcome of a run, in the fields of the queue."""

    status: JobStatus.ValueType
    output_addr: str | None = None
    stderr_addr: str | None = None
    exit_code: int | None = None
    reason: str | None = None


class Runner:
    """A runner with several slots, each for one job at a time."""

    def __init__(self, queue: QueueService, settings: RunnerSettings, tls: HttpTls) -> None:
        self._queue = queue
        self._settings = settings
        self._tls = tls
        self._limits = Limits(
            seconds=settings.run_seconds,
            fuel=settings.run_fuel,
            memory_bytes=settings.run_memory_bytes,
            output_bytes=settings.run_output_bytes,
        )

    async def run(self, call: Call, stopping: asyncio.Event) -> None:
        """Claim and run jobs until shutdown."""
        settings = self._settings
        call.tell(RUNNER_STARTED, f"{settings.runner_concurrency} slots", runner_id=settings.runner_id)
        token = settings.caller_token or None
        async with (
            SandboxPool(self._limits) as sandboxes,
            BlobClient(settings.store_url or "", token, self._tls.context) as blobs,
            asyncio.TaskGroup() as slots,
        ):
            for _ in range(settings.runner_concurrency):
                slots.create_task(_Slot(self._queue, settings, sandboxes, blobs, call).serve(stopping))


class _Slot:
    def __init__(
        self,
        queue: QueueService,
        settings: RunnerSettings,
        sandboxes: SandboxPool,
        blobs: BlobClient,
        call: Call,
    ) -> None:
        self._queue = queue
        self._settings = settings
        self._sandboxes = sandboxes
        self._blobs = blobs
        self._call = call

    async def serve(self, stopping: asyncio.Event) -> None:
        """Claim and run one job after the other until shutdown."""
        backoff = _FIRST_BACKOFF_S
        claim = ClaimJobRequest(runner_id=self._settings.runner_id, wait_ms=_CLAIM_WAIT_MS)
        while not stopping.is_set():
            try:
                job = await self._queue.claim_job(claim, self._call)
            except Failure:
                await self._call.world.sleep(self._call.world.uniform(backoff / 2, backoff))
                backoff = min(2 * backoff, _MAX_BACKOFF_S)
                continue
            backoff = _FIRST_BACKOFF_S
            if job.job_id:
                await self._run_claimed(job, stopping)

    async def _run_claimed(self, job: Job, stopping: asyncio.Event) -> None:
        """Run a claimed job while its lease is held; release it where the runner stops before its end."""
        running = asyncio.create_task(self._run_job(job))
        heartbeats = asyncio.create_task(self._send_heartbeats(job))
        shutdown = asyncio.create_task(self._wait_for_shutdown(stopping))
        try:
            await asyncio.wait({running, heartbeats, shutdown}, return_when=asyncio.FIRST_COMPLETED)
            if running.done() and isinstance(error := running.exception(), OSError):
                # No disk or no processes left here: nothing is wrong with the job, so let another runner try.
                self._call.tell(RUNNER_TROUBLE, str(error), job_id=job.job_id)
                await self._release(job, abandoned=True)
                await self._call.world.sleep(_MAX_BACKOFF_S)
            elif running.done():
                await self._report_outcome(job, running.result())
            elif heartbeats.done():
                self._call.tell(JOB_LOST, "it is another's by now; its run is ended", job_id=job.job_id)
            else:
                await self._release(job)
        finally:
            for task in (running, heartbeats, shutdown):
                task.cancel()
            await asyncio.gather(running, heartbeats, shutdown, return_exceptions=True)

    async def _wait_for_shutdown(self, stopping: asyncio.Event) -> None:
        await stopping.wait()
        await asyncio.sleep(self._settings.shutdown_grace_seconds)

    async def _send_heartbeats(self, job: Job) -> None:
        """Renew the lease of a job by heartbeats; return when it is lost."""
        request = TickleJobRequest(
            job_id=job.job_id, runner_id=self._settings.runner_id, run_attempts=job.run_attempts
        )
        while True:
            await self._call.world.sleep(self._settings.abandoned_age / _HEARTBEATS_PER_LEASE)
            try:
                await self._queue.tickle_job(request, self._call)
            except Failure as failure:
                if failure.grpc not in _TRANSIENT_CODES:
                    return

    async def _run_job(self, job: Job) -> JobOutcome:
        """Fetch the binary and the input, run it, and store its output."""
        async with self._sandboxes.scratch() as scratch:
            stdin = scratch / "stdin"
            stdin.touch()
            try:
                binary = await self._fetch_binary(job.binary_addr)
                if job.HasField("input_addr"):
                    await self._retry_while_unavailable(lambda: self._blobs.get(job.input_addr, stdin))
            except BlobMissing as missing:
                return JobOutcome(FAILED, reason=f"{NOT_FOUND}: nothing is stored under {missing}")
            except BlobCorrupt as corrupt:
                detail = f"what is stored under {corrupt} is not its content any more; upload it again"
                return JobOutcome(FAILED, reason=f"{CORRUPT}: {detail}")
            run = await self._sandboxes.run(job.binary_addr, binary, stdin, scratch)
            try:
                output = await self._retry_while_unavailable(lambda: self._blobs.put(run.stdout))
                errors = (
                    await self._retry_while_unavailable(lambda: self._blobs.put(run.stderr))
                    if _has_content(run.stderr)
                    else None
                )
            except BlobRefused as refused:
                return JobOutcome(FAILED, exit_code=run.exit_code, reason=f"{OUTPUT_TOO_LARGE}: {refused}")
        if run.reason is None:
            return JobOutcome(COMPLETED, output, errors, run.exit_code)
        return JobOutcome(FAILED, output, errors, run.exit_code, f"{run.reason}: {run.detail}")

    async def _fetch_binary(self, address: str) -> Path:
        """Fetch a binary once for all of its runs."""
        if not is_address(address):
            raise BlobMissing(address)
        path = self._sandboxes.binary(address)
        if not path.exists():
            await self._retry_while_unavailable(lambda: self._blobs.get(address, path))
        return path

    async def _retry_while_unavailable(self, work: Callable[[], Awaitable[Answer]]) -> Answer:
        """Retry with backoff while the store is unavailable; the heartbeats go on meanwhile."""
        backoff = _FIRST_BACKOFF_S
        while True:
            try:
                return await work()
            except StoreUnavailable as unavailable:
                self._call.tell(STORE_AWAY, str(unavailable))
                await self._call.world.sleep(self._call.world.uniform(backoff / 2, backoff))
                backoff = min(2 * backoff, _MAX_BACKOFF_S)

    async def _report_outcome(self, job: Job, outcome: JobOutcome) -> None:
        """Report the outcome of a job; retry in an outage until the job would be abandoned anyway."""
        report = CompleteJobRequest(
            job_id=job.job_id,
            runner_id=self._settings.runner_id,
            run_attempts=job.run_attempts,
            **{name: value for name, value in outcome._asdict().items() if value is not None},
        )
        deadline = self._call.world.monotonic() + self._settings.abandoned_age
        backoff = _FIRST_BACKOFF_S
        while True:
            try:
                await self._queue.complete_job(report, self._call)
                return
            except Failure as failure:
                is_transient = failure.grpc in _TRANSIENT_CODES
                if not is_transient or self._call.world.monotonic() + backoff >= deadline:
                    message = f"its outcome is dropped: {failure.message}"
                    self._call.tell(JOB_LOST, message, job_id=job.job_id)
                    return
            await self._call.world.sleep(backoff)
            backoff = min(2 * backoff, _MAX_BACKOFF_S)

    async def _release(self, job: Job, *, abandoned: bool = False) -> None:
        release = ReleaseJobRequest(
            job_id=job.job_id,
            runner_id=self._settings.runner_id,
            run_attempts=job.run_attempts,
            abandoned=abandoned,
        )
        try:
            await self._queue.release_job(release, self._call)
        except Failure as failure:
            self._call.tell(JOB_LOST, f"it is not given back: {failure.message}", job_id=job.job_id)


def _has_content(path: Path) -> bool:
    return path.stat().st_size > 0
