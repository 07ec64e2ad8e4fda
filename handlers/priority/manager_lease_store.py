"""The lease store of a worker: adapts the manager's WorkersService to what a lease worker needs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from generated.priority import errors
from generated.priority.lifecycle import TASK_GIVE_BACK
from generated.priority.messages import (
    COMPLETED,
    FAILED,
    QUEUED,
    AssignedTask,
    ExchangeTasksRequest,
    ExchangeTasksResponse,
    ExtendTaskRequest,
    ReportProgressRequest,
    TaskError,
    TaskResult,
)
from generated.priority.services import WorkersService
from handlers.priority.registration import WORKER_GONE, Registration
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.stores.store import Exchanged, Held, Settling

_STALE = errors.StaleAttempt(holder="the worker", key="it")
_MAX_RESULTS = 500
_MAX_RESULT_BYTES = 2_000_000
"""The bytes of results in one request; the limit of a request is twice as much."""
_LAST_POLL_TIMEOUT_S = 1.0


class ManagerLeaseStore:
    """The tasks that the manager assigns to one worker, as a store from which a lease worker claims."""

    def __init__(
        self, manager: WorkersService, registration: Registration, call: Call, wait_s: float
    ) -> None:
        self._manager = manager
        self._registration = registration
        self._call = call
        self._wait_ms = int(wait_s * 1000)
        self._free_slots = 0
        self._poll: asyncio.Task[None] | None = None
        self._undelivered: list[AssignedTask] = []
        """Tasks of a poll that could not be delivered, because the worker is shutting down."""
        self.deliver: Callable[[Sequence[AssignedTask]], bool] = lambda _: False
        """The callback that takes the tasks of a poll; False if the worker is shutting down."""

    async def exchange(
        self, _owner: str, settling: Sequence[Settling], free: int, call: Call
    ) -> Exchanged[AssignedTask]:
        """Report the ended runs and claim as many new tasks."""
        self._free_slots = free + len(settling)
        return Exchanged(*await self._exchange_results(settling, self._free_slots, call))

    async def settle_all(self, settling: Sequence[Settling], call: Call) -> Sequence[int | Exception]:
        """Report ended runs and claim nothing."""
        _, outcomes = await self._exchange_results(settling, 0, call)
        return outcomes

    async def settle(
        self,
        key: str,
        target: int,
        held: Held,
        call: Call,
        final: bool = False,
        edge: str = "",
        /,
        **given: str | None,
    ) -> int:
        """Report one run."""
        (outcome,) = await self.settle_all([Settling(key, held, target, given, final, edge)], call)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def renew_all(self, held: Sequence[tuple[str, Held]]) -> Sequence[bool | Exception]:
        """Send a heartbeat; return for each lease whether the worker still owns it."""
        await self._registration.send_heartbeat()
        return [(key, each.fence) in self._registration.leases for key, each in held]

    async def awaited(self, timeout_s: float) -> bool:
        """Wait for a task, which is delivered at once."""
        if self._poll is None:
            self._poll = asyncio.create_task(self._wait_for_tasks())
        # Never cancel a poll in flight: the tasks of its response would be lost.
        await asyncio.wait({self._poll}, timeout=timeout_s)
        if self._poll.done():
            poll, self._poll = self._poll, None
            await poll
            return True
        return False

    async def release_undelivered(self, call: Call) -> None:
        """Release the tasks that were assigned and never started. Nothing may be polled after that."""
        if self._poll is not None:
            await asyncio.wait({self._poll}, timeout=_LAST_POLL_TIMEOUT_S)
            self._poll.cancel()
        undelivered, self._undelivered = self._undelivered, []
        edge = TASK_GIVE_BACK
        await self.settle_all(
            [
                Settling(each.task_id, Held("", each.attempt), edge.target, edge=edge.name)
                for each in undelivered
            ],
            call,
        )

    async def extend(self, task: AssignedTask, seconds: float) -> None:
        """Extend the deadline of a run."""
        await self._manager.extend_task(
            ExtendTaskRequest(
                worker_id=self._find_owner(task),
                task_id=task.task_id,
                attempt=task.attempt,
                seconds=int(seconds),
            ),
            self._call,
        )

    async def report(self, task: AssignedTask, progress: str) -> None:
        """Report the progress of a run."""
        await self._manager.report_progress(
            ReportProgressRequest(
                worker_id=self._find_owner(task),
                task_id=task.task_id,
                attempt=task.attempt,
                progress=progress,
            ),
            self._call,
        )

    async def _wait_for_tasks(self) -> None:
        request = ExchangeTasksRequest(available_capacity=self._free_slots, wait_ms=self._wait_ms)
        with suppress(Failure):  # The next exchange fails likewise, and logs it.
            response = await self._send_exchange(request, self._call)
            if response.tasks and not self.deliver(response.tasks):
                self._undelivered += response.tasks

    async def _exchange_results(
        self, settling: Sequence[Settling], capacity: int, call: Call
    ) -> tuple[list[AssignedTask], list[int | Exception]]:
        """Report results and claim tasks, in as many requests as the limits need."""
        worker_id = self._registration.worker_id
        outcomes: list[int | Exception] = []
        owned: list[tuple[int, TaskResult]] = []
        for index, each in enumerate(settling):
            owner = self._registration.leases.get((each.key, each.held.fence), "")
            outcomes.append(_STALE)
            if owner == worker_id:
                owned.append((index, _to_task_result(each)))
        chunks = list(_split_results(owned)) or [[]]
        capacities = [min(len(chunk), capacity) for chunk in chunks[:-1]]
        capacities.append(max(capacity - sum(capacities), 0))
        requests = [
            ExchangeTasksRequest(results=[each for _, each in chunk], available_capacity=share)
            for chunk, share in zip(chunks, capacities, strict=True)
        ]
        if not settling:
            return list((await self._send_exchange(requests[0], call)).tasks), outcomes
        claimed: list[AssignedTask] = []
        responses = await asyncio.gather(
            *(self._send_exchange(each, call) for each in requests), return_exceptions=True
        )
        for chunk, response in zip(chunks, responses, strict=True):
            if isinstance(response, ExchangeTasksResponse):
                claimed += response.tasks
                for (index, _), reported in zip(chunk, response.results, strict=True):
                    outcomes[index] = reported.status or _STALE
            elif isinstance(response, Failure):
                for index, _ in chunk:
                    outcomes[index] = response
            else:
                raise response
        for each, outcome in zip(settling, outcomes, strict=True):
            if not isinstance(outcome, Failure) or outcome is _STALE:
                self._registration.leases.pop((each.key, each.held.fence), None)
        return claimed, outcomes

    async def _send_exchange(self, request: ExchangeTasksRequest, call: Call) -> ExchangeTasksResponse:
        worker_id = request.worker_id = self._registration.worker_id
        try:
            with self._registration.track_request():
                response = await self._manager.exchange_tasks(request, call)
                for task in response.tasks:
                    self._registration.leases[task.task_id, task.attempt] = worker_id
        except WORKER_GONE:
            await self._registration.register(instead_of=worker_id)
            raise errors.UpstreamUnavailable(service="manager") from None
        except Failure as failure:
            if failure.grpc == "INVALID_ARGUMENT":
                raise  # A retry would be refused again.
            raise errors.UpstreamUnavailable(service="manager") from failure
        return response

    def _find_owner(self, task: AssignedTask) -> str:
        return self._registration.leases.get((task.task_id, task.attempt), self._registration.worker_id)


def _to_task_result(each: Settling) -> TaskResult:
    """Convert a settlement to a result of the service."""
    if each.target == COMPLETED:
        return TaskResult(
            task_id=each.key, attempt=each.held.fence, status=COMPLETED, result=each.given["result"]
        )
    if each.edge == TASK_GIVE_BACK.name:
        return TaskResult(task_id=each.key, attempt=each.held.fence, status=QUEUED)
    error = TaskError(message=each.given.get("error") or "", retriable=each.target == QUEUED)
    return TaskResult(task_id=each.key, attempt=each.held.fence, status=FAILED, error=error)


def _split_results(results: Sequence[tuple[int, TaskResult]]) -> Iterator[list[tuple[int, TaskResult]]]:
    """Split results into chunks that fit into a request."""
    part: list[tuple[int, TaskResult]] = []
    size = 0
    for each in results:
        more = len(each[1].result)
        if part and (len(part) == _MAX_RESULTS or size + more > _MAX_RESULT_BYTES):
            yield part
            part, size = [], 0
        part.append(each)
        size += more
    if part:
        yield part
