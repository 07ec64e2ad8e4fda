"""The coordinator: tracks workers, dispatches jobs to them, and ends jobs."""

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
    """Dispatch of jobs. It owns the registry of workers; records and results belong to other components."""

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
        """Sweep for silent workers once per heartbeat interval, and reconcile stranded jobs less often."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._sweep_loop(call, stopping))
            tasks.create_task(self._reconcile_loop(call, stopping))

    async def _sweep_loop(self, call: Call, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            await self.sweep(call)
            await _wait_for_stop(stopping, self._settings.heartbeat_interval_ms)

    async def _reconcile_loop(self, call: Call, stopping: asyncio.Event) -> None:
        while not await _wait_for_stop(stopping, self._settings.worker_timeout_ms + STRANDED_GRACE):
            await self.reconcile(call)

    async def reconcile(self, call: Call) -> None:
        """Requeue QUEUED jobs outside the queue; have the next sweep end RUNNING jobs without a worker."""
        for job_id in await self._reconciler.reconcile(call):
            call.tell(CONSISTENCY_ANOMALY, "is RUNNING on no worker; it is ended as lost", job_id=job_id)
            self._unfinished[job_id] = endings.from_lost_worker("no worker runs it")

    async def sweep(self, call: Call) -> None:
        """Expire workers without heartbeats, and end all jobs that are to be ended."""
        for expired in self._workers.expire_silent():
            if expired.was_available:
                call.tell(
                    WORKER_UNAVAILABLE, f"silent for {expired.silence_ms:.0f} ms", worker_id=expired.worker_id
                )
            for job_id in expired.jobs:
                self._schedule_lost(job_id, expired.worker_id, "its worker is lost", call)
        unfinished = list(self._unfinished.items())
        await asyncio.gather(*(self._try_end(job_id, ending, call) for job_id, ending in unfinished))

    async def worker_heartbeat(self, request: WorkerHeartbeatRequest, call: Call) -> WorkerHeartbeatResponse:
        running = request.running if request.reports_running else None
        if self._workers.record_heartbeat(request.worker_id, request.capacity_hint, running):
            call.tell(WORKER_AVAILABLE, "heard of", capacity_hint=request.capacity_hint)
        worker = self._workers.find_available(request.worker_id)
        if worker is not None and worker.running is not None:
            self._schedule_abandoned(worker, call)
        return WorkerHeartbeatResponse(
            accepted=True, next_heartbeat_in_ms=self._settings.heartbeat_interval_ms
        )

    async def fetch_work(self, request: FetchWorkRequest, call: Call) -> FetchWorkResponse:
        worker = self._workers.find_available(request.worker_id)
        if worker is None:
            return self._build_no_work()
        worker.open_fetches.add(call)
        try:
            if worker.assigned and worker.running is None:
                self._find_lost_jobs(worker, call)
            return await self._dispatch_next(worker, call)
        finally:
            worker.open_fetches.discard(call)

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
            if not self._workers.is_assigned(job_id, request.worker_id):
                call.tell(FOREIGN_REPORT, "reported by a worker that it is not assigned to")
            await self._end(job_id, endings.from_report(request, record), call)
        self._workers.release(job_id)
        self._unfinished.pop(job_id, None)
        return ReportWorkOutcomeResponse(accepted=True)

    def _build_no_work(self) -> FetchWorkResponse:
        return FetchWorkResponse(assigned=False, retry_after_ms=self._settings.fetch_retry_after_ms)

    async def _dispatch_next(self, worker: WorkerEntry, call: Call) -> FetchWorkResponse:
        """Pop one job and assign it to the worker, unless the pop or the dispatch fails."""
        popped = await self._pop_job(worker.worker_id, call)
        if not popped.found:
            self._reconciler.note_empty_queue()
            return self._build_no_work()
        job_id = popped.job_id
        self._dispatching[job_id] += 1
        try:
            record = await self._dispatch(job_id, call)
            if record is not None and not (call.gone or call.expired):
                worker.assigned[job_id] = None
                return FetchWorkResponse(assigned=True, job_id=job_id, spec=record.spec)
        finally:
            self._dispatching[job_id] -= 1
            if not self._dispatching[job_id]:
                del self._dispatching[job_id]
        if record is not None:
            call.tell(CONSISTENCY_ANOMALY, "its worker did not wait for it", job_id=job_id)
            await self._try_end(job_id, endings.from_lost_worker("it never began"), call)
        return FetchWorkResponse(assigned=False, retry_after_ms=DISPATCH_RETRY)

    async def _pop_job(self, worker_id: str, call: Call) -> DequeueJobResponse:
        """Pop a job from the queue. In an outage every idle slot retries, so log only its begin and end."""

        def log_anomaly(problem: str) -> None:
            # Each pop without a response may have removed a job, so the end of an outage counts them.
            call.tell(CONSISTENCY_ANOMALY, f"a job may have left the queue unseen: {problem}")

        return await self._queue_outage.watch(
            self._queue.dequeue_job(DequeueJobRequest(worker_id=worker_id), call),
            began=lambda failure: log_anomaly(failure.message),
            ended=lambda count: log_anomaly(f"the queue answers again; pops without an answer: {count}"),
        )

    async def _dispatch(self, job_id: str, call: Call) -> GetJobRecordResponse | None:
        """Move a job that left the queue to RUNNING; return its record if it is now to be assigned."""
        try:
            record = await self._read_record(job_id, call)
        except JobNotFound:
            call.tell(CONSISTENCY_ANOMALY, "a job in the queue has no record; dropped", job_id=job_id)
            return None
        except Failure as failure:
            await self._requeue(job_id, f"its record cannot be read: {failure.message}", call)
            return None
        if call.gone:
            await self._requeue(job_id, "its worker is gone", call)
            return None
        if not await self._start_job(job_id, call):
            return None
        self._reconciler.note_dispatch(record.summary)
        if record.summary.cancel_requested:
            await self._try_end(job_id, endings.from_cancel(record, "while queued"), call)
            return None
        return record

    async def _start_job(self, job_id: str, call: Call) -> bool:
        """Move a job to RUNNING; return whether this call did. If not, requeue it if still QUEUED."""
        current = None
        try:
            transition = await self._jobs.transition_job_status(
                TransitionJobStatusRequest(job_id=job_id, expected_from_status=QUEUED, to_status=RUNNING),
                call,
            )
            if transition.applied:
                return True
            problem, current = "it had left its state", JobStatus.Name(transition.current_status)
        except Failure as failure:
            problem = failure.message
        call.tell(
            DISPATCH_RACE,
            f"could not be moved: {problem}",
            job_id=job_id,
            expected_status=JobStatus.Name(QUEUED),
            current_status=current,
        )
        await self._requeue_if_queued(job_id, call, answered=current is not None)
        return False

    async def _requeue_if_queued(self, job_id: str, call: Call, *, answered: bool) -> None:
        """Requeue a job unless it is known to have left QUEUED."""
        try:
            status = (await self._read_record(job_id, call.under(COMPENSATION))).summary.status
        except JobNotFound:
            call.tell(CONSISTENCY_ANOMALY, "a job in the queue has no record; dropped", job_id=job_id)
            return
        except Failure as failure:
            call.tell(CONSISTENCY_ANOMALY, f"its state cannot be read: {failure.message}", job_id=job_id)
            status = QUEUED
        if status == QUEUED:
            await self._requeue(job_id, "it is still QUEUED", call)
        elif status == RUNNING and not self._is_owned(job_id, answered=answered):
            call.tell(CONSISTENCY_ANOMALY, "is RUNNING and no worker runs it", job_id=job_id)

    def _is_owned(self, job_id: str, *, answered: bool) -> bool:
        """Whether a RUNNING job has a worker, or another call is about to assign or to end it."""
        is_dispatched_elsewhere = answered and self._dispatching[job_id] > 1
        return is_dispatched_elsewhere or self._workers.is_assigned(job_id) or job_id in self._unfinished

    def _is_dispatching(self, job_id: str) -> bool:
        return self._dispatching[job_id] > 0

    def _has_no_worker(self, job_id: str) -> bool:
        """Whether no worker runs a RUNNING job and no call is about to assign or to end it.

        Not known while there is a worker whose heartbeats do not name its jobs.
        """
        if self._is_dispatching(job_id) or job_id in self._unfinished:
            return False
        return self._workers.all_report_running() and not self._workers.is_running(job_id)

    async def _requeue(self, job_id: str, reason: str, call: Call) -> None:
        """Requeue a job, in one attempt with a deadline of its own, as the policy of that call says."""
        call.tell(DISPATCH_RESCUE, f"put back into the queue: {reason}", job_id=job_id)
        try:
            response = await self._queue.enqueue_job(
                EnqueueJobRequest(job_id=job_id, enqueued_at_ms=self._world.now_ms()), call
            )
        except Failure as failure:
            call.tell(CONSISTENCY_ANOMALY, f"could not be put back: {failure.message}", job_id=job_id)
            return
        if not response.accepted:
            call.tell(CONSISTENCY_ANOMALY, "the queue did not take it back", job_id=job_id)

    def _find_lost_jobs(self, worker: WorkerEntry, call: Call) -> None:
        """Find the lost jobs of a worker whose heartbeats do not name its jobs."""
        for job_id in self._workers.mark_unaccounted(worker):
            call.tell(CONSISTENCY_ANOMALY, "its worker asks for work as if it had none", job_id=job_id)
        self._schedule_abandoned(worker, call)

    def _schedule_abandoned(self, worker: WorkerEntry, call: Call) -> None:
        for job_id in self._workers.remove_abandoned(worker):
            self._schedule_lost(job_id, worker.worker_id, "its worker does not run it", call)

    def _schedule_lost(self, job_id: str, worker_id: str, reason: str, call: Call) -> None:
        """Schedule a job that no worker will report on: the next sweep ends it as lost."""
        call.tell(CONSISTENCY_ANOMALY, reason, job_id=job_id, worker_id=worker_id)
        self._unfinished[job_id] = endings.from_lost_worker(worker_id)

    async def _try_end(self, job_id: str, ending: Ending, call: Call) -> None:
        """End a job without a report; a failure is retried by the next sweep."""
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
        """Store the result envelope, then move the job to the terminal state of the stored envelope."""
        stored = await self._results.store_result(ending.to_envelope(job_id), call)
        target, reason = stored.current_terminal_status, ending.reason
        if not stored.stored:
            reason = ADOPTED_STORED_RESULT if target == FAILED else ""
            self._log_race("ends by the envelope that was there first", job_id, ending.target, target, call)
        elif target != ending.target:
            reason = OUTPUT_TOO_LARGE
        transition = await self._jobs.transition_job_status(
            TransitionJobStatusRequest(
                job_id=job_id, expected_from_status=RUNNING, to_status=target, reason=reason
            ),
            call,
        )
        if not transition.applied and transition.current_status != target:
            self._log_race(
                "another terminal state was there first", job_id, target, transition.current_status, call
            )

    def _log_race(
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

    async def _read_record(self, job_id: str, call: Call) -> GetJobRecordResponse:
        return await self._jobs.get_job_record(GetJobRecordRequest(job_id=job_id), call)


async def _wait_for_stop(stopping: asyncio.Event, timeout_ms: int) -> bool:
    """Wait for the timeout or until the node stops; return whether it stops."""
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            return await stopping.wait()
    except TimeoutError:
        return False
