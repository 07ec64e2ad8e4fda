"""The demo of the priority queue: tasks of every kind, with the expected and the actual outcomes."""

from __future__ import annotations

import asyncio
import json
import uuid

from rich.console import Console

from generated.priority.clients import AdminServiceClient, TasksServiceClient
from generated.priority.messages import (
    DEAD_LETTER,
    EXECUTING,
    HIGH,
    LOW,
    MEDIUM,
    CancelTaskRequest,
    GetQueueStatsRequest,
    GetQueueStatsResponse,
    GetTaskHistoryRequest,
    GetTaskRequest,
    Priority,
    ReplayDeadLetterRequest,
    SubmitTaskRequest,
    SubmitTasksRequest,
    Task,
    TaskStatus,
)
from runtime.client import Client
from runtime.launch.show import DemoReport

PRINCIPAL = "admin"
"""The caller of the demo: it may submit tasks and manage dead letters."""
TIMEOUT_S = 60.0
_WAIT_MS = 20_000
_POLL_S = 0.1
_MAX_TRIES = 4
"""Tries to see the order of priorities, where a busy machine lets slots come free too soon."""


async def demo(client: Client, console: Console) -> int:
    """Run the tasks; return 0 if every outcome is the expected one."""
    return await PriorityDemo(client).run_and_print(console, TIMEOUT_S)


class PriorityDemo(DemoReport):
    """Every kind of task, one after the other."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client
        self._tasks = client.of(TasksServiceClient)
        self._admin = client.of(AdminServiceClient)
        self._run_id = uuid.uuid4().hex[:8]

    async def run(self) -> None:
        """Submit tasks, wait for them, and note their outcomes."""
        first = await self._submit("echo", {"hello": "world"}, key="echo")
        again = await self._submit("echo", {"hello": "world"}, key="echo")
        self.note("a task", "completed", await self._wait_for_end(first))
        self.note("the same key once more", "the same task", "the same task" if again == first else "another")
        await self._check_order()
        batch = await self._tasks.submit_tasks(
            SubmitTasksRequest(tasks=[self._build_request("echo", {"n": n}) for n in range(50)]),
            self._client.call(),
        )
        ends = {await self._wait_for_end(each.task_id) for each in batch.tasks}
        self.note("50 tasks in one request", "completed", " and ".join(sorted(ends)))
        self.note("a failure for good", "failed", await self._wait_for_end(await self._submit("fatal")))
        dead = await self._submit("fail", retries=1)
        self.note("a failure that is tried again once", "dead_letter", await self._wait_for_end(dead))
        await self._admin.replay_dead_letter(ReplayDeadLetterRequest(task_id=dead), self._client.call())
        self.note("the dead letter, replayed", "dead_letter", await self._wait_for_end(dead))
        self.note("its starts in all", "4", str((await self._get(dead)).attempt))
        self.note("its history has each of them", "4", await self._count_starts(dead))
        await self._cancel()

    async def _check_order(self) -> None:
        """Keep the worker busy, submit one task of each priority, and note the order of their starts."""
        for _ in range(_MAX_TRIES):
            await self._keep_busy()
            tasks = {await self._submit("echo", priority=each): each for each in (LOW, MEDIUM, HIGH)}
            queues = (await self._get_stats()).queues
            waiting = queues.high.depth, queues.medium.depth, queues.low.depth
            for task in tasks:
                await self._wait_for_end(task)
            if all(waiting):
                break  # Otherwise a slot came free meanwhile, and the order does not show.
        self.note("one of each priority while all are busy", "1, 1, 1", ", ".join(map(str, waiting)))
        started = {task: (await self._get(task)).started_at.ToNanoseconds() for task in tasks}
        # Tasks that a worker claimed in one batch started at the same moment, in the right order.
        first = (HIGH, MEDIUM, LOW)
        start_order = sorted(tasks, key=lambda task: (started[task], first.index(tasks[task])))
        order = [Priority.Name(tasks[task]).lower() for task in start_order]
        self.note("the order in which they are begun", "high, medium, low", ", ".join(order))

    async def _keep_busy(self) -> None:
        submitted = 0
        while (free := await self._count_free_slots()) != 0:
            for _ in range(free or 0):
                # They end one after the other, so that waiting tasks start one by one.
                await self._submit("sleep", {"seconds": 2 + 0.8 * (submitted % 4)})
                submitted += 1
            await asyncio.sleep(_POLL_S)

    async def _count_free_slots(self) -> int | None:
        """Count the free slots; None while tasks of high priority are still waiting."""
        stats = await self._get_stats()
        free: int = stats.workers.total_capacity - stats.workers.used_capacity
        return None if stats.queues.high.depth else free

    async def _get_stats(self) -> GetQueueStatsResponse:
        return await self._tasks.get_queue_stats(GetQueueStatsRequest(), self._client.call())

    async def _cancel(self) -> None:
        running = await self._submit("sleep", {"seconds": 600})
        while (await self._get(running)).attempt == 0:
            await asyncio.sleep(_POLL_S)
        await self._tasks.cancel_task(CancelTaskRequest(task_id=running), self._client.call())
        self.note("a running task, cancelled", "cancelled", await self._wait_for_end(running))

    async def _submit(
        self,
        task_type: str,
        parameters: object = None,
        *,
        priority: Priority.ValueType = HIGH,
        retries: int | None = None,
        key: str | None = None,
    ) -> str:
        request = self._build_request(task_type, parameters)
        request.priority = priority
        if retries is not None:
            request.max_retries = retries
        if key is not None:
            request.idempotency_key = f"demo-{self._run_id}-{key}"
        return (await self._tasks.submit_task(request, self._client.call())).task_id

    @staticmethod
    def _build_request(task_type: str, parameters: object = None) -> SubmitTaskRequest:
        return SubmitTaskRequest(task_type=task_type, parameters=json.dumps(parameters or {}))

    async def _get(self, task_id: str, wait_ms: int = 0) -> Task:
        return await self._tasks.get_task(
            GetTaskRequest(task_id=task_id, wait_ms=wait_ms), self._client.call()
        )

    async def _wait_for_end(self, task_id: str) -> str:
        return TaskStatus.Name((await self._get(task_id, _WAIT_MS)).status).lower()

    async def _count_starts(self, task_id: str) -> str:
        """Count the starts of a task in its history, once that is complete."""
        while True:
            history = await self._admin.get_task_history(
                GetTaskHistoryRequest(task_id=task_id), self._client.call()
            )
            ends = [each for each in history.changes if each.to_status == DEAD_LETTER]
            if len(ends) == 2:
                return str(sum(each.to_status == EXECUTING for each in history.changes))
            await asyncio.sleep(_POLL_S)
