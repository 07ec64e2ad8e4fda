"""Dispatch: who is alive, who gets which job, and how a job ends."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from generated.taskqueue.errors import (
    ADOPTED_STORED_RESULT,
    OUTPUT_TOO_LARGE,
    UNKNOWN_FAILURE,
    WORKER_CANCELED,
    WORKER_LOST,
    JobNotFound,
)
from generated.taskqueue.events import (
    CONSISTENCY_ANOMALY,
    DISPATCH_RACE,
    DISPATCH_RESCUE,
    FOREIGN_REPORT,
    TERMINAL_RACE,
    WORKER_AVAILABLE,
    WORKER_UNAVAILABLE,
)
from generated.taskqueue.lifecycle import JOB
from generated.taskqueue.messages import (
    CANCELED,
    DONE,
    FAILED,
    JOB_OUTCOME_CANCELED,
    JOB_OUTCOME_SUCCEEDED,
    QUEUED,
    RUNNING,
    DequeueJobRequest,
    EnqueueJobRequest,
    FetchWorkRequest,
    FetchWorkResponse,
    GetJobRecordRequest,
    GetJobRecordResponse,
    JobStatus,
    ReportWorkOutcomeRequest,
    ReportWorkOutcomeResponse,
    StoreResultRequest,
    TransitionJobStatusRequest,
    WorkerHeartbeatRequest,
    WorkerHeartbeatResponse,
)
from generated.taskqueue.policy import COMPENSATION, DISPATCH_RETRY
from generated.taskqueue.services import JobInternalService, QueueInternalService, ResultInternalService
from generated.taskqueue.settings import CoordinatorSettings
from runtime.call import Call
from runtime.conditions import CallFailed, Failure
from runtime.world import World

@dataclass(slots=True)
class WorkerEntry:
    """What is known of a worker."""

    heard_at: float
    available: bool = True
    assigned: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job is to end."""

    target: JobStatus.ValueType
    reason: str = ""
    summary: str = ""
    runtime_ms: int = 0
    output: bytes = b""


class Coordinator:
    """Owns the registry of workers. Jobs and results belong to others."""

    def __init__(
        self,
        jobs: JobInternalService,
        queue: QueueInternalService,
        results: ResultInternalService,
        settings: CoordinatorSettings,
        world: World,
    ) -> None:
        self._jobs = jobs
        self._queue = queue
        self._results = results
        self._settings = settings
        self._world = world
        self._workers: dict[str, WorkerEntry] = {}
        self._unfinished: dict[str, Ending] = {}

    async def run(self, call: Call, stopping: asyncio.Event) -> None:
        """Looks for silent workers once each heartbeat interval."""
        while not stopping.is_set():
            await self.sweep(call)
            try:
                async with asyncio.timeout(self._settings.heartbeat_interval_ms / 1000):
                    await stopping.wait()
            except TimeoutError:
                continue

    async def sweep(self, call: Call) -> None:
        """Marks workers that have been silent too long, and ends what they were running."""
        now = self._world.monotonic()
        for worker_id, worker in self._workers.items():
            silence_ms = (now - worker.heard_at) * 1000
            if worker.available and silence_ms > self._settings.worker_timeout_ms:
                worker.available = False
                call.tell(WORKER_UNAVAILABLE, f"silent for {silence_ms:.0f} ms", worker_id=worker_id)
                for job_id in sorted(worker.assigned):
                    call.tell(
                        CONSISTENCY_ANOMALY, "its worker is lost", job_id=job_id, worker_id=worker_id
                    )
                    self._unfinished[job_id] = Ending(FAILED, WORKER_LOST, f"{WORKER_LOST}: {worker_id}")
                worker.assigned.clear()
        for job_id, ending in list(self._unfinished.items()):
            await self._finish(job_id, ending, call)

    async def worker_heartbeat(self, request: WorkerHeartbeatRequest, call: Call) -> WorkerHeartbeatResponse:
        worker = self._workers.get(request.worker_id)
        if worker is None:
            worker = self._workers[request.worker_id] = WorkerEntry(self._world.monotonic(), available=False)
        if not worker.available:
            call.tell(WORKER_AVAILABLE, f"heard of, with {request.capacity_hint} slots")
        worker.heard_at, worker.available = self._world.monotonic(), True
        return WorkerHeartbeatResponse(
            accepted=True, next_heartbeat_in_ms=self._settings.heartbeat_interval_ms
        )

    async def fetch_work(self, request: FetchWorkRequest, call: Call) -> FetchWorkResponse:
        worker = self._workers.get(request.worker_id)
        if worker is None or not worker.available:
            return self._nothing()
        try:
            popped = await self._queue.dequeue_job(DequeueJobRequest(worker_id=request.worker_id), call)
        except CallFailed as failure:
            call.tell(CONSISTENCY_ANOMALY, f"a job may have left the queue unseen: {failure.message}")
            raise
        if not popped.found:
            return self._nothing()
        record = await self._dispatched(popped.job_id, call)
        if record is None:
            return FetchWorkResponse(assigned=False, retry_after_ms=DISPATCH_RETRY)
        if call.gone:
            call.tell(CONSISTENCY_ANOMALY, "its worker did not wait for it", job_id=popped.job_id)
            await self._finish(popped.job_id, Ending(FAILED, WORKER_LOST, f"{WORKER_LOST}: it never began"), call)
            return FetchWorkResponse(assigned=False, retry_after_ms=DISPATCH_RETRY)
        worker.assigned.add(popped.job_id)
        return FetchWorkResponse(assigned=True, job_id=popped.job_id, spec=record.spec)

    async def report_work_outcome(
        self, request: ReportWorkOutcomeRequest, call: Call
    ) -> ReportWorkOutcomeResponse:
        job_id = request.job_id
        worker = self._workers.get(request.worker_id)
        if worker is None or job_id not in worker.assigned:
            call.tell(FOREIGN_REPORT, "reported by a worker that it is not assigned to")
        record = await self._jobs.get_job_record(GetJobRecordRequest(job_id=job_id), call)
        status = record.summary.status
        if status == JOB.initial:
            return ReportWorkOutcomeResponse(accepted=False)
        if status in JOB.terminal:
            call.tell(TERMINAL_RACE, "reported after it had ended", current_status=JobStatus.Name(status))
        else:
            await self._end(job_id, _ending(request, record), call)
        for each in self._workers.values():
            each.assigned.discard(job_id)
        self._unfinished.pop(job_id, None)
        return ReportWorkOutcomeResponse(accepted=True)

    def _nothing(self) -> FetchWorkResponse:
        return FetchWorkResponse(assigned=False, retry_after_ms=self._settings.fetch_retry_after_ms)

    async def _dispatched(self, job_id: str, call: Call) -> GetJobRecordResponse | None:
        """Moves a job that left the queue to RUNNING. The record if it is now to be assigned, None otherwise."""
        try:
            record = await self._read(job_id, call)
            moved = await self._jobs.transition_job_status(
                TransitionJobStatusRequest(job_id=job_id, expected_from_status=QUEUED, to_status=RUNNING), call
            )
        except JobNotFound:
            call.tell(CONSISTENCY_ANOMALY, "a job in the queue has no record; dropped", job_id=job_id)
            return None
        except Failure as failure:
            call.tell(DISPATCH_RESCUE, f"could not be dispatched: {failure.message}", job_id=job_id)
            await self._rescue_if_queued(job_id, call, answered=False)
            return None
        if not moved.applied:
            call.tell(
                DISPATCH_RACE,
                "left its state between dequeue and dispatch",
                job_id=job_id,
                expected_status=JobStatus.Name(QUEUED),
                current_status=JobStatus.Name(moved.current_status),
            )
            await self._rescue_if_queued(job_id, call, answered=True)
            return None
        if record.summary.cancel_requested:
            await self._finish(job_id, _canceled(record, "while queued"), call)
            return None
        return record

    async def _rescue_if_queued(self, job_id: str, call: Call, *, answered: bool) -> None:
        """Puts a job back, once, unless it is known to have left its state."""
        anew = call.under(COMPENSATION)
        try:
            status = (await self._read(job_id, anew)).summary.status
        except JobNotFound:
            call.tell(CONSISTENCY_ANOMALY, "a job in the queue has no record; dropped", job_id=job_id)
            return
        except Failure as failure:
            call.tell(CONSISTENCY_ANOMALY, f"its state cannot be read: {failure.message}", job_id=job_id)
            status = QUEUED
        if status != QUEUED:
            if not answered and status == RUNNING:
                call.tell(CONSISTENCY_ANOMALY, "is RUNNING and nobody runs it", job_id=job_id)
            return
        call.tell(DISPATCH_RESCUE, "put back into the queue", job_id=job_id)
        try:
            # This caller's permission makes it one attempt with a deadline of its own.
            put = await self._queue.enqueue_job(
                EnqueueJobRequest(job_id=job_id, enqueued_at_ms=self._world.now_ms()), call
            )
        except Failure as failure:
            call.tell(CONSISTENCY_ANOMALY, f"could not be put back: {failure.message}", job_id=job_id)
            return
        if not put.accepted:
            call.tell(CONSISTENCY_ANOMALY, "the queue did not take it back", job_id=job_id)

    async def _finish(self, job_id: str, ending: Ending, call: Call) -> None:
        """Ends a job that nobody reports on; what fails is tried again with the next sweep."""
        try:
            await self._end(job_id, ending, call.under(COMPENSATION))
        except JobNotFound:
            self._unfinished.pop(job_id, None)
        except Failure as failure:
            self._unfinished[job_id] = ending
            call.tell(CONSISTENCY_ANOMALY, f"could not be ended: {failure.message}", job_id=job_id)
        else:
            self._unfinished.pop(job_id, None)

    async def _end(self, job_id: str, ending: Ending, call: Call) -> None:
        """Stores the envelope, then moves the job to the state of the envelope that is stored."""
        stored = await self._results.store_result(
            StoreResultRequest(
                job_id=job_id,
                terminal_status=ending.target,
                runtime_ms=ending.runtime_ms,
                output_summary=ending.summary,
                output_bytes=ending.output,
            ),
            call,
        )
        target, reason = stored.current_terminal_status, ending.reason
        if target != ending.target:
            reason = OUTPUT_TOO_LARGE if stored.stored else ADOPTED_STORED_RESULT
            call.tell(
                TERMINAL_RACE,
                f"ends by the envelope that is stored: {reason}",
                job_id=job_id,
                expected_status=JobStatus.Name(ending.target),
                current_status=JobStatus.Name(target),
            )
        moved = await self._jobs.transition_job_status(
            TransitionJobStatusRequest(
                job_id=job_id, expected_from_status=RUNNING, to_status=target, reason=reason
            ),
            call,
        )
        if not moved.applied and moved.current_status != target:
            call.tell(
                TERMINAL_RACE,
                "another terminal state was there first",
                job_id=job_id,
                expected_status=JobStatus.Name(target),
                current_status=JobStatus.Name(moved.current_status),
            )

    async def _read(self, job_id: str, call: Call) -> GetJobRecordResponse:
        return await self._jobs.get_job_record(GetJobRecordRequest(job_id=job_id), call)


def _ending(request: ReportWorkOutcomeRequest, record: GetJobRecordResponse) -> Ending:
    """What a report makes of a running job. A cancel that was asked for in time wins."""
    if record.summary.cancel_requested:
        return _canceled(record, "while running", request.runtime_ms)
    if request.outcome == JOB_OUTCOME_SUCCEEDED:
        return Ending(
            DONE,
            summary=request.output_summary,
            runtime_ms=request.runtime_ms,
            output=request.output_bytes,
        )
    reason = WORKER_CANCELED if request.outcome == JOB_OUTCOME_CANCELED else request.failure_reason
    return Ending(
        FAILED,
        reason,
        request.output_summary or reason or UNKNOWN_FAILURE,
        request.runtime_ms,
        request.output_bytes,
    )


def _canceled(record: GetJobRecordResponse, phase: str, runtime_ms: int = 0) -> Ending:
    reason = record.cancel_reason
    return Ending(CANCELED, reason, reason or f"canceled {phase}", runtime_ms)
