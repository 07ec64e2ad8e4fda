"""The worker methods of the manager: register, heartbeat, claim tasks and report their outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from generated.priority import errors
from generated.priority.events import LOAD_DIFFERS
from generated.priority.lifecycle import TASK_ADVANCE, TASK_GIVE_BACK, WORKER_BEAT
from generated.priority.messages import (
    ACTIVE,
    COMPLETED,
    EXECUTING,
    FAILED,
    QUEUED,
    DeregisterWorkerRequest,
    DeregisterWorkerResponse,
    ExchangeTasksRequest,
    ExchangeTasksResponse,
    ExtendTaskRequest,
    ExtendTaskResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    PollTasksRequest,
    PollTasksResponse,
    RegisterWorkerRequest,
    RegisterWorkerResponse,
    ReportedResult,
    ReportProgressRequest,
    ReportResultRequest,
    TaskResult,
    TaskState,
    TaskStatus,
)
from generated.priority.records import TaskRecord, WorkerRecord
from generated.priority.settings import ManagerSettings
from handlers.priority.lookups import Lookups
from handlers.priority.views import parse_timestamp, to_assigned_task, to_refusal, to_timestamp
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.stores.store import Held, NoSuchEntity, Settlement

_WORKER_LOST_FIELDS = {
    "reason": "worker_lost",
    "error": "its worker does not know of it",
    "retriable": "true",
}
"""For a task whose assignment was lost on the way, or whose outcome the worker has dropped."""


class WorkerCalls(Lookups):
    """The methods of WorkersService."""

    _settings: ManagerSettings

    async def register_worker(self, request: RegisterWorkerRequest, call: Call) -> RegisterWorkerResponse:
        settings = self._settings
        worker = await self._workers.create(
            WorkerRecord(
                worker_id=self._world.new_id(),
                capacity=request.capacity if request.HasField("capacity") else settings.default_capacity,
                capabilities=tuple(dict.fromkeys(request.capabilities)),
                version=request.version if request.HasField("version") else None,
            ),
            call,
        )
        call.note(worker_id=worker.worker_id)
        return RegisterWorkerResponse(
            worker_id=worker.worker_id,
            poll_interval_ms=settings.poll_interval_ms,
            heartbeat_interval_seconds=settings.heartbeat_interval_seconds,
        )

    async def poll_tasks(self, request: PollTasksRequest, call: Call) -> PollTasksResponse:
        return PollTasksResponse(tasks=map(to_assigned_task, await self._claim_or_wait(request, call)))

    async def exchange_tasks(self, request: ExchangeTasksRequest, call: Call) -> ExchangeTasksResponse:
        if not request.results:
            return ExchangeTasksResponse(
                tasks=map(to_assigned_task, await self._claim_or_wait(request, call))
            )
        settlements = [_to_settlement(request.worker_id, each, each.attempt) for each in request.results]
        outcomes, claimed = await self._tasks.exchange(
            settlements,
            request.worker_id,
            request.available_capacity,
            call,
            offers=request.capabilities or None,
        )
        response = ExchangeTasksResponse(tasks=map(to_assigned_task, claimed))
        for each, outcome in zip(settlements, outcomes, strict=True):
            if isinstance(outcome, Failure):
                response.results.append(await self._to_refused_result(each, outcome))
            else:
                response.results.add(task_id=each.key, status=TaskStatus.ValueType(outcome))
        return response

    async def report_result(self, request: ReportResultRequest, call: Call) -> TaskState:
        if request.HasField("attempt"):
            attempt = request.attempt
        else:
            attempt = await self._find_attempt(request.worker_id, request.task_id)
        settlement = _to_settlement(request.worker_id, request, attempt)
        (outcome,) = await self._tasks.settle_all([settlement], call)
        return TaskState(task_id=request.task_id, status=await self._require_status(settlement, outcome))

    async def heartbeat(self, request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
        worker_id = request.worker_id
        with suppress(NoSuchEntity):
            await self._workers.shift(worker_id, WORKER_BEAT, call, reported_load=str(request.current_load))
        worker = await self._find_live_worker(worker_id)
        if worker.status != request.status:
            await self._workers.move_to(worker_id, request.status, call)
        leased = await self._tasks.held_by(worker_id)
        if request.current_load != len(leased):
            call.tell(LOAD_DIFFERS, f"it says {request.current_load}, {len(leased)} are booked on it")
        if request.HasField("running_as_of") and (unknown := leased.difference(request.running)):
            before = parse_timestamp(request.running_as_of, "running_as_of")
            leased -= await self._tasks.disown(
                worker_id, unknown, before, QUEUED, call, **_WORKER_LOST_FIELDS
            )
        lost = {*await self._tasks.taken_from(worker_id), *request.running} - leased
        # Tasks that the worker claims after this response have a later timestamp.
        return HeartbeatResponse(acknowledged=True, stop=sorted(lost), at=to_timestamp(worker.last_heartbeat))

    async def extend_task(self, request: ExtendTaskRequest, _call: Call) -> ExtendTaskResponse:
        lease = Held(request.worker_id, request.attempt)
        ends = await self._tasks.renew(request.task_id, lease, request.seconds)
        if ends is None:
            raise await self._build_stale_attempt(request.task_id, lease)
        return ExtendTaskResponse(task_id=request.task_id, deadline_at=to_timestamp(ends))

    async def report_progress(self, request: ReportProgressRequest, call: Call) -> TaskState:
        lease = Held(request.worker_id, request.attempt)
        try:
            is_applied = await self._tasks.shift(
                request.task_id, TASK_ADVANCE, call, lease, progress=request.progress
            )
        except NoSuchEntity:
            is_applied = False
        if not is_applied:
            raise await self._build_stale_attempt(request.task_id, lease)
        return TaskState(task_id=request.task_id, status=EXECUTING)

    async def deregister_worker(
        self, request: DeregisterWorkerRequest, call: Call
    ) -> DeregisterWorkerResponse:
        is_deleted = False
        while not is_deleted:
            worker = await self._find_live_worker(request.worker_id)
            is_deleted = (await self._workers.delete(request.worker_id, worker.status, call)).applied
        return DeregisterWorkerResponse(worker_id=request.worker_id)

    async def _claim_or_wait(
        self, request: PollTasksRequest | ExchangeTasksRequest, call: Call
    ) -> Sequence[TaskRecord]:
        """Claim tasks for a worker; if there are none, wait for some as long as it asks to."""
        worker_id, capacity, offers = (
            request.worker_id,
            request.available_capacity,
            request.capabilities or None,
        )
        if claimed := await self._tasks.claim(worker_id, capacity, call, offers=offers):
            return claimed
        worker = await self._find_live_worker(worker_id)
        if worker.status != ACTIVE or not capacity or not request.wait_ms:
            return ()
        return await self._tasks.claim(
            worker_id, capacity, call, offers=offers, wait_s=request.wait_ms / 1000
        )

    async def _to_refused_result(self, settlement: Settlement, failure: Failure) -> ReportedResult:
        try:
            await self._find_task(settlement.key)
        except Failure as not_found:
            failure = not_found
        return ReportedResult(task_id=settlement.key, refused=to_refusal(failure))

    async def _require_status(self, settlement: Settlement, outcome: int | Failure) -> TaskStatus.ValueType:
        """Return the status that a report led to, also a repeated one; raise why it is refused."""
        if isinstance(outcome, Failure):
            await self._find_task(settlement.key)
            raise outcome
        return TaskStatus.ValueType(outcome)

    async def _find_attempt(self, worker_id: str, task_id: str) -> int:
        """Find the attempt of the current or last lease of a worker on a task."""
        record = await self._find_task(task_id)
        if record.assigned_worker_id != worker_id:
            raise errors.StaleAttempt(holder=worker_id, key=task_id)
        return record.attempt

    async def _build_stale_attempt(self, task_id: str, lease: Held) -> Failure:
        """Build the error for a worker that does not own the lease of a task."""
        await self._find_task(task_id)
        return errors.StaleAttempt(holder=lease.owner, key=task_id)


def _to_settlement(worker_id: str, report: ReportResultRequest | TaskResult, attempt: int) -> Settlement:
    """Convert a report to a settlement: a retriable failure leads back into the queue."""
    lease = Held(worker_id, attempt)
    if report.status == COMPLETED:
        fields = {"result": report.result if report.HasField("result") else None}
        return Settlement(report.task_id, COMPLETED, lease, fields)
    if report.status == QUEUED:
        fields = {"reason": "given_back"}
        return Settlement(report.task_id, QUEUED, lease, fields, edge=TASK_GIVE_BACK.name)
    retriable = report.error.retriable or not report.error.HasField("retriable")
    fields = {"error": report.error.message, "retriable": str(retriable).lower(), "reason": "reported"}
    return Settlement(report.task_id, QUEUED if retriable else FAILED, lease, fields)
