"""Runs what it is assigned, a job in each slot, and reports every outcome."""

from __future__ import annotations

import asyncio

from generated.taskqueue.errors import JOB_ERROR, OUTPUT_TOO_LARGE
from generated.taskqueue.events import CONSISTENCY_ANOMALY, HEARTBEAT_ATTEMPT, WORKER_LOOP_STARTED
from generated.taskqueue.messages import (
    JOB_OUTCOME_FAILED,
    JOB_OUTCOME_SUCCEEDED,
    FetchWorkRequest,
    FetchWorkResponse,
    ReportWorkOutcomeRequest,
    WorkerHeartbeatRequest,
)
from generated.taskqueue.services import CoordinatorInternalService
from generated.taskqueue.settings import WorkerSettings
from handlers.jobs import Job, JobFailed, find
from runtime.call import Call
from runtime.conditions import Failure
from runtime.world import World


class Worker:
    """Knows the coordinator and nobody else."""

    def __init__(self, coordinator: CoordinatorInternalService, settings: WorkerSettings, world: World) -> None:
        self._coordinator = coordinator
        self._settings = settings
        self._world = world
        self._worker_id = settings.worker_id

    async def run(self, call: Call, stopping: asyncio.Event) -> None:
        """Beats and works until it is told to stop; then finishes what it has, still beating."""
        call.tell(WORKER_LOOP_STARTED, "asking for work", worker_id=self._worker_id)
        beat = asyncio.create_task(self._beat(call))
        try:
            slots = [self._slot(call, stopping) for _ in range(self._settings.worker_slots)]
            await asyncio.gather(*slots)
        finally:
            beat.cancel()

    async def _beat(self, call: Call) -> None:
        while True:
            pause_ms = self._settings.heartbeat_interval_ms
            call.tell(HEARTBEAT_ATTEMPT, "alive", worker_id=self._worker_id)
            request = WorkerHeartbeatRequest(
                worker_id=self._worker_id,
                heartbeat_at_ms=self._world.now_ms(),
                capacity_hint=self._settings.worker_slots,
            )
            try:
                answer = await self._coordinator.worker_heartbeat(request, call)
                pause_ms = answer.next_heartbeat_in_ms or pause_ms
            except Failure:
                pass  # The next beat is the retry; the coordinator tells of a worker that stays silent.
            await self._world.sleep(pause_ms / 1000)

    async def _slot(self, call: Call, stopping: asyncio.Event) -> None:
        """Asks for a job, runs it, reports it, and asks again."""
        while not stopping.is_set():
            try:
                work = await self._coordinator.fetch_work(FetchWorkRequest(worker_id=self._worker_id), call)
            except Failure:
                pause_ms = self._settings.heartbeat_interval_ms
            else:
                if work.assigned:
                    await self._report(await self._execute(work), call)
                pause_ms = work.retry_after_ms
            if pause_ms:
                await self._pause(pause_ms / 1000, stopping)

    async def _pause(self, seconds: float, stopping: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(seconds):
                await stopping.wait()
        except TimeoutError:
            pass

    async def _execute(self, work: FetchWorkResponse) -> ReportWorkOutcomeRequest:
        """Runs the job's function and makes a report of whatever comes of it."""
        report = ReportWorkOutcomeRequest(worker_id=self._worker_id, job_id=work.job_id)
        started = self._world.monotonic()
        try:
            output = await find(work.spec.job_type)(self._job(work))
            if len(output.content) > self._settings.max_output_bytes:
                raise JobFailed(OUTPUT_TOO_LARGE, f"{OUTPUT_TOO_LARGE}: {len(output.content)} bytes")
            report.outcome = JOB_OUTCOME_SUCCEEDED
            report.output_bytes, report.output_summary = output.content, output.summary
        except JobFailed as failed:
            report.outcome = JOB_OUTCOME_FAILED
            report.failure_reason, report.output_summary = failed.reason, failed.summary
        except Exception as error:
            report.outcome = JOB_OUTCOME_FAILED
            report.failure_reason = f"{JOB_ERROR}: {type(error).__name__}: {error}"
        report.runtime_ms = round((self._world.monotonic() - started) * 1000)
        return report

    def _job(self, work: FetchWorkResponse) -> Job:
        return Job(
            job_id=work.job_id,
            job_type=work.spec.job_type,
            work_duration_ms=work.spec.work_duration_ms,
            payload_size_bytes=work.spec.payload_size_bytes,
            max_output_bytes=self._settings.max_output_bytes,
            world=self._world,
            labels=dict(work.spec.labels),
        )

    async def _report(self, report: ReportWorkOutcomeRequest, call: Call) -> None:
        try:
            await self._coordinator.report_work_outcome(report, call)
        except Failure as failure:
            call.tell(
                CONSISTENCY_ANOMALY,
                f"its outcome could not be reported: {failure.message}",
                job_id=report.job_id,
                worker_id=self._worker_id,
            )
