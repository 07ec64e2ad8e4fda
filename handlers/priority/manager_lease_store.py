"""What a worker holds of the manager's: the store that its pump works on is the service it speaks to."""

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
from handlers.priority.registration import GIVEN_UP, Registration
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.stores.store import Exchanged, Held, Settling

_STALE = errors.StaleAttempt(holder="the worker", key="it")
_MOST_RESULTS = 500
_MOST_BYTES = 2_000_000
"""What one request carries of results; its limit is twice as much."""
_LAST_POLL_S = 1.0


class Borrowed:
    """The tasks that the manager hands to one worker, as the store that a pump takes them from."""

    def __init__(
        self, manager: WorkersService, registration: Registration, call: Call, wait_s: float
    ) -> None:
        self._manager = manager
        self._worker = registration
        self._call = call
        self._wait_ms = int(wait_s * 1000)
        self._free = 0
        self._poll: asyncio.Task[None] | None = None
        self._brought: list[AssignedTask] = []
        """What a poll has brought that nobody takes any more."""
        self.hand: Callable[[Sequence[AssignedTask]], bool] = lambda _: False
        """Takes what a poll has brought, unless the worker is about to leave."""

    async def exchange(
        self, _owner: str, settling: Sequence[Settling], free: int, call: Call
    ) -> Exchanged[AssignedTask]:
        """Reports what ended and takes as many anew."""
        self._free = free + len(settling)
        return Exchanged(*await self._told(settling, self._free, call))

    async def settle_all(self, settling: Sequence[Settling], call: Call) -> Sequence[int | Exception]:
        """Reports and takes nothing."""
        _, outcomes = await self._told(settling, 0, call)
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
        """Reports one run."""
        (outcome,) = await self.settle_all([Settling(key, held, target, given, final, edge)], call)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def renew_all(self, held: Sequence[tuple[str, Held]]) -> Sequence[bool | Exception]:
        """Lets the worker be heard of; a task that it should stop is not its own any more."""
        await self._worker.beat()
        return [(key, each.fence) in self._worker.holds for key, each in held]

    async def awaited(self, timeout_s: float) -> bool:
        """Waits for a task, which is handed on at once."""
        if self._poll is None:
            self._poll = asyncio.create_task(self._wait_for_tasks())
        # A poll that is stopped half way could leave tasks that nobody knows of. It is let end by itself.
        await asyncio.wait({self._poll}, timeout=timeout_s)
        if self._poll.done():
            poll, self._poll = self._poll, None
            await poll
            return True
        return False

    async def give_back(self, call: Call) -> None:
        """Gives back what was handed out and never begun. Nothing comes after that."""
        if self._poll is not None:
            await asyncio.wait({self._poll}, timeout=_LAST_POLL_S)
            self._poll.cancel()
        brought, self._brought = self._brought, []
        edge = TASK_GIVE_BACK
        await self.settle_all(
            [Settling(each.task_id, Held("", each.attempt), edge.target, edge=edge.name) for each in brought],
            call,
        )

    async def extend(self, task: AssignedTask, seconds: float) -> None:
        """Asks for more time for a run."""
        await self._manager.extend_task(
            ExtendTaskRequest(
                worker_id=self._owner_of(task),
                task_id=task.task_id,
                attempt=task.attempt,
                seconds=int(seconds),
            ),
            self._call,
        )

    async def report(self, task: AssignedTask, progress: str) -> None:
        """Tells how far a run is."""
        await self._manager.report_progress(
            ReportProgressRequest(
                worker_id=self._owner_of(task), task_id=task.task_id, attempt=task.attempt, progress=progress
            ),
            self._call,
        )

    async def _wait_for_tasks(self) -> None:
        request = ExchangeTasksRequest(available_capacity=self._free, wait_ms=self._wait_ms)
        with suppress(Failure):  # The next exchange meets the same, and tells of it.
            answer = await self._exchanged(request, self._call)
            if answer.tasks and not self.hand(answer.tasks):
                self._brought += answer.tasks

    async def _told(
        self, settling: Sequence[Settling], most: int, call: Call
    ) -> tuple[list[AssignedTask], list[int | Exception]]:
        """Reports and takes, in as many requests as it needs."""
        now = self._worker.worker_id
        outcomes: list[int | Exception] = []
        own: list[tuple[int, TaskResult]] = []
        for place, each in enumerate(settling):
            owner = self._worker.holds.get((each.key, each.held.fence), "")
            outcomes.append(_STALE)
            if owner == now:
                own.append((place, _result(each)))
        chunks = list(_chunks(own)) or [[]]
        shares = [min(len(chunk), most) for chunk in chunks[:-1]]
        shares.append(max(most - sum(shares), 0))
        requests = [
            ExchangeTasksRequest(results=[each for _, each in chunk], available_capacity=share)
            for chunk, share in zip(chunks, shares, strict=True)
        ]
        if not settling:
            return list((await self._exchanged(requests[0], call)).tasks), outcomes
        taken: list[AssignedTask] = []
        answers = await asyncio.gather(
            *(self._exchanged(each, call) for each in requests), return_exceptions=True
        )
        for chunk, answer in zip(chunks, answers, strict=True):
            if isinstance(answer, ExchangeTasksResponse):
                taken += answer.tasks
                for (place, _), told in zip(chunk, answer.results, strict=True):
                    outcomes[place] = told.status or _STALE
            elif isinstance(answer, Failure):
                for place, _ in chunk:
                    outcomes[place] = answer
            else:
                raise answer
        for each, outcome in zip(settling, outcomes, strict=True):
            if not isinstance(outcome, Failure) or outcome is _STALE:
                self._worker.holds.pop((each.key, each.held.fence), None)
        return taken, outcomes

    async def _exchanged(self, request: ExchangeTasksRequest, call: Call) -> ExchangeTasksResponse:
        worker_id = request.worker_id = self._worker.worker_id
        try:
            with self._worker.asking():
                answer = await self._manager.exchange_tasks(request, call)
                for task in answer.tasks:
                    self._worker.holds[task.task_id, task.attempt] = worker_id
        except GIVEN_UP:
            await self._worker.register(instead_of=worker_id)
            raise errors.UpstreamUnavailable(service="manager") from None
        except Failure as failure:
            if failure.grpc == "INVALID_ARGUMENT":
                raise  # It would be refused again.
            raise errors.UpstreamUnavailable(service="manager") from failure
        return answer

    def _owner_of(self, task: AssignedTask) -> str:
        return self._worker.holds.get((task.task_id, task.attempt), self._worker.worker_id)


def _result(each: Settling) -> TaskResult:
    """How a run ended, in the words of the service."""
    if each.target == COMPLETED:
        return TaskResult(
            task_id=each.key, attempt=each.held.fence, status=COMPLETED, result=each.given["result"]
        )
    if each.edge == TASK_GIVE_BACK.name:
        return TaskResult(task_id=each.key, attempt=each.held.fence, status=QUEUED)
    error = TaskError(message=each.given.get("error") or "", retriable=each.target == QUEUED)
    return TaskResult(task_id=each.key, attempt=each.held.fence, status=FAILED, error=error)


def _chunks(results: Sequence[tuple[int, TaskResult]]) -> Iterator[list[tuple[int, TaskResult]]]:
    """Results in parts that requests can carry."""
    part: list[tuple[int, TaskResult]] = []
    size = 0
    for each in results:
        more = len(each[1].result)
        if part and (len(part) == _MOST_RESULTS or size + more > _MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(each)
        size += more
    if part:
        yield part
