"""The demo of the priority queue: tasks of every kind, what was to be expected and what came of it."""

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
from runtime.launch.show import Show

PRINCIPAL = "admin"
"""Who the demo is: somebody who may submit and look after dead letters, too."""
PATIENCE = 60.0
_WAIT_MS = 20_000
_LOOK_EVERY = 0.1
_SCENES = 4
"""How often the order of priorities is tried, while a busy machine lets slots come free too soon."""


async def demo(client: Client, console: Console) -> int:
    """Runs the tasks; 0 if every outcome is the expected one."""
    return await Tasks(client).shown(console, PATIENCE)


class Tasks(Show):
    """Every kind of task, one after the other."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client
        self._tasks = client.of(TasksServiceClient)
        self._admin = client.of(AdminServiceClient)
        self._run = uuid.uuid4().hex[:8]

    async def run(self) -> None:
        """Submits, waits, and notes what came of it."""
        first = await self._submit("echo", {"hello": "world"}, key="echo")
        again = await self._submit("echo", {"hello": "world"}, key="echo")
        self.note("a task", "completed", await self._end(first))
        self.note("the same key once more", "the same task", "the same task" if again == first else "another")
        await self._order()
        batch = await self._tasks.submit_tasks(
            SubmitTasksRequest(tasks=[self._request("echo", {"n": n}) for n in range(50)]),
            self._client.call(),
        )
        ends = {await self._end(each.task_id) for each in batch.tasks}
        self.note("50 tasks in one request", "completed", " and ".join(sorted(ends)))
        self.note("a failure for good", "failed", await self._end(await self._submit("fatal")))
        dead = await self._submit("fail", retries=1)
        self.note("a failure that is tried again once", "dead_letter", await self._end(dead))
        await self._admin.replay_dead_letter(ReplayDeadLetterRequest(task_id=dead), self._client.call())
        self.note("the dead letter, replayed", "dead_letter", await self._end(dead))
        self.note("its starts in all", "4", str((await self._get(dead)).attempt))
        self.note("its history has each of them", "4", await self._starts(dead))
        await self._cancel()

    async def _order(self) -> None:
        """Keeps the worker busy, submits one task of each priority, and sees which is begun first."""
        for _ in range(_SCENES):
            await self._keep_busy()
            tasks = {await self._submit("echo", priority=each): each for each in (LOW, MEDIUM, HIGH)}
            queues = (await self._stats()).queues
            waiting = queues.high.depth, queues.medium.depth, queues.low.depth
            for task in tasks:
                await self._end(task)
            if all(waiting):
                break  # Otherwise a slot came free in the meantime, and nothing is seen of an order.
        self.note("one of each priority while all are busy", "1, 1, 1", ", ".join(map(str, waiting)))
        started = {task: (await self._get(task)).started_at.ToNanoseconds() for task in tasks}
        # What one worker took in one go was begun in the same moment, and so in the right order.
        first = (HIGH, MEDIUM, LOW)
        begun_in = sorted(tasks, key=lambda task: (started[task], first.index(tasks[task])))
        order = [Priority.Name(tasks[task]).lower() for task in begun_in]
        self.note("the order in which they are begun", "high, medium, low", ", ".join(order))

    async def _keep_busy(self) -> None:
        begun = 0
        while (free := await self._free()) != 0:
            for _ in range(free or 0):
                # They end one after the other, so that what waits is begun one by one.
                await self._submit("sleep", {"seconds": 2 + 0.8 * (begun % 4)})
                begun += 1
            await asyncio.sleep(_LOOK_EVERY)

    async def _free(self) -> int | None:
        """How many more tasks would be begun at once; None while some are still waiting to be."""
        stats = await self._stats()
        free: int = stats.workers.total_capacity - stats.workers.used_capacity
        return None if stats.queues.high.depth else free

    async def _stats(self) -> GetQueueStatsResponse:
        return await self._tasks.get_queue_stats(GetQueueStatsRequest(), self._client.call())

    async def _cancel(self) -> None:
        running = await self._submit("sleep", {"seconds": 600})
        while (await self._get(running)).attempt == 0:
            await asyncio.sleep(_LOOK_EVERY)
        await self._tasks.cancel_task(CancelTaskRequest(task_id=running), self._client.call())
        self.note("a running task, cancelled", "cancelled", await self._end(running))

    async def _submit(
        self,
        task_type: str,
        parameters: object = None,
        *,
        priority: Priority.ValueType = HIGH,
        retries: int | None = None,
        key: str | None = None,
    ) -> str:
        request = self._request(task_type, parameters)
        request.priority = priority
        if retries is not None:
            request.max_retries = retries
        if key is not None:
            request.idempotency_key = f"demo-{self._run}-{key}"
        return (await self._tasks.submit_task(request, self._client.call())).task_id

    @staticmethod
    def _request(task_type: str, parameters: object = None) -> SubmitTaskRequest:
        return SubmitTaskRequest(task_type=task_type, parameters=json.dumps(parameters or {}))

    async def _get(self, task_id: str, wait_ms: int = 0) -> Task:
        return await self._tasks.get_task(
            GetTaskRequest(task_id=task_id, wait_ms=wait_ms), self._client.call()
        )

    async def _end(self, task_id: str) -> str:
        return TaskStatus.Name((await self._get(task_id, _WAIT_MS)).status).lower()

    async def _starts(self, task_id: str) -> str:
        """How often the history says that a task was begun, once it has all of it."""
        while True:
            told = await self._admin.get_task_history(
                GetTaskHistoryRequest(task_id=task_id), self._client.call()
            )
            ends = [each for each in told.changes if each.to_status == DEAD_LETTER]
            if len(ends) == 2:
                return str(sum(each.to_status == EXECUTING for each in told.changes))
            await asyncio.sleep(_LOOK_EVERY)
