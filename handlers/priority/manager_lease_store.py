"""The lease store of a worker: adapts the manager's WorkersService to what a lease worker needs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from generated.priority import errors
from generated.priority.lifecycle import TASK_COMPLETE, TASK_GIVE_BACK, TASK_RETRY
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
from runtime.stores.contract import ExchangeResult, LeaseProof, LeaseSettlement
from runtime.worker.claim_poll import ClaimPoll

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
        self.poll: ClaimPoll[AssignedTask] = ClaimPoll(self._wait_for_tasks)

    async def exchange(
        self, _owner: str, settlements: Sequence[LeaseSettlement], free: int, call: Call
    ) -> ExchangeResult[AssignedTask]:
        """Report the ended runs and claim as many new tasks."""
        self._free_slots = free + len(settlements)
        return ExchangeResult(*await self._exchange_results(settlements, self._free_slots, call))

    async def settle_many(
        self, settlements: Sequence[LeaseSettlement], call: Call
    ) -> Sequence[int | Exception]:
        """Report ended runs and claim nothing."""
        _, outcomes = await self._exchange_results(settlements, 0, call)
        return outcomes

    async def settle(self, settlement: LeaseSettlement, call: Call) -> int:
        """Report one run."""
        (outcome,) = await self.settle_many([settlement], call)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def renew(self, held: Sequence[tuple[str, LeaseProof]]) -> Sequence[object]:
        """Send a heartbeat; return for each lease the id of its owner, None where it was lost."""
        await self._registration.send_heartbeat()
        return [self._registration.leases.get((key, each.fence)) for key, each in held]

    async def wait(self, timeout_s: float) -> bool:
        """Wait for a task, which is pushed to the worker at once."""
        return await self.poll.wait(timeout_s)

    async def release_undelivered(self, call: Call) -> None:
        """Release the tasks that were assigned and never started. Nothing may be polled after that."""
        undelivered = await self.poll.drain(_LAST_POLL_TIMEOUT_S)
        await self.settle_many(
            [
                LeaseSettlement(each.task_id, LeaseProof("", each.attempt), TASK_GIVE_BACK.name)
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

    async def _wait_for_tasks(self) -> Sequence[AssignedTask]:
        request = ExchangeTasksRequest(available_capacity=self._free_slots, wait_ms=self._wait_ms)
        return (await self._send_exchange(request, self._call)).tasks

    async def _exchange_results(
        self, settlements: Sequence[LeaseSettlement], capacity: int, call: Call
    ) -> tuple[list[AssignedTask], list[int | Exception]]:
        """Report results and claim tasks, in as many requests as the limits need."""
        worker_id = self._registration.worker_id
        outcomes: list[int | Exception] = []
        owned: list[tuple[int, TaskResult]] = []
        for index, each in enumerate(settlements):
            owner = self._registration.leases.get((each.key, each.lease.fence), "")
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
        if not settlements:
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
        for each, outcome in zip(settlements, outcomes, strict=True):
            if not isinstance(outcome, Failure) or outcome is _STALE:
                self._registration.leases.pop((each.key, each.lease.fence), None)
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


def _to_task_result(each: LeaseSettlement) -> TaskResult:
    """Convert a settlement to a result of the service."""
    if each.edge == TASK_COMPLETE.name:
        return TaskResult(
            task_id=each.key, attempt=each.lease.fence, status=COMPLETED, result=each.given["result"]
        )
    if each.edge == TASK_GIVE_BACK.name:
        return TaskResult(task_id=each.key, attempt=each.lease.fence, status=QUEUED)
    error = TaskError(message=each.given.get("error") or "", retriable=each.edge == TASK_RETRY.name)
    return TaskResult(task_id=each.key, attempt=each.lease.fence, status=FAILED, error=error)


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
