"""Dispatch: who is alive, who gets which job, and how a job ends."""

from __future__ import annotations

import asyncio
from collections import Counter

from generated.taskqueue.errors import ADOPTED_STORED_RESULT, OUTPUT_TOO_LARGE, JobNotFound
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
    FAILED,
    QUEUED,
    RUNNING,
    DequeueJobRequest,
    DequeueJobResponse,
    EnqueueJobRequest,
    FetchWorkRequest,
    FetchWorkResponse,
    GetJobRecordRequest,
    GetJobRecordResponse,
    JobStatus,
    ReportWorkOutcomeRequest,
    ReportWorkOutcomeResponse,
    TransitionJobStatusRequest,
    WorkerHeartbeatRequest,
    WorkerHeartbeatResponse,
)
from generated.taskqueue.policy import COMPENSATION, DISPATCH_RETRY, STRANDED_GRACE
from generated.taskqueue.services import JobInternalService, QueueInternalService, ResultInternalService
from generated.taskqueue.settings import CoordinatorSettings
from handlers.taskqueue import terminal_outcome as endings
from handlers.taskqueue.outage import Outage
from handlers.taskqueue.reconciler import Reconciler
from handlers.taskqueue.terminal_outcome import Ending
from handlers.taskqueue.worker_registry import WorkerEntry, WorkerRegistry
from runtime.call import Call
from runtime.call.conditions import CallFailed, Failure
from runtime.world import World


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
        self._workers = WorkerRegistry(world, settings.worker_timeout_ms)
        self._dispatching: Counter[str] = Counter()
        self._unfinished: dict[str, Ending] = {}
        self._queue_outage = Outage(CallFailed)
        self._reconciler = Reconciler(jobs, queue, world, self._is_dispatching, self._has_no_worker)

    async def run(self, call: Call, stopping: asyncio.Event) -> None:
        """Looks for silent workers once each heartbeat interval, and more rarely for stranded jobs."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._sweep_until(call, stopping))
            tasks.create_task(self._reconcile_until(call, stopping))

    async def _sweep_until(self, call: Call, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            await self.sweep(call)
            await _wait(stopping, self._settings.heartbeat_interval_ms)

    async def _reconcile_until(self, call: Call, stopping: asyncio.Event) -> None:
        while not await _wait(stopping, self._settings.worker_timeout_ms + STRANDED_GRACE):
            await self.reconcile(call)

    async def reconcile(self, call: Call) -> None:
        """Puts back what waits outside the queue, and has the next sweep end what runs on no worker."""
        for job_id in await self._reconciler.reconcile(call):
            call.tell(CONSISTENCY_ANOMALY, "is RUNNING on no worker; it is ended as lost", job_id=job_id)
            self._unfinished[job_id] = endings.lost("no worker runs it")

    async def sweep(self, call: Call) -> None:
        """Marks workers that have been silent too long, and ends what they and others left unfinished."""
        for silent in self._workers.silent():
            if silent.newly:
                call.tell(
                    WORKER_UNAVAILABLE, f"silent for {silent.silence_ms:.0f} ms", worker_id=silent.worker_id
                )
            for job_id in silent.jobs:
                self._give_up(job_id, silent.worker_id, "its worker is lost", call)
        unfinished = list(self._unfinished.items())
        await asyncio.gather(*(self._finish(job_id, ending, call) for job_id, ending in unfinished))

    async def worker_heartbeat(self, request: WorkerHeartbeatRequest, call: Call) -> WorkerHeartbeatResponse:
        running = request.running if request.reports_running else None
        if self._workers.heard(request.worker_id, request.capacity_hint, running):
            call.tell(WORKER_AVAILABLE, "heard of", capacity_hint=request.capacity_hint)
        return WorkerHeartbeatResponse(
            accepted=True, next_heartbeat_in_ms=self._settings.heartbeat_interval_ms
        )

    async def fetch_work(self, request: FetchWorkRequest, call: Call) -> FetchWorkResponse:
        worker = self._workers.available(request.worker_id)
        if worker is None:
            return self._nothing()
        worker.asking.add(call)
        try:
            if worker.assigned:
                self._look_for_lost_jobs(worker, call)
            return await self._fetched(worker, call)
        finally:
            worker.asking.discard(call)

    async def report_work_outcome(
        self, request: ReportWorkOutcomeRequest, call: Call
    ) -> ReportWorkOutcomeResponse:
        job_id = request.job_id
        record = await self._jobs.get_job_record(GetJobRecordRequest(job_id=job_id), call)
        status = record.summary.status
        if status == JOB.initial:
            return ReportWorkOutcomeResponse(accepted=False)
        if status in JOB.terminal:
            call.tell(TERMINAL_RACE, "reported after it had ended", current_status=JobStatus.Name(status))
        else:
            if not self._workers.runs(job_id, request.worker_id):
                call.tell(FOREIGN_REPORT, "reported by a worker that it is not assigned to")
            await self._end(job_id, endings.reported(request, record), call)
        self._workers.release(job_id)
        self._unfinished.pop(job_id, None)
        return ReportWorkOutcomeResponse(accepted=True)

    def _nothing(self) -> FetchWorkResponse:
        return FetchWorkResponse(assigned=False, retry_after_ms=self._settings.fetch_retry_after_ms)

    async def _fetched(self, worker: WorkerEntry, call: Call) -> FetchWorkResponse:
        """One pop, and the job to its worker unless something came between."""
        popped = await self._popped(worker.worker_id, call)
        if not popped.found:
            self._reconciler.note_empty_queue()
            return self._nothing()
        job_id = popped.job_id
        self._dispatching[job_id] += 1
        try:
            record = await self._dispatched(job_id, call)
            if record is not None and not (call.gone or call.expired):
                worker.assigned[job_id] = None
                return FetchWorkResponse(assigned=True, job_id=job_id, spec=record.spec)
        finally:
            self._dispatching[job_id] -= 1
            if not self._dispatching[job_id]:
                del self._dispatching[job_id]
        if record is not None:
            call.tell(CONSISTENCY_ANOMALY, "its worker did not wait for it", job_id=job_id)
            await self._finish(job_id, endings.lost("it never began"), call)
        return FetchWorkResponse(assigned=False, retry_after_ms=DISPATCH_RETRY)

    async def _popped(self, worker_id: str, call: Call) -> DequeueJobResponse:
        """The answer of the queue. While it gives none, every idle slot asks on, again and again."""

        def tell(problem: str) -> None:
            # Each pop without an answer may have taken a job along, so the end of an outage counts them.
            call.tell(CONSISTENCY_ANOMALY, f"a job may have left the queue unseen: {problem}")

        return await self._queue_outage.watch(
            self._queue.dequeue_job(DequeueJobRequest(worker_id=worker_id), call),
            began=lambda failure: tell(failure.message),
            ended=lambda count: tell(f"the queue answers again; pops without an answer: {count}"),
        )

    async def _dispatched(self, job_id: str, call: Call) -> GetJobRecordResponse | None:
        """Moves a job that left the queue to RUNNING. Its record, if it is now to be assigned."""
        try:
            record = await self._read(job_id, call)
        except JobNotFound:
            call.tell(CONSISTENCY_ANOMALY, "a job in the queue has no record; dropped", job_id=job_id)
            return None
        except Failure as failure:
            await self._rescue(job_id, f"its record cannot be read: {failure.message}", call)
            return None
        if call.gone:
            await self._rescue(job_id, "its worker is gone", call)
            return None
        if not await self._started(job_id, call):
            return None
        self._reconciler.note_dispatch(record.summary)
        if record.summary.cancel_requested:
            await self._finish(job_id, endings.canceled(record, "while queued"), call)
            return None
        return record

    async def _started(self, job_id: str, call: Call) -> bool:
        """Whether this call moved the job to RUNNING. If not, it may have to go back into the queue."""
        current = None
        try:
            moved = await self._jobs.transition_job_status(
                TransitionJobStatusRequest(job_id=job_id, expected_from_status=QUEUED, to_status=RUNNING),
                call,
            )
            if moved.applied:
                return True
            problem, current = "it had left its state", JobStatus.Name(moved.current_status)
        except Failure as failure:
            problem = failure.message
        call.tell(
            DISPATCH_RACE,
            f"could not be moved: {problem}",
            job_id=job_id,
            expected_status=JobStatus.Name(QUEUED),
            current_status=current,
        )
        await self._rescue_if_queued(job_id, call, answered=current is not None)
        return False

    async def _rescue_if_queued(self, job_id: str, call: Call, *, answered: bool) -> None:
        """Puts a job back unless it is known to have left its state."""
        try:
            status = (await self._read(job_id, call.under(COMPENSATION))).summary.status
        except JobNotFound:
            call.tell(CONSISTENCY_ANOMALY, "a job in the queue has no record; dropped", job_id=job_id)
            return
        except Failure as failure:
            call.tell(CONSISTENCY_ANOMALY, f"its state cannot be read: {failure.message}", job_id=job_id)
            status = QUEUED
        if status == QUEUED:
            await self._rescue(job_id, "it is still QUEUED", call)
        elif status == RUNNING and not self._in_hand(job_id, answered=answered):
            call.tell(CONSISTENCY_ANOMALY, "is RUNNING and nobody runs it", job_id=job_id)

    def _in_hand(self, job_id: str, *, answered: bool) -> bool:
        """Whether a RUNNING job has a worker, or another call is about to give it one or to end it."""
        elsewhere = answered and self._dispatching[job_id] > 1
        return elsewhere or self._workers.runs(job_id) or job_id in self._unfinished

    def _is_dispatching(self, job_id: str) -> bool:
        return self._dispatching[job_id] > 0

    def _has_no_worker(self, job_id: str) -> bool:
        """Whether no worker runs a RUNNING job and no call is about to give it one or to end it.

        Not known while there is a worker whose heartbeats do not name its jobs.
        """
        if self._is_dispatching(job_id) or job_id in self._unfinished:
            return False
        return self._workers.all_report_running() and not self._workers.has(job_id)

    async def _rescue(self, job_id: str, why: str, call: Call) -> None:
        """Puts a job back, in one attempt with a deadline of its own, as the permission to do so says."""
        call.tell(DISPATCH_RESCUE, f"put back into the queue: {why}", job_id=job_id)
        try:
            put = await self._queue.enqueue_job(
                EnqueueJobRequest(job_id=job_id, enqueued_at_ms=self._world.now_ms()), call
            )
        except Failure as failure:
            call.tell(CONSISTENCY_ANOMALY, f"could not be put back: {failure.message}", job_id=job_id)
            return
        if not put.accepted:
            call.tell(CONSISTENCY_ANOMALY, "the queue did not take it back", job_id=job_id)

    def _look_for_lost_jobs(self, worker: WorkerEntry, call: Call) -> None:
        for job_id in self._workers.unaccounted(worker):
            call.tell(CONSISTENCY_ANOMALY, "its worker asks for work as if it had none", job_id=job_id)
        for job_id in self._workers.abandoned(worker):
            self._give_up(job_id, worker.worker_id, "its worker does not run it", call)

    def _give_up(self, job_id: str, worker_id: str, why: str, call: Call) -> None:
        """Has the next sweep end a job that no worker will report on."""
        call.tell(CONSISTENCY_ANOMALY, why, job_id=job_id, worker_id=worker_id)
        self._unfinished[job_id] = endings.lost(worker_id)

    async def _finish(self, job_id: str, ending: Ending, call: Call) -> None:
        """Ends a job that nobody reports on; what fails is tried again with the next sweep."""
        self._unfinished[job_id] = ending
        try:
            await self._end(job_id, ending, call.under(COMPENSATION))
        except JobNotFound:
            call.tell(CONSISTENCY_ANOMALY, "is to be ended and has no record", job_id=job_id)
        except Failure as failure:
            call.tell(CONSISTENCY_ANOMALY, f"could not be ended: {failure.message}", job_id=job_id)
            return
        self._unfinished.pop(job_id, None)

    async def _end(self, job_id: str, ending: Ending, call: Call) -> None:
        """Stores the envelope, then moves the job to the state of the envelope that is stored."""
        stored = await self._results.store_result(ending.envelope(job_id), call)
        target, reason = stored.current_terminal_status, ending.reason
        if not stored.stored:
            reason = ADOPTED_STORED_RESULT if target == FAILED else ""
            self._tell_race("ends by the envelope that was there first", job_id, ending.target, target, call)
        elif target != ending.target:
            reason = OUTPUT_TOO_LARGE
        moved = await self._jobs.transition_job_status(
            TransitionJobStatusRequest(
                job_id=job_id, expected_from_status=RUNNING, to_status=target, reason=reason
            ),
            call,
        )
        if not moved.applied and moved.current_status != target:
            self._tell_race(
                "another terminal state was there first", job_id, target, moved.current_status, call
            )

    def _tell_race(
        self,
        message: str,
        job_id: str,
        expected: JobStatus.ValueType,
        current: JobStatus.ValueType,
        call: Call,
    ) -> None:
        call.tell(
            TERMINAL_RACE,
            message,
            job_id=job_id,
            expected_status=JobStatus.Name(expected),
            current_status=JobStatus.Name(current),
        )

    async def _read(self, job_id: str, call: Call) -> GetJobRecordResponse:
        return await self._jobs.get_job_record(GetJobRecordRequest(job_id=job_id), call)


async def _wait(stopping: asyncio.Event, milliseconds: int) -> bool:
    """Wait so long, or until the node stops. Whether it does."""
    try:
        async with asyncio.timeout(milliseconds / 1000):
            return await stopping.wait()
    except TimeoutError:
        return False
