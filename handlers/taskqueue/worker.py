"""The worker: runs its assigned jobs, one in each slot, and reports every outcome."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext

from msgspec.structs import replace

from generated.taskqueue.errors import JOB_ERROR, OUTPUT_TOO_LARGE
from generated.taskqueue.events import (
    CONSISTENCY_ANOMALY,
    FETCH_FAILED,
    HEARTBEAT_ATTEMPT,
    WORKER_LOOP_STARTED,
)
from generated.taskqueue.messages import (
    JOB_OUTCOME_FAILED,
    JOB_OUTCOME_SUCCEEDED,
    FetchWorkRequest,
    FetchWorkResponse,
    ReportWorkOutcomeRequest,
    WorkerHeartbeatRequest,
)
from generated.taskqueue.policy import DISPATCH_RETRY, STORED_TEXT
from generated.taskqueue.services import CoordinatorInternalService
from generated.taskqueue.settings import WorkerSettings
from handlers.jobs import Job, JobFailed, Output, find_or_any, is_being_canceled
from handlers.jobs.executor import Executor
from handlers.jobs.loader import load_setting
from handlers.jobs.registry import ANY, JobRaised, RegisteredFunction
from handlers.taskqueue.outage import Outage
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.model.text import cut
from runtime.world import World

_LONGEST_RUNTIME_MS = 2**32 - 1


class Worker:
    """A worker with several slots. It calls the coordinator and no other component."""

    def __init__(
        self, coordinator: CoordinatorInternalService, settings: WorkerSettings, world: World
    ) -> None:
        self._coordinator = coordinator
        self._settings = settings
        self._world = world
        self._worker_id = settings.worker_id
        self._running: dict[str, None] = {}
        """The jobs in its slots, until their reports are accepted or have failed."""
        self._idle_turn = asyncio.Lock()
        """Held by the idle slot that polls for all of them: each open poll costs two calls a cycle."""
        self._outage = Outage()
        self._functions = load_setting("JOB_HANDLERS", settings.job_handlers)

    async def run(self, call: Call, stopping: asyncio.Event) -> None:
        """Send heartbeats and run jobs until shutdown; then finish the jobs in flight, with heartbeats."""
        call.tell(WORKER_LOOP_STARTED, "asking for work", worker_id=self._worker_id)
        async with (
            Executor(self._settings.job_handlers, call, stopping) as execute,
            asyncio.TaskGroup() as tasks,
        ):
            heartbeats = tasks.create_task(self._send_heartbeats(call))
            async with asyncio.TaskGroup() as slots:
                for _ in range(self._settings.worker_slots):
                    slots.create_task(self._run_slot(execute, call, stopping))
            heartbeats.cancel()

    async def _send_heartbeats(self, call: Call) -> None:
        while True:
            began = self._world.monotonic()
            pause_ms = self._settings.heartbeat_interval_ms
            call.tell(HEARTBEAT_ATTEMPT, "alive", worker_id=self._worker_id)
            request = WorkerHeartbeatRequest(
                worker_id=self._worker_id,
                heartbeat_at_ms=self._world.now_ms(),
                capacity_hint=self._settings.worker_slots,
                running=self._running,
                reports_running=True,
            )
            try:
                response = await self._coordinator.worker_heartbeat(request, call)
                pause_ms = response.next_heartbeat_in_ms or pause_ms
            except Failure:
                pass  # The next heartbeat is the retry; the coordinator logs a worker that stays silent.
            await self._world.sleep(max(0.0, began + pause_ms / 1000 - self._world.monotonic()))

    async def _run_slot(self, execute: Executor, call: Call, stopping: asyncio.Event) -> None:
        """Fetch a job, run it, report its outcome, and repeat until shutdown."""
        turn: AbstractAsyncContextManager[object] = nullcontext()
        while not stopping.is_set():
            try:
                async with turn:
                    if stopping.is_set():
                        return
                    work = await self._fetch(call)
            except Failure:
                turn = self._idle_turn
                await self._wait_for_stop(self._settings.heartbeat_interval_ms, stopping)
                continue
            if not work.assigned:
                turn = self._idle_turn
                await self._wait_for_stop(work.retry_after_ms or DISPATCH_RETRY, stopping)
                continue
            turn = nullcontext()  # While there is work, slots fetch it side by side.
            self._running[work.job_id] = None
            try:
                await self._report(await self._execute(work, execute, stopping), call)
            except asyncio.CancelledError:
                self._log_anomaly("was cut off when its worker stopped", work.job_id, call)
                raise
            finally:
                self._running.pop(work.job_id, None)

    async def _fetch(self, call: Call) -> FetchWorkResponse:
        """Fetch a job. The begin and the end of an outage are logged once for all slots."""

        def log_fetch_failure(message: str, code: str | None = None) -> None:
            call.tell(FETCH_FAILED, message, worker_id=self._worker_id, grpc_code=code)

        return await self._outage.watch(
            self._coordinator.fetch_work(FetchWorkRequest(worker_id=self._worker_id), call),
            began=lambda failure: log_fetch_failure(failure.message, failure.grpc),
            ended=lambda count: log_fetch_failure(
                f"there are answers again; requests without an answer: {count}"
            ),
        )

    async def _wait_for_stop(self, timeout_ms: int, stopping: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await stopping.wait()
        except TimeoutError:
            pass

    async def _execute(
        self, work: FetchWorkResponse, execute: Executor, stopping: asyncio.Event
    ) -> ReportWorkOutcomeRequest:
        """Run the job's function and build the report of its outcome."""
        report = ReportWorkOutcomeRequest(worker_id=self._worker_id, job_id=work.job_id)
        began = self._world.monotonic()
        try:
            job = replace(self._to_job(work), is_stopping=stopping.is_set)
            output = await execute(self._find_function(work.spec.job_type), job)
            self._refuse_too_large(output)
        except JobRaised as raised:
            report.outcome = JOB_OUTCOME_FAILED
            report.failure_reason = _to_stored_text(f"{JOB_ERROR}: {raised.reason}")
        except JobFailed as failed:
            report.outcome = JOB_OUTCOME_FAILED
            report.failure_reason, report.output_summary = (
                _to_stored_text(failed.reason),
                _to_stored_text(failed.summary),
            )
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_being_canceled():
                raise
            report.outcome = JOB_OUTCOME_FAILED
            report.failure_reason = _to_stored_text(f"{JOB_ERROR}: {type(error).__name__}: {error}")
        else:
            report.outcome = JOB_OUTCOME_SUCCEEDED
            report.output_bytes, report.output_summary = output.content, _to_stored_text(output.summary)
        report.runtime_ms = min(round((self._world.monotonic() - began) * 1000), _LONGEST_RUNTIME_MS)
        return report

    def _find_function(self, job_type: str) -> RegisteredFunction:
        """Find the function of a job type; a type without one does ordinary work."""
        return self._functions.get(job_type) or self._functions.get(ANY) or find_or_any(ANY)

    def _refuse_too_large(self, output: Output) -> None:
        max_bytes = self._settings.max_output_bytes
        if len(output.content) > max_bytes:
            size = len(output.content)
            raise JobFailed(
                OUTPUT_TOO_LARGE, f"{OUTPUT_TOO_LARGE}: {size} bytes, at most {max_bytes} are kept"
            )

    def _to_job(self, work: FetchWorkResponse) -> Job:
        return Job(
            job_id=work.job_id,
            job_type=work.spec.job_type,
            work_duration_ms=work.spec.work_duration_ms,
            payload_size_bytes=work.spec.payload_size_bytes,
            max_output_bytes=self._settings.max_output_bytes,
            world=self._world,
            token=work.job_id,
            labels=dict(work.spec.labels),
        )

    async def _report(self, report: ReportWorkOutcomeRequest, call: Call) -> None:
        try:
            response = await self._coordinator.report_work_outcome(report, call)
        except Failure as failure:
            self._log_anomaly(f"its outcome could not be reported: {failure.message}", report.job_id, call)
            return
        if not response.accepted:
            self._log_anomaly("its outcome was refused", report.job_id, call)

    def _log_anomaly(self, message: str, job_id: str, call: Call) -> None:
        call.tell(CONSISTENCY_ANOMALY, message, job_id=job_id, worker_id=self._worker_id)


def _to_stored_text(text: str) -> str:
    """Convert text of a job to what can be stored: valid UTF-8, of a limited length."""
    return cut(text.encode(errors="replace").decode(), STORED_TEXT)
