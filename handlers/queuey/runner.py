"""The runner: takes jobs, runs their binaries, says all the while that it does, and how each ended."""

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
from handlers.queuey.blob_client import BlobClient, BlobCorrupt, BlobMissing, BlobRefused, StoreAway
from handlers.queuey.blobs import is_address
from handlers.queuey.sandbox import Limits, Sandboxes
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.transport.tls import HttpTls

Answer = TypeVar("Answer")

_CLAIM_MS = 2000
_PASSING = ("UNAVAILABLE", "DEADLINE_EXCEEDED")
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_SIGNS = 3
"""How many signs of life there are in the time after which a job counts as abandoned."""


class Outcome(NamedTuple):
    """How a run ended, in the words of the queue."""

    status: JobStatus.ValueType
    output_addr: str | None = None
    stderr_addr: str | None = None
    exit_code: int | None = None
    reason: str | None = None


class Runner:
    """Several slots, each of which has one job at a time."""

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
        """Takes jobs and runs them until it is told to stop."""
        settings = self._settings
        call.tell(RUNNER_STARTED, f"{settings.runner_concurrency} slots", runner_id=settings.runner_id)
        token = settings.caller_token or None
        async with (
            Sandboxes(self._limits) as sandboxes,
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
        sandboxes: Sandboxes,
        blobs: BlobClient,
        call: Call,
    ) -> None:
        self._queue = queue
        self._settings = settings
        self._sandboxes = sandboxes
        self._blobs = blobs
        self._call = call

    async def serve(self, stopping: asyncio.Event) -> None:
        """One job after the other."""
        pause = _FIRST_PAUSE_S
        wanted = ClaimJobRequest(runner_id=self._settings.runner_id, wait_ms=_CLAIM_MS)
        while not stopping.is_set():
            try:
                job = await self._queue.claim_job(wanted, self._call)
            except Failure:
                await self._call.world.sleep(self._call.world.uniform(pause / 2, pause))
                pause = min(2 * pause, _LONGEST_PAUSE_S)
                continue
            pause = _FIRST_PAUSE_S
            if job.job_id:
                await self._hold(job, stopping)

    async def _hold(self, job: Job, stopping: asyncio.Event) -> None:
        """Runs a job as long as it is ours; gives it back where we are stopped before it ends."""
        running = asyncio.create_task(self._perform(job))
        signs = asyncio.create_task(self._give_signs(job))
        given_up = asyncio.create_task(self._over(stopping))
        try:
            await asyncio.wait({running, signs, given_up}, return_when=asyncio.FIRST_COMPLETED)
            if running.done() and isinstance(trouble := running.exception(), OSError):
                # No disk, no processes: the job is as good as it was, and another runner may do better.
                self._call.tell(RUNNER_TROUBLE, str(trouble), job_id=job.job_id)
                await self._give_back(job, abandoned=True)
                await self._call.world.sleep(_LONGEST_PAUSE_S)
            elif running.done():
                await self._tell(job, running.result())
            elif signs.done():
                self._call.tell(JOB_LOST, "it is another's by now; its run is ended", job_id=job.job_id)
            else:
                await self._give_back(job)
        finally:
            for task in (running, signs, given_up):
                task.cancel()
            await asyncio.gather(running, signs, given_up, return_exceptions=True)

    async def _over(self, stopping: asyncio.Event) -> None:
        await stopping.wait()
        await asyncio.sleep(self._settings.shutdown_grace_seconds)

    async def _give_signs(self, job: Job) -> None:
        """Says from time to time that the job is worked on; ends when it is ours no longer."""
        sign = TickleJobRequest(
            job_id=job.job_id, runner_id=self._settings.runner_id, run_attempts=job.run_attempts
        )
        while True:
            await self._call.world.sleep(self._settings.abandoned_age / _SIGNS)
            try:
                await self._queue.tickle_job(sign, self._call)
            except Failure as failure:
                if failure.grpc not in _PASSING:
                    return

    async def _perform(self, job: Job) -> Outcome:
        """Fetches what is needed, runs it, and puts what came of it into the store."""
        async with self._sandboxes.scratch() as scratch:
            stdin = scratch / "stdin"
            stdin.touch()
            try:
                binary = await self._binary(job.binary_addr)
                if job.HasField("input_addr"):
                    await self._patiently(lambda: self._blobs.get(job.input_addr, stdin))
            except BlobMissing as missing:
                return Outcome(FAILED, reason=f"{NOT_FOUND}: nothing is stored under {missing}")
            except BlobCorrupt as corrupt:
                detail = f"what is stored under {corrupt} is not its content any more; upload it again"
                return Outcome(FAILED, reason=f"{CORRUPT}: {detail}")
            run = await self._sandboxes.run(job.binary_addr, binary, stdin, scratch)
            try:
                output = await self._patiently(lambda: self._blobs.put(run.stdout))
                errors = (
                    await self._patiently(lambda: self._blobs.put(run.stderr)) if _has(run.stderr) else None
                )
            except BlobRefused as refused:
                return Outcome(FAILED, exit_code=run.exit_code, reason=f"{OUTPUT_TOO_LARGE}: {refused}")
        if run.reason is None:
            return Outcome(COMPLETED, output, errors, run.exit_code)
        return Outcome(FAILED, output, errors, run.exit_code, f"{run.reason}: {run.detail}")

    async def _binary(self, address: str) -> Path:
        """A binary, fetched once for all runs of it."""
        if not is_address(address):
            raise BlobMissing(address)
        path = self._sandboxes.binary(address)
        if not path.exists():
            await self._patiently(lambda: self._blobs.get(address, path))
        return path

    async def _patiently(self, work: Callable[[], Awaitable[Answer]]) -> Answer:
        """Tries again as long as the store is away; the signs go on meanwhile."""
        pause = _FIRST_PAUSE_S
        while True:
            try:
                return await work()
            except StoreAway as away:
                self._call.tell(STORE_AWAY, str(away))
                await self._call.world.sleep(self._call.world.uniform(pause / 2, pause))
                pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def _tell(self, job: Job, outcome: Outcome) -> None:
        """Says how a job ended, again and again through an outage, until it would be abandoned anyway."""
        told = CompleteJobRequest(
            job_id=job.job_id,
            runner_id=self._settings.runner_id,
            run_attempts=job.run_attempts,
            **{name: value for name, value in outcome._asdict().items() if value is not None},
        )
        until = self._call.world.monotonic() + self._settings.abandoned_age
        pause = _FIRST_PAUSE_S
        while True:
            try:
                await self._queue.complete_job(told, self._call)
                return
            except Failure as failure:
                passing = failure.grpc in _PASSING
                if not passing or self._call.world.monotonic() + pause >= until:
                    message = f"its outcome is dropped: {failure.message}"
                    self._call.tell(JOB_LOST, message, job_id=job.job_id)
                    return
            await self._call.world.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def _give_back(self, job: Job, *, abandoned: bool = False) -> None:
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


def _has(path: Path) -> bool:
    return path.stat().st_size > 0
