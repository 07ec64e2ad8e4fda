"""The runner: claims jobs, runs their binaries with heartbeats, and reports their outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from math import inf
from pathlib import Path
from typing import TypeVar

from generated.queuey.errors import CORRUPT, NOT_FOUND, OUTPUT_TOO_LARGE
from generated.queuey.events import JOB_LOST, RUNNER_STARTED, RUNNER_TROUBLE, STORE_AWAY
from generated.queuey.lifecycle import JOB, JOB_ABANDON, JOB_COMPLETE, JOB_FAIL, JOB_RELEASE
from generated.queuey.messages import Job
from generated.queuey.services import QueueService
from generated.queuey.settings import RunnerSettings
from handlers.queuey.blob_client import BlobClient, BlobCorrupt, BlobMissing, BlobRefused, StoreUnavailable
from handlers.queuey.blobs import is_address
from handlers.queuey.queue_lease_store import QueueLeaseStore
from handlers.queuey.sandbox import Limits, SandboxPool
from runtime.call import Call
from runtime.stores.contract import LeaseProof
from runtime.transport.tls import HttpTls
from runtime.worker.config import Outcome, WorkerConfig, WorkerEvents
from runtime.worker.lease_worker import LeaseWorker

Answer = TypeVar("Answer")

_POLL_S = 5.0
"""Timeout of a wait for a job; the long poll of the queue ends before."""
_FIRST_BACKOFF_S, _MAX_BACKOFF_S = 0.1, 5.0
_HEARTBEATS_PER_LEASE = 3
"""The number of heartbeats in the time after which a job counts as abandoned."""


class Runner:
    """A lease worker for jobs, which it claims from the queue. Each slot is for one run at a time."""

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
        token = self._settings.caller_token or None
        async with (
            SandboxPool(self._limits) as sandboxes,
            BlobClient(self._settings.store_url or "", token, self._tls.context) as blobs,
        ):
            store = QueueLeaseStore(self._queue, self._settings.runner_id, call)
            worker = self._build_lease_worker(store, JobRunner(sandboxes, blobs, call))
            store.poll.push = worker.push
            await worker.work(call, stopping)
            await store.release_undelivered(call)

    def _build_lease_worker(self, store: QueueLeaseStore, jobs: JobRunner) -> LeaseWorker[Job]:
        settings, released = self._settings, Outcome(JOB_RELEASE)
        assert JOB.lease is not None
        return LeaseWorker(
            store,
            JOB.lease,
            JOB.key,
            settings.runner_id,
            WorkerConfig(
                slots=settings.runner_concurrency,
                poll_s=_POLL_S,
                # The queue alone says when a job is abandoned.
                lease_s=inf,
                renew_s=settings.abandoned_age / _HEARTBEATS_PER_LEASE,
                grace_s=settings.shutdown_grace_seconds,
            ),
            jobs.perform,
            released,
            released,
            WorkerEvents(RUNNER_STARTED, JOB_LOST),
            noted_as="runner_id",
        )


class JobRunner:
    """Runs single jobs: content from the store, a sandbox, and the output back to the store."""

    def __init__(self, sandboxes: SandboxPool, blobs: BlobClient, call: Call) -> None:
        self._sandboxes = sandboxes
        self._blobs = blobs
        self._call = call

    async def perform(self, job: Job, _lease: LeaseProof) -> Outcome:
        """Run a job. Where this machine cannot, another runner may try: nothing is wrong with the job."""
        try:
            return await self._run_job(job)
        except OSError as error:
            self._call.tell(RUNNER_TROUBLE, str(error), job_id=job.job_id)
            return Outcome(JOB_ABANDON)

    async def _run_job(self, job: Job) -> Outcome:
        """Fetch the binary and the input, run it, and store its output."""
        async with self._sandboxes.scratch() as scratch:
            stdin = scratch / "stdin"
            stdin.touch()
            try:
                binary = await self._fetch_binary(job.binary_addr)
                if job.HasField("input_addr"):
                    await self._retry_while_unavailable(lambda: self._blobs.get(job.input_addr, stdin))
            except BlobMissing as missing:
                return Outcome(JOB_FAIL, {"reason": f"{NOT_FOUND}: nothing is stored under {missing}"})
            except BlobCorrupt as corrupt:
                detail = f"what is stored under {corrupt} is not its content any more; upload it again"
                return Outcome(JOB_FAIL, {"reason": f"{CORRUPT}: {detail}"})
            run = await self._sandboxes.run(job.binary_addr, binary, stdin, scratch)
            try:
                output = await self._retry_while_unavailable(lambda: self._blobs.put(run.stdout))
                errors = (
                    await self._retry_while_unavailable(lambda: self._blobs.put(run.stderr))
                    if _has_content(run.stderr)
                    else None
                )
            except BlobRefused as refused:
                reason = f"{OUTPUT_TOO_LARGE}: {refused}"
                return Outcome(JOB_FAIL, {"exit_code": run.exit_code, "reason": reason})
        made = {"output_addr": output, "stderr_addr": errors, "exit_code": run.exit_code}
        if run.reason is None:
            return Outcome(JOB_COMPLETE, made)
        return Outcome(JOB_FAIL, {**made, "reason": f"{run.reason}: {run.detail}"})

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


def _has_content(path: Path) -> bool:
    return path.stat().st_size > 0
