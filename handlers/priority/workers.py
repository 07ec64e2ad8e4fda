"""What workers ask for: they register, are handed tasks, and report what came of them."""

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
from handlers.priority.lookups import Reading
from handlers.priority.views import assigned, moment, refusal, stamp
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.stores.store import Held, NoSuchEntity, Settlement

_UNKNOWN = {"reason": "worker_lost", "error": "its worker does not know of it", "retriable": "true"}
"""The answer that handed it out was lost, or the worker has dropped what came of it."""


class WorkerCalls(Reading):
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
        return PollTasksResponse(tasks=map(assigned, await self._handed_out(request, call)))

    async def exchange_tasks(self, request: ExchangeTasksRequest, call: Call) -> ExchangeTasksResponse:
        if not request.results:
            return ExchangeTasksResponse(tasks=map(assigned, await self._handed_out(request, call)))
        asked = [_settlement(request.worker_id, each, each.attempt) for each in request.results]
        ended, taken = await self._tasks.exchange(
            asked, request.worker_id, request.available_capacity, call, offers=request.capabilities or None
        )
        answer = ExchangeTasksResponse(tasks=map(assigned, taken))
        for each, outcome in zip(asked, ended, strict=True):
            if isinstance(outcome, Failure):
                answer.results.append(await self._refused(each, outcome))
            else:
                answer.results.add(task_id=each.key, status=TaskStatus.ValueType(outcome))
        return answer

    async def report_result(self, request: ReportResultRequest, call: Call) -> TaskState:
        given = request.HasField("attempt")
        attempt = request.attempt if given else await self._held_attempt(request.worker_id, request.task_id)
        asked = _settlement(request.worker_id, request, attempt)
        (ended,) = await self._tasks.settle_all([asked], call)
        return TaskState(task_id=request.task_id, status=await self._status_of(asked, ended))

    async def heartbeat(self, request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
        worker_id = request.worker_id
        with suppress(NoSuchEntity):
            await self._workers.shift(worker_id, WORKER_BEAT, call, reported_load=str(request.current_load))
        worker = await self._living(worker_id)
        if worker.status != request.status:
            await self._workers.move_to(worker_id, request.status, call)
        held = await self._tasks.held_by(worker_id)
        if request.current_load != len(held):
            call.tell(LOAD_DIFFERS, f"it says {request.current_load}, {len(held)} are booked on it")
        if request.HasField("running_as_of") and (unknown := held.difference(request.running)):
            before = moment(request.running_as_of, "running_as_of")
            held -= await self._tasks.disown(worker_id, unknown, before, QUEUED, call, **_UNKNOWN)
        lost = {*await self._tasks.taken_from(worker_id), *request.running} - held
        # What the worker asks for once it has this answer is stamped later than this.
        return HeartbeatResponse(acknowledged=True, stop=sorted(lost), at=stamp(worker.last_heartbeat))

    async def extend_task(self, request: ExtendTaskRequest, _call: Call) -> ExtendTaskResponse:
        held = Held(request.worker_id, request.attempt)
        ends = await self._tasks.renew(request.task_id, held, request.seconds)
        if ends is None:
            raise await self._lost(request.task_id, held)
        return ExtendTaskResponse(task_id=request.task_id, deadline_at=stamp(ends))

    async def report_progress(self, request: ReportProgressRequest, call: Call) -> TaskState:
        held = Held(request.worker_id, request.attempt)
        try:
            is_kept = await self._tasks.shift(
                request.task_id, TASK_ADVANCE, call, held, progress=request.progress
            )
        except NoSuchEntity:
            is_kept = False
        if not is_kept:
            raise await self._lost(request.task_id, held)
        return TaskState(task_id=request.task_id, status=EXECUTING)

    async def deregister_worker(
        self, request: DeregisterWorkerRequest, call: Call
    ) -> DeregisterWorkerResponse:
        gone = False
        while not gone:
            worker = await self._living(request.worker_id)
            gone = (await self._workers.delete(request.worker_id, worker.status, call)).applied
        return DeregisterWorkerResponse(worker_id=request.worker_id)

    async def _handed_out(
        self, request: PollTasksRequest | ExchangeTasksRequest, call: Call
    ) -> Sequence[TaskRecord]:
        """What there is for a worker; if there is nothing, what comes while it waits."""
        worker_id, most, offers = request.worker_id, request.available_capacity, request.capabilities or None
        if taken := await self._tasks.claim(worker_id, most, call, offers=offers):
            return taken
        worker = await self._living(worker_id)
        if worker.status != ACTIVE or not most or not request.wait_ms:
            return ()
        return await self._tasks.claim(worker_id, most, call, offers=offers, wait_s=request.wait_ms / 1000)

    async def _refused(self, asked: Settlement, why: Failure) -> ReportedResult:
        try:
            await self._task(asked.key)
        except Failure as failure:
            why = failure
        return ReportedResult(task_id=asked.key, refused=refusal(why))

    async def _status_of(self, asked: Settlement, ended: int | Failure) -> TaskStatus.ValueType:
        """Where a report has led to, now or when it came first; or why it is refused."""
        if isinstance(ended, Failure):
            await self._task(asked.key)
            raise ended
        return TaskStatus.ValueType(ended)

    async def _held_attempt(self, worker_id: str, task_id: str) -> int:
        """The attempt of the lease that a worker has on a task, or had when it left the task."""
        record = await self._task(task_id)
        if record.assigned_worker_id != worker_id:
            raise errors.StaleAttempt(holder=worker_id, key=task_id)
        return record.attempt

    async def _lost(self, task_id: str, held: Held) -> Failure:
        """Why a worker may say nothing of a task."""
        await self._task(task_id)
        return errors.StaleAttempt(holder=held.owner, key=task_id)


def _settlement(worker_id: str, told: ReportResultRequest | TaskResult, attempt: int) -> Settlement:
    """Where a report leads: a failure that may be mended by a repeat leads back into the queue."""
    held = Held(worker_id, attempt)
    if told.status == COMPLETED:
        given = {"result": told.result if told.HasField("result") else None}
        return Settlement(told.task_id, COMPLETED, held, given)
    if told.status == QUEUED:
        given = {"reason": "given_back"}
        return Settlement(told.task_id, QUEUED, held, given, edge=TASK_GIVE_BACK.name)
    retriable = told.error.retriable or not told.error.HasField("retriable")
    given = {"error": told.error.message, "retriable": str(retriable).lower(), "reason": "reported"}
    return Settlement(told.task_id, QUEUED if retriable else FAILED, held, given)
