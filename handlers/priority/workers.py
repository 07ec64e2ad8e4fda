"""The worker methods of the manager: register, heartbeat, claim tasks and report their outcomes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime

from generated.priority import errors
from generated.priority.events import LOAD_DIFFERS
from generated.priority.lifecycle import (
    TASK_ADVANCE,
    TASK_COMPLETE,
    TASK_FAIL,
    TASK_GIVE_BACK,
    TASK_RETRY,
    WORKER,
    WORKER_BEAT,
)
from generated.priority.messages import (
    ACTIVE,
    COMPLETED,
    DEAD_LETTER,
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
from generated.priority.policy import ERROR_TEXT
from generated.priority.records import TaskRecord, WorkerRecord
from generated.priority.settings import ManagerSettings
from handlers.jobs.executor import to_storable_text
from handlers.priority.lookups import Lookups
from handlers.priority.views import parse_timestamp, to_assigned_task, to_refusal, to_timestamp
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.stores.contract import ExchangeResult, LeaseProof, LeaseSettlement
from runtime.stores.store import NoSuchEntity

_WORKER_LOST_FIELDS = {
    "reason": "worker_lost",
    "error": "its worker does not know of it",
    "retriable": "true",
}
"""For a task whose assignment was lost on the way, or whose outcome the worker has dropped."""

_CLOCK_ERRORS = frozenset(due.values["error"] for due in TASK_RETRY.dues)
"""The errors of tasks with an expired lease, as opposed to the report of a worker."""


class WorkerCalls(Lookups):
    """The methods of WorkersService."""

    _settings: ManagerSettings

    async def register_worker(self, request: RegisterWorkerRequest, call: Call) -> RegisterWorkerResponse:
        settings = self._settings
        created = await self._workers.create(
            WorkerRecord(
                worker_id=self._world.new_id(),
                capacity=request.capacity if request.HasField("capacity") else settings.default_capacity,
                capabilities=tuple(dict.fromkeys(request.capabilities)),
                version=request.version if request.HasField("version") else None,
            ),
            call,
        )
        worker = created.record
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
        claimed, outcomes = await self._exchange(request, settlements, call)
        response = ExchangeTasksResponse(tasks=map(to_assigned_task, claimed))
        for each, outcome in zip(settlements, outcomes, strict=True):
            response.results.append(await self._to_reported_result(each, outcome))
        return response

    async def _exchange(
        self, request: ExchangeTasksRequest, settlements: Sequence[LeaseSettlement], call: Call
    ) -> ExchangeResult[TaskRecord]:
        """Settle the results, and claim as many tasks as the worker has room for after that."""
        worker_id, offers = request.worker_id, request.capabilities or None
        free = request.available_capacity - len(settlements)
        if free >= 0:
            return await self._tasks.exchange(worker_id, settlements, free, call, capabilities=offers)
        outcomes = await self._tasks.settle_many(settlements, call)
        claimed = await self._tasks.claim(worker_id, request.available_capacity, call, capabilities=offers)
        return ExchangeResult(claimed, outcomes)

    async def report_result(self, request: ReportResultRequest, call: Call) -> TaskState:
        if request.HasField("attempt"):
            attempt = request.attempt
        else:
            attempt = await self._find_attempt(request.worker_id, request.task_id)
        settlement = _to_settlement(request.worker_id, request, attempt)
        (outcome,) = await self._tasks.settle_many([settlement], call)
        return TaskState(task_id=request.task_id, status=await self._require_status(settlement, outcome))

    async def heartbeat(self, request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
        worker_id = request.worker_id
        with suppress(NoSuchEntity):
            load = {"reported_load": str(request.current_load)}
            await self._workers.transition(worker_id, WORKER_BEAT.name, call, given=load)
        worker = await self._find_live_worker(worker_id)
        await self._follow_status(worker, request.status, call)
        leased = await self._find_leased(worker_id)
        if request.current_load != len(leased):
            call.tell(LOAD_DIFFERS, f"it says {request.current_load}, {len(leased)} are booked on it")
        if request.HasField("running_as_of"):
            before = parse_timestamp(request.running_as_of, "running_as_of")
            await self._release_unknown(worker_id, leased, request.running, before, call)
        # What it runs and does not hold was taken from it.
        lost = {*request.running} - {each.task_id for each in leased}
        # Tasks that the worker claims after this response have a later timestamp.
        return HeartbeatResponse(acknowledged=True, stop=sorted(lost), at=to_timestamp(worker.last_heartbeat))

    async def _follow_status(self, worker: WorkerRecord, status: int, call: Call) -> None:
        """Let a worker drain, or take tasks again, as its heartbeat says."""
        edge = WORKER.edges.get((worker.status, status))
        if edge is not None and "worker" in edge.actors:
            with suppress(NoSuchEntity):
                await self._workers.transition(worker.worker_id, edge.name, call)

    async def _release_unknown(
        self,
        worker_id: str,
        leased: Sequence[TaskRecord],
        running: Collection[str],
        before: datetime,
        call: Call,
    ) -> None:
        """Release the tasks that were leased to a worker before a moment, and of which it knows nothing.

        Each lease is left by its own fence: one that has ended meanwhile, or was claimed anew, stays.
        """
        unknown = [
            LeaseSettlement(
                each.task_id, LeaseProof(worker_id, each.attempt), TASK_RETRY.name, _WORKER_LOST_FIELDS
            )
            for each in leased
            if each.task_id not in running and each.started_at is not None and each.started_at < before
        ]
        if unknown:
            await self._tasks.settle_many(unknown, call)

    async def extend_task(self, request: ExtendTaskRequest, _call: Call) -> ExtendTaskResponse:
        lease = LeaseProof(request.worker_id, request.attempt)
        (renewed,) = await self._tasks.renew([(request.task_id, lease)], seconds=request.seconds)
        if renewed is None or renewed.deadline_at is None:
            raise await self._build_stale_attempt(request.task_id, lease)
        return ExtendTaskResponse(task_id=request.task_id, deadline_at=to_timestamp(renewed.deadline_at))

    async def report_progress(self, request: ReportProgressRequest, call: Call) -> TaskState:
        lease = LeaseProof(request.worker_id, request.attempt)
        try:
            is_applied, _ = await self._tasks.transition(
                request.task_id, TASK_ADVANCE.name, call, lease=lease, given={"progress": request.progress}
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
        deadline = self._world.monotonic() + request.wait_ms / 1000
        claimed = await self._tasks.claim(worker_id, capacity, call, capabilities=offers)
        if claimed:
            return claimed
        worker = await self._find_live_worker(worker_id)
        if worker.status != ACTIVE or not capacity:
            return ()
        while not claimed and (left := deadline - self._world.monotonic()) > 0:
            await self._tasks.wait(left)
            claimed = await self._tasks.claim(worker_id, capacity, call, capabilities=offers)
        return claimed

    async def _to_reported_result(
        self, settlement: LeaseSettlement, outcome: int | Exception
    ) -> ReportedResult:
        try:
            status = await self._require_status(settlement, outcome)
        except Failure as failure:
            return ReportedResult(task_id=settlement.key, refused=to_refusal(failure))
        return ReportedResult(task_id=settlement.key, status=status)

    async def _require_status(
        self, settlement: LeaseSettlement, outcome: int | Exception
    ) -> TaskStatus.ValueType:
        """Return the status that a report led to, also a repeated one; raise why it is refused."""
        if isinstance(outcome, Exception):
            record = await self._find_task(settlement.key)
            if not isinstance(outcome, errors.StaleAttempt) or not _is_repeated(settlement, record):
                raise outcome
            outcome = record.status
        return TaskStatus.ValueType(outcome)

    async def _find_attempt(self, worker_id: str, task_id: str) -> int:
        """Find the attempt of the current or last lease of a worker on a task."""
        record = await self._find_task(task_id)
        if record.assigned_worker_id != worker_id:
            raise errors.StaleAttempt(holder=worker_id, key=task_id)
        return record.attempt

    async def _build_stale_attempt(self, task_id: str, lease: LeaseProof) -> Failure:
        """Build the error for a worker that does not own the lease of a task."""
        await self._find_task(task_id)
        return errors.StaleAttempt(holder=lease.owner, key=task_id)


def _to_settlement(worker_id: str, report: ReportResultRequest | TaskResult, attempt: int) -> LeaseSettlement:
    """Convert a report to a settlement: a retriable failure leads back into the queue."""
    lease = LeaseProof(worker_id, attempt)
    if report.status == COMPLETED:
        fields = {"result": report.result if report.HasField("result") else None}
        return LeaseSettlement(report.task_id, lease, TASK_COMPLETE.name, fields)
    if report.status == QUEUED:
        return LeaseSettlement(report.task_id, lease, TASK_GIVE_BACK.name, {"reason": "given_back"})
    retriable = report.error.retriable or not report.error.HasField("retriable")
    fields = {
        "error": to_storable_text(report.error.message, ERROR_TEXT),
        "retriable": str(retriable).lower(),
        "reason": "reported",
    }
    edge = TASK_RETRY if retriable else TASK_FAIL
    return LeaseSettlement(report.task_id, lease, edge.name, fields)


def _is_repeated(settlement: LeaseSettlement, record: TaskRecord) -> bool:
    """Whether a task is as a settlement has left it, whose answer was lost: the same report comes again."""
    lease = settlement.lease
    if record.attempt != lease.fence or record.status == EXECUTING:
        return False
    if record.assigned_worker_id not in (None, lease.owner):
        return False
    if settlement.edge == TASK_RETRY.name:
        return record.status in (QUEUED, DEAD_LETTER) and record.error not in _CLOCK_ERRORS
    ends = {TASK_COMPLETE.name: COMPLETED, TASK_FAIL.name: FAILED, TASK_GIVE_BACK.name: QUEUED}
    return record.status == ends[settlement.edge]
